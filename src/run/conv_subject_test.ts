import assert from "#assert";
import { OPERATIONS } from "../problem/conv_problem.ts";
import { parseDescriptor } from "../problem/descriptor.ts";
import { convSubject } from "./conv_subject.ts";
import { featuresOf } from "./subject.ts";

const LAYOUTS = { layout: "nhwc", filterLayout: "krsc" } as const;

function subjectOf(op: (typeof OPERATIONS)[number]) {
  const problem = parseDescriptor("mb2ic4ih12iw12oc4kh3kw5", op);
  return convSubject({ problem, ...LAYOUTS });
}

Deno.test("convSubject() says which outputs a transform mixes: a tile's, or all taps of a gradient of the filter", () => {
  const share = { axes: [{ n: 4, r: 3 }, { n: 2, r: 5 }] };
  for (const op of OPERATIONS) {
    const subject = subjectOf(op);
    assert.equal(subject.tolerance.mixed({}), undefined);
    const mixed = subject.tolerance.mixed({ tiles: [share] })!;
    assert.deepEqual(mixed.tile, op === "bwd-filter" ? [3, 5] : [4, 2]);
  }
});

Deno.test("convSubject() has the bias and the result of one type, and measures errors by it", () => {
  const { problem } = {
    problem: parseDescriptor("mb1ic2ih5oc2kh3"),
  };
  const epilogue = { bias: true, activation: "none" } as const;
  for (
    const [dtype, outDtype] of [["f32", "f32"], ["f16", "f16"], ["f16", "f32"], [
      "f32",
      "f16",
    ]] as const
  ) {
    const subject = convSubject({ problem, ...LAYOUTS, epilogue, dtype, outDtype });
    const types = Object.fromEntries(subject.operands.map((one) => [one.role, one.dtype]));
    assert.deepEqual(types, { input: dtype, filter: dtype, bias: outDtype });
    assert.equal(subject.result.dtype, outDtype);
    assert.equal(subject.tolerance.precision({}).result, outDtype);
    assert.deepEqual(
      featuresOf(subject),
      dtype === "f16" || outDtype === "f16" ? ["shader-f16"] : [],
    );
  }
});
