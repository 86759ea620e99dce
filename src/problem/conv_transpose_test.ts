import assert from "#assert";
import { naiveConv } from "../../tests/support/reference_data.ts";
import { convTransposeProblem } from "./conv_transpose.ts";

Deno.test("transposed convolutions have PyTorch's sizes", () => {
  const sizes = { batch: 2, inChannels: 6, outChannels: 4, inputSize: [5, 7], filterSize: [3, 4] };
  const problem = convTransposeProblem({
    ...sizes,
    groups: 2,
    stride: [3, 2],
    padding: [1, 2],
    outputPadding: [2, 1],
    dilation: [2, 1],
  });
  // (h − 1)·s − 2p + d·(r − 1) + 1 + output padding
  assert.deepEqual(problem.inputSize, [12 - 2 + 4 + 1 + 2, 12 - 4 + 3 + 1 + 1]);
  assert.deepEqual(problem.outputSize, [5, 7]);
  assert.deepEqual([problem.inChannels, problem.outChannels, problem.op], [4, 6, "bwd-data"]);
});

Deno.test("a transposed convolution scatters its filter, as its definition says", () => {
  const problem = convTransposeProblem({
    batch: 1,
    inChannels: 1,
    outChannels: 1,
    inputSize: [3],
    filterSize: [2],
    stride: [2],
    outputPadding: [1],
  });
  const { values } = naiveConv(problem, {
    input: new Float64Array(7),
    filter: Float64Array.of(10, 1),
    output: Float64Array.of(1, 2, 3),
  });
  assert.deepEqual([...values], [10, 1, 20, 2, 30, 3, 0]);
});

Deno.test("output padding is less than the stride, and sizes fit", () => {
  const sizes = { batch: 1, inChannels: 1, outChannels: 1, inputSize: [4], filterSize: [3] };
  assert.throws(
    () => convTransposeProblem({ ...sizes, stride: [2], outputPadding: [2] }),
    /^RangeError: Cannot convolve: output padding is 2 on spatial axis 0, expected 0 to 1/,
  );
  assert.throws(() => convTransposeProblem({ ...sizes, padding: [4] }), RangeError);
  assert.throws(() => convTransposeProblem({ ...sizes, filterSize: [3, 3] }), TypeError);
});
