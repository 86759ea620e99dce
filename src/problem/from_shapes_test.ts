import assert from "#assert";
import fc from "fast-check";
import { convProblem, OPERATIONS, outputSizeOf, tensorShape } from "./conv_problem.ts";
import { problemFromShapes } from "./from_shapes.ts";
import { bothSides } from "./padding.ts";

Deno.test("problemFromShapes() reads a forward problem", () => {
  const problem = problemFromShapes({
    op: "fwd",
    input: [2, 4, 9, 7],
    filter: [6, 2, 3, 3],
    groups: 2,
    stride: [2],
    padding: [1, 0],
  });
  assert.deepEqual(tensorShape(problem, "output"), [2, 6, 5, 3]);
});

Deno.test("problemFromShapes() says which channels disagree", () => {
  assert.throws(
    () => problemFromShapes({ op: "fwd", input: [1, 32, 8, 8], filter: [4, 16, 3, 3], groups: 1 }),
    {
      name: "RangeError",
      message: "Cannot convolve: filter has 16 input channels, input has 32 (groups = 1)",
    },
  );
});

Deno.test("problemFromShapes() refuses missing operands and other ranks", () => {
  assert.throws(() => problemFromShapes({ op: "fwd", input: [1, 1, 4], groups: 1 }), {
    message: "Cannot convolve: fwd needs filter",
  });
  assert.throws(
    () => problemFromShapes({ op: "fwd", input: [1, 1, 4], filter: [1, 1, 2, 2], groups: 1 }),
    { name: "TypeError", message: /input has 3 axes \[1, 1, 4\], filter has 4/ },
  );
});

Deno.test("problemFromShapes() asks for the input size that a stride leaves open", () => {
  const init = { op: "bwd-data", output: [1, 2, 4, 4], filter: [2, 3, 3, 3], groups: 1 } as const;
  assert.throws(() => problemFromShapes({ ...init, stride: [2], padding: [1] }), {
    message: "Cannot derive the input size: sizes 7 and 8 of spatial axis 0 fit the other " +
      "shapes, choose with --input-size",
  });
  // However many there are.
  const huge = { ...init, stride: [2 ** 40] };
  assert.throws(
    () => problemFromShapes(huge),
    /sizes 3298534883331 to 4398046511106 of spatial ax/,
  );
  const filter = { ...huge, op: "bwd-filter", input: [1, 2, 5, 5], output: [1, 3, 1, 1] } as const;
  assert.throws(() => problemFromShapes(filter), /the filter size: sizes 1 to 5 of spatial axis 0/);
  const problem = problemFromShapes({ ...init, stride: [2], padding: [1], inputSize: [8, 7] });
  assert.deepEqual(problem.inputSize, [8, 7]);
});

Deno.test("problemFromShapes() refuses an output gradient that no filter gives", () => {
  assert.throws(
    () =>
      problemFromShapes({ op: "bwd-filter", input: [1, 2, 4, 4], output: [1, 3, 9, 9], groups: 1 }),
    // No size can be chosen.
    {
      message: /no size of spatial axis 0 fits the other shapes with this stride, padding and dil/,
    },
  );
});

Deno.test("problemFromShapes() finds the sizes of every problem's own shapes", () => {
  const sizes = (min: number, max: number) =>
    fc.array(fc.integer({ min, max }), { minLength: 2, maxLength: 2 });
  const fields = fc.record({
    inputSize: sizes(1, 20),
    filterSize: sizes(1, 5),
    stride: sizes(1, 3),
    paddingBegin: sizes(0, 3),
    paddingEnd: sizes(0, 3),
    dilation: sizes(1, 3),
    op: fc.constantFrom(...OPERATIONS),
  }).filter((f) =>
    [0, 1].every((i) =>
      outputSizeOf(
        f.inputSize[i]!,
        f.filterSize[i]!,
        f.stride[i]!,
        f.paddingBegin[i]!,
        f.paddingEnd[i]!,
        f.dilation[i]!,
      ) >= 1
    )
  );
  fc.assert(fc.property(fields, (f) => {
    const problem = convProblem({ ...f, batch: 2, inChannels: 3, outChannels: 4 });
    const found = problemFromShapes({
      op: f.op,
      input: tensorShape(problem, "input"),
      filter: tensorShape(problem, "filter"),
      output: tensorShape(problem, "output"),
      inputSize: f.inputSize,
      filterSize: f.filterSize,
      groups: 1,
      stride: f.stride,
      padding: [...f.paddingBegin, ...f.paddingEnd],
      dilation: f.dilation,
    });
    assert.deepEqual(found, problem);
  }));
});

Deno.test("bothSides() takes one, one an axis, or all before and all after", () => {
  assert.deepEqual(bothSides([1], 2), { paddingBegin: [1, 1], paddingEnd: [1, 1] });
  assert.deepEqual(bothSides([1, 2, 3, 4], 2), { paddingBegin: [1, 2], paddingEnd: [3, 4] });
  assert.throws(() => bothSides([1, 2, 3], 2), TypeError);
});
