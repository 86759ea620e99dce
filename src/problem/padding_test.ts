import assert from "#assert";
import { convProblem } from "./conv_problem.ts";
import { convTransposeProblem } from "./conv_transpose.ts";
import { parseDescriptor, printDescriptor } from "./descriptor.ts";
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

Deno.test("padding same with strides is TensorFlow's and ONNX's SAME_UPPER, same-lower their SAME_LOWER", () => {
  // Size, taps, stride, dilation; outputs, zeros before and after.
  const cases = [
    [[5, 3, 2, 1], [3, 1, 1]],
    [[6, 3, 2, 1], [3, 0, 1]],
    [[224, 7, 2, 1], [112, 2, 3]],
    [[7, 1, 2, 1], [4, 0, 0]],
    [[10, 3, 3, 2], [4, 2, 2]],
    [[11, 2, 4, 3], [3, 0, 1]],
    [[3, 2, 5, 1], [1, 0, 0]],
  ] as const;
  for (const [[size, taps, step, spread], [outputs, begin, end]] of cases) {
    for (const rank of [1, 2, 3]) {
      const every = (value: number) => new Array<number>(rank).fill(value);
      const init = {
        ...sizes,
        inputSize: every(size),
        filterSize: every(taps),
        stride: every(step),
        dilation: every(spread),
      };
      const upper = convProblem({ ...init, padding: "same" });
      assert.deepEqual(upper.outputSize, every(outputs));
      assert.deepEqual([upper.paddingBegin, upper.paddingEnd], [every(begin), every(end)]);
      const lower = convProblem({ ...init, padding: "same-lower" });
      assert.deepEqual(lower.outputSize, every(outputs));
      assert.deepEqual([lower.paddingBegin, lower.paddingEnd], [every(end), every(begin)]);
      // Descriptors bring the same computation back.
      for (const problem of [upper, lower]) {
        const { outputSize, paddingBegin } = parseDescriptor(printDescriptor(problem));
        assert.deepEqual([outputSize, paddingBegin], [problem.outputSize, problem.paddingBegin]);
      }
    }
  }
});

Deno.test("words refuse numbers of padding beside them", () => {
  assert.throws(
    () => convProblem({ ...sizes, filterSize: [3, 3], paddingEnd: [1, 1], padding: "valid" }),
    /^TypeError: Cannot convolve: padding "valid" stands for paddingBegin and paddingEnd/,
  );
});

Deno.test("gradients of strided convolutions with padding same find its zeros again", () => {
  const shared = { groups: 1, stride: [2, 3], dilation: [2, 1] } as const;
  for (const padding of ["same", "same-lower"] as const) {
    const { outputSize, paddingBegin, paddingEnd } = problemFromShapes({
      ...{ ...shared, padding, op: "fwd", input: [1, 2, 9, 12], filter: [3, 2, 2, 5] },
    });
    assert.deepEqual(outputSize, [5, 4]);
    const backward = { ...shared, padding, output: [1, 3, 5, 4] };
    const data = { ...backward, op: "bwd-data", filter: [3, 2, 2, 5] } as const;
    const gradients = [
      problemFromShapes({ ...data, inputSize: [9, 12] }),
      problemFromShapes({
        ...backward,
        op: "bwd-filter",
        input: [1, 2, 9, 12],
        filterSize: [2, 5],
      }),
    ];
    for (const problem of gradients) {
      assert.deepEqual([problem.inputSize, problem.filterSize], [[9, 12], [2, 5]]);
      assert.deepEqual([problem.paddingBegin, problem.paddingEnd], [paddingBegin, paddingEnd]);
    }
    assert.throws(
      () => problemFromShapes(data),
      /sizes 9 and 10 of spatial axis 0 fit .*--input-s/,
    );
    assert.throws(() => problemFromShapes({ ...data, inputSize: [11, 12] }), /output size is 5x4/);
  }
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

Deno.test("padding, stride and dilation are a number for all axes, or numbers", () => {
  const all = { ...sizes, filterSize: [3, 3] };
  const both = { ...all, paddingBegin: [1, 1], stride: [2, 2], dilation: [2, 2] };
  assert.deepEqual(convProblem({ ...all, padding: 1, stride: 2, dilation: 2 }), convProblem(both));
  assert.deepEqual(convProblem({ ...all, padding: [1] }), convProblem({ ...all, padding: 1 }));
  assert.deepEqual(
    convProblem({ ...all, padding: [1, 0, 2, 1] }),
    convProblem({ ...all, paddingBegin: [1, 0], paddingEnd: [2, 1] }),
  );
  assert.deepEqual(
    convTransposeProblem({ ...all, padding: 1, stride: 2, outputPadding: 1 }),
    convTransposeProblem({ ...all, padding: [1, 1], stride: [2, 2], outputPadding: [1, 1] }),
  );
  const shapes = { op: "fwd", groups: 1, input: [1, 2, 8, 8], filter: [3, 2, 3, 3] } as const;
  assert.deepEqual(
    problemFromShapes({ ...shapes, padding: 1, stride: 2 }),
    problemFromShapes({ ...shapes, padding: [1, 1], stride: [2, 2] }),
  );
});
