import assert from "#assert";
import { convProblem } from "./conv_problem.ts";
import { convTransposeProblem } from "./conv_transpose.ts";
import { problemFromShapes } from "./from_shapes.ts";
import { gemmProblem } from "./gemm_problem.ts";

const SIZES = {
  batch: 1,
  inChannels: 2,
  outChannels: 3,
  inputSize: [8, 8],
  filterSize: [3, 3],
} as const;

/** What programs without types give, and what is said. */
function refuses(make: (init: never) => unknown, all: object, cases: [object, RegExp][]) {
  for (const [change, message] of cases) {
    assert.throws(() => make({ ...all, ...change } as never), message);
  }
}

Deno.test("convProblem() refuses values of another type in a sentence", () => {
  const word = (value: string) =>
    new RegExp(
      `^TypeError: Cannot convolve: padding is ${value}, expected "same", "same-lower" or "valid", a`,
    );
  const axes = (what: string) =>
    new RegExp(`^TypeError: Cannot convolve: ${what}, expected an array of numbers, one a spatial`);
  refuses(convProblem, SIZES, [
    [{ padding: 0.5 }, /^RangeError: Cannot convolve: padding is 0.5,.* expected >= 0$/],
    [{ padding: [1, 1, 1] }, /^TypeError: .* padding \[1, 1, 1\] has 3 values, expected 1, 2 \(/],
    [{ padding: {} }, word("an object of Object")],
    [{ padding: null }, word("null")],
    [{ padding: "samee" }, word('"samee"')],
    [{ stride: "2", padding: "same" }, axes('stride is "2"')],
    [{ stride: 0 }, /^RangeError: Cannot convolve: stride is 0,0, expected >= 1$/],
    [{ dilation: "2" }, axes('dilation is "2"')],
    [{ filterSize: undefined }, axes("filter size is undefined")],
    [{ inputSize: 8 }, axes("input size is 8")],
    [{ outputSize: 6 }, axes("output size is 6")],
    [{ paddingBegin: 1 }, axes("padding begin is 1")],
    [{ stride: ["2", 2] }, /^RangeError: Cannot convolve: stride is "2",2, expected >= 1$/],
    [{ op: "fwdd" }, /^RangeError: .* op is "fwdd", expected fwd, bwd-data, bwd-filter$/],
    [{ op: 1 }, /^TypeError: .* op is 1, expected fwd, bwd-data, bwd-filter$/],
  ]);
  assert.throws(() => convProblem(undefined as never), /the problem is undefined, expected an obj/);
  assert.deepEqual(convProblem({ ...SIZES, padding: "valid" }).outputSize, [6, 6]);
});

Deno.test("convTransposeProblem(), problemFromShapes() and gemmProblem() do so, too", () => {
  refuses(convTransposeProblem, SIZES, [
    [{ padding: "same" }, /^TypeError: .* padding is "same", expected an array of numbers/],
    [{ stride: "2" }, /^TypeError: .* stride is "2", expected an array/],
    [{ inputSize: undefined }, /^TypeError: .* input size is undefined, expected an array/],
  ]);
  const shapes = { op: "fwd", input: [1, 2, 8, 8], filter: [3, 2, 3, 3], groups: 1 };
  refuses(problemFromShapes, shapes, [
    [{ padding: "samee" }, /^TypeError: .* padding is "samee", expected "same", "same-lower" or/],
    [{ padding: true }, /^TypeError: .* padding is true, expected an array/],
    [{ op: "fwdd" }, /^RangeError: .* op is "fwdd", expected fwd, /],
    [{ input: 3 }, /^TypeError: .* input is 3, expected an array of sizes$/],
  ]);
  refuses(gemmProblem, { m: 1, n: 1, k: 1 }, [
    [
      { transpose: "xx" },
      /^RangeError: Cannot multiply: transpose is "xx", expected nn, nt, tn, tt$/,
    ],
    [{ bias: true }, /^TypeError: .* bias is true, expected none, row, column$/],
    [{ activation: "relU" }, /^RangeError: .* activation is "relU", expected none, relu, /],
  ]);
});
