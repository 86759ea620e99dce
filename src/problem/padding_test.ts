import assert from "#assert";
import { convProblem } from "./conv_problem.ts";
import { problemFromShapes } from "./from_shapes.ts";

const sizes = { batch: 1, inChannels: 2, outChannels: 3, inputSize: [9, 12] };

Deno.test("padding same keeps the input's size, the odd zero behind the last element, as PyTorch", () => {
  for (const [filterSize, dilation] of [[[3, 4], [1, 1]], [[2, 5], [3, 2]], [[1, 6], [1, 1]]]) {
    const problem = convProblem({
      ...sizes,
      filterSize: filterSize!,
      dilation: dilation!,
      padding: "same",
    });
    assert.deepEqual(problem.outputSize, sizes.inputSize);
    const extra = problem.paddingEnd.map((end, axis) => end - problem.paddingBegin[axis]!);
    assert.deepEqual(extra, filterSize!.map((taps, axis) => (taps - 1) * dilation![axis]! % 2));
  }
  const valid = convProblem({ ...sizes, filterSize: [3, 4], padding: "valid" });
  assert.deepEqual(valid.outputSize, [7, 9]);
});

Deno.test("padding same refuses strides, and words refuse numbers beside them", () => {
  assert.throws(
    () => convProblem({ ...sizes, filterSize: [3, 3], stride: [1, 2], padding: "same" }),
    /^RangeError: Cannot convolve: padding "same" goes with strides of 1, stride is 1x2$/,
  );
  assert.throws(
    () => convProblem({ ...sizes, filterSize: [3, 3], paddingEnd: [1, 1], padding: "valid" }),
    /^TypeError: Cannot convolve: padding "valid" stands for paddingBegin and paddingEnd/,
  );
});

Deno.test("problems from shapes take the words in all operations", () => {
  const [input, filter, output] = [[1, 2, 9, 12], [3, 2, 2, 5], [1, 3, 9, 12]];
  const shared = { groups: 1, padding: "same" } as const;
  const problems = [
    problemFromShapes({ ...shared, op: "fwd", input: input!, filter: filter! }),
    problemFromShapes({ ...shared, op: "bwd-data", output: output!, filter: filter! }),
    problemFromShapes({
      ...shared,
      op: "bwd-filter",
      input: input!,
      output: output!,
      filterSize: [2, 5],
    }),
  ];
  for (const { inputSize, outputSize, filterSize, paddingBegin, paddingEnd } of problems) {
    assert.deepEqual([inputSize, outputSize, filterSize], [[9, 12], [9, 12], [2, 5]]);
    assert.deepEqual([paddingBegin, paddingEnd], [[0, 2], [1, 2]]);
  }
  assert.throws(
    () => problemFromShapes({ ...shared, op: "bwd-filter", input: input!, output: output! }),
    /^TypeError: Cannot convolve: padding "same" of bwd-filter needs the filter size/,
  );
  const valid = { op: "fwd", groups: 1, input: input!, filter: filter!, padding: "valid" } as const;
  assert.deepEqual(problemFromShapes(valid).outputSize, [8, 8]);
});
