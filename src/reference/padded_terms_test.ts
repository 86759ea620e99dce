import assert from "#assert";
import fc from "fast-check";
import {
  type ConvProblem,
  type ConvProblemInit,
  operandTensors,
  OPERATIONS,
  resultTensor,
  tensorShape,
} from "../problem/conv_problem.ts";
import { LAYOUTS } from "../tensor/layout.ts";
import { elementCount, unravelIndex } from "../tensor/tensor.ts";
import { referenceConv } from "./reference.ts";
import { randomStream } from "./sample.ts";
import {
  axisSizes,
  inputsOf,
  naiveConv,
  randomTensors,
  type Tensors,
  withOp,
} from "../../tests/support/reference_data.ts";

const problems: fc.Arbitrary<ConvProblemInit> = fc.record({
  axes: axisSizes({ input: 6, filter: 3, stride: 3, dilation: 2 })(2),
  batch: fc.integer({ min: 1, max: 2 }),
  groups: fc.integer({ min: 1, max: 2 }),
  // From three channels of a group on products are blocked.
  channels: fc.integer({ min: 1, max: 4 }),
}).map(({ axes, batch, groups, channels }) => ({
  batch,
  groups,
  inChannels: groups * channels,
  outChannels: groups * (5 - channels),
  ...axes,
}));

/** The places of elements that are not finite. */
function unbounded(problem: ConvProblem, tensors: Tensors, which: "input" | "filter" | "output") {
  const shape = tensorShape(problem, which);
  return Array.from(tensors[which].keys()).filter((i) => !Number.isFinite(tensors[which][i])).map(
    (i) => unravelIndex(i, shape),
  );
}

/** Whether a sum has a term of padding times an element that is not finite, by all places that such an element could meet. */
function hasPaddedTerm(problem: ConvProblem, tensors: Tensors, result: readonly number[]): boolean {
  const { op, stride, dilation, paddingBegin: pad, inputSize, filterSize, outputSize } = problem;
  const groupIn = problem.inChannels / problem.groups;
  const groupOut = problem.outChannels / problem.groups;
  const within = (at: readonly number[], size: readonly number[]) =>
    at.every((value, i) => Number.isInteger(value) && value >= 0 && value < size[i]!);
  const inputAt = (p: readonly number[], r: readonly number[]) =>
    p.map((at, i) => at * stride[i]! + r[i]! * dilation[i]! - pad[i]!);
  const outputAt = (h: readonly number[], r: readonly number[]) =>
    h.map((at, i) => (at + pad[i]! - r[i]! * dilation[i]!) / stride[i]!);
  const [n, channel, ...at] = result as [number, number, ...number[]];
  const filters = () => unbounded(problem, tensors, "filter");
  const gradients = () => unbounded(problem, tensors, "output");
  if (op === "fwd") {
    return filters().some(([k, , ...r]) => k === channel && !within(inputAt(at, r), inputSize));
  }
  if (op === "bwd-data") {
    const group = Math.floor(channel / groupIn);
    const own = (k: number) => Math.floor(k / groupOut) === group;
    const padded = filters().some(([k, c, ...r]) =>
      own(k!) && c === channel % groupIn && !within(outputAt(at, r), outputSize)
    );
    return padded || gradients().some(([image, k, ...q]) => {
      if (image !== n || !own(k!)) return false;
      const r = at.map((h, i) => (h + pad[i]! - q[i]! * stride[i]!) / dilation[i]!);
      // Neighbours that are less than a stride away have taps there.
      const wide = r.map((value, i) =>
        dilation[i] === 1 && value < 0
          ? Math.min(0, value + stride[i]! - 1)
          : dilation[i] === 1 && value >= filterSize[i]!
          ? Math.max(filterSize[i]! - 1, value - stride[i]! + 1)
          : value
      );
      return within(wide, filterSize) && !within(r, filterSize);
    });
  }
  const group = Math.floor(n / groupOut);
  const padded = gradients().some(([, k, ...p]) => k === n && !within(inputAt(p, at), inputSize));
  return padded || unbounded(problem, tensors, "input").some(([, c, ...h]) => {
    if (c !== group * groupIn + channel) return false;
    const p = outputAt(h, at);
    return within(p.slice(0, -1), outputSize) && Number.isInteger(p.at(-1)) &&
      !within(p, outputSize);
  });
}

Deno.test("references leave padding out where NaN and infinities meet it, and mark those outputs alone", async () => {
  await fc.assert(
    fc.asyncProperty(
      problems,
      fc.constantFrom(...OPERATIONS),
      fc.constantFrom(...LAYOUTS),
      fc.constantFrom("whole", "sampled", "listed"),
      fc.integer(),
      async (init, op, layout, which, seed) => {
        const problem = withOp(init, op);
        const tensors = randomTensors(problem, seed);
        const random = randomStream(seed);
        for (const operand of operandTensors(op)) {
          const data = tensors[operand];
          const count = Math.floor(3 * random());
          for (let i = 0; i < count; i++) {
            data[Math.floor(random() * data.length)] = [Infinity, -Infinity, NaN][i % 3]!;
          }
        }
        const shape = tensorShape(problem, resultTensor(op));
        const total = elementCount(shape);
        const got = await referenceConv(problem, inputsOf(problem, tensors, layout), {
          workers: 0,
          ...(which === "whole"
            ? {}
            : which === "sampled"
            ? { sample: { count: total >> 1 || 1, seed } }
            : { indices: Float64Array.of(0, total - 1) }),
        });
        const want = naiveConv(problem, tensors);
        got.values.forEach((value, i) => {
          const index = got.indices?.[i] ?? i;
          const expected = want.values[index]!;
          assert.ok(
            Object.is(value, expected) || value === expected ||
              Math.abs(value - expected) <= 1e-14 * want.magnitudes[index]!,
            `${value} in place of ${expected} at ${index}`,
          );
          assert.equal(
            got.paddedNaN?.[i] ?? 0,
            Number(hasPaddedTerm(problem, tensors, unravelIndex(index, shape))),
            `output ${index}`,
          );
        });
      },
    ),
    { numRuns: 600 },
  );
});
