import assert from "#assert";
import { parseDescriptor } from "../problem/descriptor.ts";
import { gemmProblem } from "../problem/gemm_problem.ts";
import { convSubject } from "../run/conv_subject.ts";
import { gemmSubject } from "../run/gemm_subject.ts";
import { fillOperands, fromCanonical } from "../run/operands.ts";
import type { Subject } from "../run/subject.ts";
import { unravelIndex } from "../tensor/tensor.ts";
import { resultStrides } from "../run/check.ts";
import { smallestCase } from "./smallest.ts";

const conv = (text: string, op: "fwd" | "bwd-data" | "bwd-filter", last = false) =>
  convSubject({
    problem: parseDescriptor(text, op),
    layout: last ? "nhwc" : "nchw",
    filterLayout: last ? "krsc" : "kcrs",
    epilogue: { bias: op === "fwd", activation: op === "fwd" ? "relu" : "none" },
  });

const SUBJECTS: readonly Subject[] = [
  conv("g2mb3ic6ih7iw5oc4kh3ph1sh2", "fwd"),
  conv("g2mb3ic6ih7iw5oc4kh3ph1sh2", "bwd-data", true),
  conv("g2mb3ic6ih7iw5oc4kh3ph1", "bwd-filter", true),
  conv("mb2ic3iw9oc5kw3dw1", "fwd", true),
  gemmSubject(
    gemmProblem({
      ...{ m: 4, n: 5, k: 6, batch: 2, transpose: "tt", alpha: 0.5, beta: 2 },
      ...{ bias: "row", activation: "gelu", residual: true },
    }),
    { dtype: "f32" },
  ),
];

for (const subject of SUBJECTS) {
  const { shape, traits } = subject;
  Deno.test(`the smallest part of a result is a problem with the same values: ${traits.op} ${traits.layout}`, async () => {
    const operands = fillOperands(subject, "normal", 1);
    const { values } = await subject.reference.of(operands, {});
    const result = fromCanonical(subject, values);
    const strides = resultStrides(subject);
    for (const index of [0, Math.floor(values.length / 2), values.length - 1]) {
      const small = smallestCase(subject, operands, result, index)!;
      const own = (await small.subject.reference.of(small.operands, {})).values;
      assert.equal(own.length, small.got.length);
      own.forEach((value, i) => assert.equal(small.got[i], Math.fround(value)));
      const place = unravelIndex(index, shape)
        .reduce((sum, at, axis) => sum + at * strides[axis]!, 0);
      assert.ok(small.got.includes(result[place]! as never));
    }
  });
}
