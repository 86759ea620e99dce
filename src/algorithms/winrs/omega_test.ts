import assert from "#assert";
import {
  admissible,
  type Omega,
  omegaName,
  OMEGAS,
  parseOmega,
  slicesOf,
  tileElements,
} from "./omega.ts";

Deno.test("OMEGAS holds the paper's 13 kernels, each with α = n + r − 1 but for the direct one, and four nested ones", () => {
  assert.equal(OMEGAS.filter(({ rows }) => rows === undefined).length, 13);
  assert.equal(new Set(OMEGAS.map(omegaName)).size, 17);
  for (const { alpha, n, r } of OMEGAS.slice(1)) assert.equal(alpha, n + r - 1);
});

Deno.test("parseOmega() reads what omegaName() writes, and refuses the rest", () => {
  for (const omega of OMEGAS) assert.equal(parseOmega(omegaName(omega)), omega);
  assert.throws(() => parseOmega("a8n2r7"), {
    name: "RangeError",
    message: /^Cannot choose a WinRS kernel: "a8n2r7" is none of a2n1r1, a4n2r3/,
  });
});

Deno.test("a multiplication replaces n·r / α of the direct product", () => {
  const acceleration = (omega: Omega) => {
    const { filter, gradient } = tileElements(omega);
    return filter * gradient / slicesOf(omega);
  };
  assert.equal(acceleration(parseOmega("a8n3r6")), 2.25);
  assert.equal(acceleration(parseOmega("a16n9r8")), 4.5);
  assert.equal(acceleration(parseOmega("a2n1r1")), 1);
  assert.equal(acceleration(parseOmega("a4n2r3xa4n2r3")), 2.25);
});

Deno.test("admissible() gives the kernels whose n divides the filter's width", () => {
  const names = (width: number) => admissible(width).map(omegaName).join(" ");
  assert.equal(names(1), "a2n1r1");
  assert.equal(names(3), "a2n1r1 a4n3r2 a8n3r6");
  assert.equal(names(14), "a2n1r1 a4n2r3 a8n7r2 a16n7r10");
  const nested = (rows: number) => admissible(3, rows).map(omegaName).at(-1);
  assert.deepEqual([nested(6), nested(5), nested(0)], ["a4n3r2xa8n3r6", "a8n3r6", "a8n3r6"]);
  for (let width = 2; width <= 9; width++) {
    for (let k = 1; k <= 5; k++) assert.ok(admissible(width * k).length > 1);
  }
});
