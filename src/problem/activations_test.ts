import assert from "#assert";
import { activate } from "./activations.ts";
import { erf, erfc } from "./erf.ts";
import { ACTIVATIONS } from "../problem/activations.ts";

/** Published values of the error function to 17 digits. */
const ERF: [number, number][] = [
  [0, 0],
  [0.1, 0.1124629160182848922],
  [0.5, 0.5204998778130465377],
  [0.99, 0.8385080695553697939],
  [1, 0.8427007929497148693],
  [1.5, 0.9661051464753107271],
  [2, 0.9953222650189527342],
  [3, 0.9999779095030014146],
];
const ERFC: [number, number][] = [
  [1, 0.1572992070502851307],
  [2, 0.004677734981047265838],
  [4, 1.541725790028001885e-8],
  [6, 2.151973671249891312e-17],
  [10, 2.088487583762544757e-45],
];

Deno.test("erf() is right to 1e-15, on both sides of zero", () => {
  for (const [x, want] of ERF) {
    assert.ok(Math.abs(erf(x) - want) < 1e-15, `erf(${x})`);
    assert.ok(Math.abs(erf(-x) + want) < 1e-15, `erf(${-x})`);
  }
  assert.deepEqual([erf(Infinity), erf(-Infinity), erf(NaN)], [1, -1, NaN]);
});

Deno.test("erfc() keeps its digits in the tail", () => {
  for (const [x, want] of ERFC) {
    assert.ok(Math.abs(erfc(x) / want - 1) < 1e-13, `erfc(${x}) = ${erfc(x)}`);
  }
  assert.equal(erfc(40), 0);
});

Deno.test("activate() gives each function's known values", () => {
  const near = (got: number, want: number) => assert.ok(Math.abs(got - want) < 1e-15, `${got}`);
  near(activate("none", -3.5), -3.5);
  near(activate("relu", -3.5), 0);
  near(activate("relu", 3.5), 3.5);
  near(activate("leaky-relu", -3.5), -0.035);
  near(activate("prelu", -3.5, -2), 7);
  near(activate("prelu", 3.5, -2), 3.5);
  near(activate("sigmoid", 1), 0.7310585786300048793);
  near(activate("sigmoid", -800), 0);
  near(activate("tanh", 0.5), 0.4621171572600097585);
  near(activate("silu", -1), -0.2689414213699951207);
  near(activate("gelu", 1), 0.8413447460685429486);
  near(activate("gelu", -1), -0.1586552539314570514);
  near(activate("gelu", -5), -1.433257859395969e-6);
});

Deno.test("activate() keeps NaN, and has a limit at both infinities", () => {
  for (const kind of ACTIVATIONS) {
    assert.ok(Number.isNaN(activate(kind, NaN)), kind);
    assert.ok(!Number.isNaN(activate(kind, Infinity, 0.5)), kind);
    assert.ok(!Number.isNaN(activate(kind, -Infinity, 0.5)), kind);
  }
});
