import assert from "#assert";
import { naiveConv } from "../../tests/support/reference_data.ts";
import { convProblem } from "./conv_problem.ts";
import { convTransposeProblem } from "./conv_transpose.ts";
import { parseDescriptor, printDescriptor } from "./descriptor.ts";
import { problemFromShapes } from "./from_shapes.ts";

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

Deno.test("output padding may exceed the stride where the dilation does, as in PyTorch", () => {
  const sizes = { batch: 1, inChannels: 1, outChannels: 1, inputSize: [3], filterSize: [2] };
  const values = { filter: Float64Array.of(10, 1), output: Float64Array.of(1, 2, 3) };
  const scattered = [
    // What the end has more is zeros, or what padding would cut off.
    [[1, 3, 0, 2], [10, 20, 30, 1, 2, 3, 0, 0]],
    [[1, 3, 1, 2], [20, 30, 1, 2, 3, 0]],
    [[1, 3, 2, 2], [30, 1, 2, 3]],
    [[2, 5, 0, 4], [10, 0, 20, 0, 30, 1, 0, 2, 0, 3, 0, 0, 0, 0]],
    [[2, 5, 3, 3], [0, 30, 1, 0, 2, 0, 3]],
  ] as const;
  for (const [[stride, dilation, padding, outputPadding], expected] of scattered) {
    const problem = convTransposeProblem({
      ...sizes,
      stride: [stride],
      dilation: [dilation],
      padding: [padding],
      outputPadding: [outputPadding],
    });
    const { values: result } = naiveConv(problem, { ...values, input: new Float64Array(14) });
    assert.deepEqual([...result], expected);
    const again = parseDescriptor(printDescriptor(problem), "bwd-data");
    assert.deepEqual([again.inputSize, again.outputSize], [problem.inputSize, problem.outputSize]);
    assert.deepEqual(again.paddingBegin, problem.paddingBegin);
    // The command line says it by the result's size.
    const shared = { groups: 1, stride: [stride], dilation: [dilation], padding: [padding] };
    const { inputSize } = problem;
    for (
      const found of [
        problemFromShapes({
          ...{ ...shared, op: "bwd-data", output: [1, 1, 3], filter: [1, 1, 2], inputSize },
        }),
        problemFromShapes({
          ...{ ...shared, op: "bwd-filter", output: [1, 1, 3], input: [1, 1, ...inputSize] },
          filterSize: [2],
        }),
      ]
    ) assert.deepEqual({ ...found, op: "bwd-data" }, problem);
  }
});

Deno.test("output padding is less than stride or dilation, and sizes fit", () => {
  const sizes = { batch: 1, inChannels: 1, outChannels: 1, inputSize: [4], filterSize: [3] };
  assert.throws(
    () => convTransposeProblem({ ...sizes, stride: [2], outputPadding: [2] }),
    /^RangeError: Cannot convolve: output padding is 2 on spatial axis 0, expected 0 to 1/,
  );
  assert.throws(
    () => convTransposeProblem({ ...sizes, dilation: [3], outputPadding: [3] }),
    /output padding is 3 on spatial axis 0, expected 0 to 2, less than the stride or the dilation$/,
  );
  const cut = { batch: 1, inChannels: 1, outChannels: 1, inputSize: [8], filterSize: [3] };
  assert.deepEqual(convProblem({ ...cut, dilation: [2], paddingEnd: [-1] }).outputSize, [3]);
  assert.throws(() => convProblem({ ...cut, paddingEnd: [-1] }), /padding is 0,-1, expected >= 0/);
  assert.throws(() => convProblem({ ...cut, dilation: [2], paddingEnd: [-2] }), /padding is 0,-2/);
  assert.throws(() => parseDescriptor("ic1iw8oc1kw3ow4"), /output size is 4, .* give 6$/);
  assert.throws(() => parseDescriptor("ic1iw9oc1kw3dw1ow3"), /output size is 3, .* give 5$/);
  assert.throws(() => convTransposeProblem({ ...sizes, padding: [4] }), RangeError);
  assert.throws(() => convTransposeProblem({ ...sizes, filterSize: [3, 3] }), TypeError);
});
