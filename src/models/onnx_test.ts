import assert from "#assert";
import { isInputError } from "../errors.ts";
import { onnxModel, type TestGraph, type TestNode } from "../../tests/support/onnx_model.ts";
import { type Layer, layerSizes, type ModelOptions } from "./layer.ts";
import { fieldsOf } from "./onnx_format.ts";
import { runtimeWords } from "./onnxruntime.ts";
import { readModel } from "./read_model.ts";

// Models here state all their shapes; one that a mutation spoils may ask for the runtime.
Deno.env.set("WGCONV_ONNXRUNTIME", "/nonexistent");

/** Reads a model that states all its shapes. */
async function read(graph: Partial<TestGraph>, options: ModelOptions = {}) {
  return await readBytes(
    onnxModel({ nodes: [], inputs: {}, weights: {}, outputs: [], ...graph }),
    options,
  );
}

async function readBytes(bytes: Uint8Array, options: ModelOptions = {}) {
  const path = await Deno.makeTempFile({ suffix: ".onnx" });
  try {
    await Deno.writeFile(path, bytes);
    return await readModel(path, options);
  } finally {
    await Deno.remove(path);
  }
}

/** The layer that one node makes of an input x and a weight w. */
async function one(
  op: string,
  x: readonly number[],
  w: readonly number[],
  attributes: TestNode["attributes"] = {},
): Promise<Layer> {
  const node = { op, inputs: ["x", "w"], output: "y", attributes };
  const { layers, left } = await read({ nodes: [node], inputs: { x }, weights: { w } });
  assert.deepEqual(left, []);
  return layers[0]!;
}

Deno.test("a Conv's groups, strides, dilations and pads are its descriptor's, on one to three axes", async () => {
  const cases: [readonly number[], readonly number[], TestNode["attributes"], string][] = [
    [[1, 3, 224, 224], [64, 3, 7, 7], { strides: [2, 2], pads: [3, 3, 3, 3] }, "stem"],
    [[2, 8, 20], [16, 4, 3], { group: 2, dilations: [2], pads: [2, 2] }, "one axis"],
    [[1, 2, 5, 6, 7], [4, 2, 3, 3, 3], { pads: [1, 1, 1, 1, 1, 1] }, "three axes"],
    [[1, 3, 9, 9], [4, 3, 3, 3], { strides: [2, 2], pads: [0, 0, 1, 1] }, "asymmetric, floored"],
    [[1, 3, 8, 8], [4, 3, 3, 3], { strides: [2, 2], pads: [0, 0, 1, 1] }, "asymmetric"],
    [[1, 3, 8, 8], [4, 3, 3, 3], { strides: [2, 2], auto_pad: "SAME_UPPER" }, "upper"],
    [[1, 3, 8, 8], [4, 3, 3, 3], { strides: [2, 2], auto_pad: "SAME_LOWER" }, "lower"],
    [[1, 3, 8, 8], [4, 3, 3, 3], { auto_pad: "VALID" }, "valid"],
  ];
  const expected = [
    "mb1ic3ih224oc64oh112kh7sh2ph3",
    "g2mb2ic8iw20oc16ow20kw3pw2dw1",
    "mb1ic2id5ih6iw7oc4od5oh6ow7kd3kh3kw3pd1ph1pw1",
    "mb1ic3ih9oc4oh4kh3sh2ph0",
    "mb1ic3ih8oc4oh4kh3sh2ph0",
    "mb1ic3ih8oc4oh4kh3sh2ph0",
    "mb1ic3ih8oc4oh4kh3sh2ph1",
    "mb1ic3ih8oc4oh6kh3",
  ];
  for (const [at, [x, w, attributes, what]] of cases.entries()) {
    const layer = await one("Conv", x, w, attributes);
    assert.equal(layerSizes(layer), expected[at], what);
    assert.deepEqual([layer.ops, layer.dtype, layer.first], [["fwd"], "f32", true]);
  }
});

Deno.test("a convolution of what has no spatial axis is named", async () => {
  for (const op of ["Conv", "ConvTranspose"]) {
    for (const x of [[5], [5, 3]]) {
      const node = { op, inputs: ["x", "w"], output: "y" };
      const { left } = await read({ nodes: [node], inputs: { x }, weights: { w: [3, 3, 1] } });
      assert.match(left[0]!.why, /^Cannot convolve: input is \[5/);
    }
  }
});

Deno.test("a ConvTranspose is the backward-data convolution of its result", async () => {
  const sizes = async (attributes: TestNode["attributes"]) => {
    const layer = await one("ConvTranspose", [1, 16, 7, 7], [16, 8, 3, 3], attributes);
    assert.deepEqual(layer.ops, ["bwd-data"]);
    const { problem } = layer;
    if (!("conv" in problem)) throw new Error("a product");
    const { inChannels, inputSize, outputSize, paddingBegin } = problem.conv;
    return [inChannels, inputSize[0], outputSize[0], paddingBegin[0]];
  };
  assert.deepEqual(await sizes({ strides: [2, 2], pads: [1, 1, 1, 1] }), [8, 13, 7, 1]);
  const more = { strides: [2, 2], pads: [1, 1, 1, 1], output_padding: [1, 1] };
  assert.deepEqual(await sizes(more), [8, 14, 7, 1]);
  assert.deepEqual(await sizes({ strides: [2, 2], auto_pad: "SAME_UPPER" }), [8, 14, 7, 0]);
  assert.deepEqual(await sizes({ strides: [2, 2], auto_pad: "SAME_LOWER" }), [8, 14, 7, 1]);
  assert.deepEqual(await sizes({ strides: [2, 2], output_shape: [16, 16] }), [8, 16, 7, 0]);
});

Deno.test("Gemm, MatMul and Einsum are products: transposes, batches that are broadcast, vectors", async () => {
  const cases: [string, readonly number[], readonly number[], TestNode["attributes"], string][] = [
    ["Gemm", [8, 512], [1000, 512], { transB: 1 }, "8 1000 512 n t"],
    ["Gemm", [512, 8], [512, 1000], { transA: 1 }, "8 1000 512 t n"],
    ["MatMul", [2, 50, 64], [64, 128], {}, "100 128 64"],
    ["MatMul", [2, 12, 50, 64], [2, 12, 64, 50], {}, "50 50 64 n n x24"],
    ["MatMul", [12, 50, 64], [2, 1, 64, 50], {}, "50 50 64 n n x24"],
    ["MatMul", [64], [64, 10], {}, "1 10 64"],
    ["MatMul", [3, 64], [64], {}, "3 1 64"],
    ["Einsum", [2, 3, 7, 5], [2, 3, 9, 5], { equation: "bhid, bhjd -> bhij" }, "7 9 5 n t x6"],
    ["Einsum", [7, 2, 5], [5, 2, 4, 3], { equation: "ibd,dbjk->bijk" }, "7 12 5 n n x2"],
    ["Einsum", [5, 7], [5, 9], { equation: "di,dj" }, "7 9 5 t n"],
  ];
  for (const [op, x, w, attributes, expected] of cases) {
    assert.equal(layerSizes(await one(op, x, w, attributes)), expected);
  }
});

Deno.test("an Einsum that is no product of two operands is named", async () => {
  for (
    const equation of ["ii,ij->j", "ij,jk->k", "...i,ij->...j", "ij,jk->ikl", "ij,jkl->ik", ""]
  ) {
    const node = { op: "Einsum", inputs: ["x", "w"], output: "y", attributes: { equation } };
    const { layers, left } = await read({
      nodes: [node],
      inputs: { x: [4, 4] },
      weights: { w: [4, 4] },
    });
    assert.deepEqual([layers.length, left.length], [0, 1], equation);
    assert.match(left[0]!.why, /^Cannot multiply: /);
  }
});

Deno.test("quantised operators run as int8, other types are said", async () => {
  const inputs = { x: [1, 4, 8, 8] };
  const node = (op: string, names: readonly string[]) => ({ op, inputs: names, output: "y" });
  const weights = { s: [], z: [], w: [8, 4, 3, 3] };
  const types = { x: 2, w: 3, z: 2 };
  const linear = node("QLinearConv", ["x", "s", "z", "w", "s", "z", "s", "z"]);
  for (const quantised of [linear, node("ConvInteger", ["x", "w", "z", "z"])]) {
    const { layers } = await read({ nodes: [quantised], inputs, weights, types });
    assert.deepEqual(layers.map(({ dtype, said }) => [dtype, said]), [["i8", undefined]]);
  }
  const conv = node("Conv", ["x", "w"]);
  const half = await read({ nodes: [conv], inputs, weights, types: { x: 10, w: 10 } });
  assert.equal(half.layers[0]!.dtype, "f16");
  const brain = await read({ nodes: [conv], inputs, weights, types: { x: 16, w: 16 } });
  assert.deepEqual([brain.layers[0]!.dtype, brain.layers[0]!.said], ["bf16", undefined]);
});

/** A graph within a node: a convolution of x, which is the outer one. */
function inner(weight: string, output: string, more: Partial<TestGraph> = {}): TestGraph {
  const conv = { op: "Conv", inputs: ["x", weight], output };
  return { nodes: [conv], inputs: {}, weights: {}, outputs: [output], ...more };
}

const NOTHING = inner("", "n", { nodes: [{ op: "Identity", inputs: ["x"], output: "n" }] });

const NETWORK: TestGraph = {
  inputs: { x: ["N", 3, 8, 8] },
  weights: { w: [4, 3, 3, 3], b: [4], v: [4, 4, 3, 3], f: [64, 10], c: [10] },
  nodes: [
    { op: "Conv", inputs: ["x", "w", "b"], output: "y", name: "/stem/Conv" },
    { op: "Relu", inputs: ["y"], output: "r" },
    { op: "Conv", inputs: ["r", "v"], output: "z", attributes: { pads: [1, 1, 1, 1] } },
    { op: "Sigmoid", inputs: ["z"], output: "s" },
    { op: "Mul", inputs: ["z", "s"], output: "m" },
    { op: "MatMul", inputs: ["t", "f"], output: "p", name: "head" },
    { op: "Add", inputs: ["p", "c"], output: "q" },
    { op: "Fancy", inputs: ["q"], output: "k", domain: "my.own" },
    { op: "LSTM", inputs: ["k", "f", "f"], output: "l" },
    { op: "NonZero", inputs: ["l"], output: "nz" },
    {
      op: "If",
      inputs: ["k"],
      output: "i",
      name: "branch",
      attributes: { then_branch: inner("w", "deep"), else_branch: NOTHING },
    },
  ],
  values: { r: ["N", 4, 6, 6], t: ["N", 1, 64] },
  outputs: ["i"],
};

Deno.test("names, what follows, free sizes and what is not listed", async () => {
  const { layers, left } = await read(NETWORK, { batch: 5 });
  assert.deepEqual(
    layers.map((layer) => [layer.name, layerSizes(layer), layer.follows, layer.first]),
    [
      ["/stem/Conv", "mb5ic3ih8oc4oh6kh3", ["bias", "relu"], true],
      ["z", "mb5ic4ih6oc4oh6kh3ph1", ["silu"], undefined],
      ["head", "5 10 64", ["bias"], undefined],
      ["deep", "mb5ic3ih8oc4oh6kh3", undefined, true],
    ],
  );
  assert.deepEqual(left.map(({ name, why }) => `${name}: ${why}`), [
    "k: Fancy is of the domain my.own",
    "l: LSTM has products inside, which are not listed",
  ]);
  assert.match(layerSizes((await read(NETWORK)).layers[0]!), /^mb1ic3/);
});

Deno.test("layers within a branch are those of the one that is taken, where that is known", async () => {
  const branches = {
    then_branch: inner("w", "t"),
    // Its weights and names are its own, though another has them, too.
    else_branch: inner("v", "t", { weights: { v: [7, 3, 1, 1] }, values: { x: [1] } }),
  };
  const found = async (truths: Record<string, boolean>) => {
    const { layers, left, notes } = await read({
      inputs: { x: [2, 3, 8, 8], data: [] },
      weights: { w: [4, 3, 3, 3] },
      types: { data: 9 },
      truths,
      nodes: [{ op: "If", inputs: ["data"], output: "y", name: "side", attributes: branches }],
      outputs: ["y"],
    });
    assert.deepEqual(left, []);
    return [notes, layers.map(layerSizes)];
  };
  const [first, second] = ["mb2ic3ih8oc4oh6kh3", "mb2ic3ih8oc7oh8kh1"];
  assert.deepEqual(await found({}), [
    ["If side: layers of both branches are listed, a run takes one"],
    [first, second],
  ]);
  assert.deepEqual(await found({ data: true }), [
    ["If side: its condition is true, the then branch is listed"],
    [first],
  ]);
  assert.deepEqual((await found({ data: false }))[1], [second]);
});

Deno.test("a loop's layers stand once, a scan's read a part of its input", async () => {
  const product = { op: "MatMul", inputs: ["part", "f"], output: "p" };
  const looped: TestGraph = {
    nodes: [
      { op: "Identity", inputs: ["go"], output: "again" },
      {
        op: "If",
        inputs: ["go"],
        output: "deep",
        attributes: { then_branch: inner("w", "u"), else_branch: NOTHING },
      },
      product,
    ],
    inputs: { i: [], go: [], part: ["A", "B"] },
    weights: {},
    outputs: ["again", "part"],
    types: { i: 7, go: 9 },
  };
  const scanned: TestGraph = {
    ...looped,
    nodes: [product],
    inputs: { sum: ["A"], part: ["A"] },
    outputs: ["sum", "p"],
  };
  const { layers, left, notes } = await read({
    inputs: { x: [2, 3, 8, 8], s: [6, 5] },
    weights: { w: [4, 3, 3, 3], f: [5, 9] },
    indices: { times: [4] },
    truths: { on: true },
    nodes: [
      { op: "Loop", inputs: ["times", "on", "s"], output: "l", attributes: { body: looped } },
      {
        op: "Scan",
        inputs: ["x", "s"],
        output: "q",
        attributes: { body: scanned, num_scan_inputs: 1 },
      },
    ],
    values: { "q/body/part": [5] },
    outputs: ["q"],
  });
  assert.deepEqual(left, []);
  assert.deepEqual(layers.map(layerSizes), ["mb2ic3ih8oc4oh6kh3", "6 9 5", "1 9 5"]);
  assert.deepEqual(notes, [
    "Loop l: layers of its body are listed once, each iteration runs them",
    "Scan q: layers of its body are listed once, each iteration runs them",
    "If deep: its condition is true, the then branch is listed",
  ]);
});

Deno.test("--training adds gradients, but for the network's input", async () => {
  const { layers } = await read(NETWORK, { training: true });
  assert.deepEqual(
    layers.map(({ ops, problem, name }) => "conv" in problem ? ops.join() : name),
    [
      ...["fwd,bwd-filter", "fwd,bwd-data,bwd-filter", "head", "head.dA", "head.dB"],
      "fwd,bwd-filter",
    ],
  );
  assert.deepEqual(layers.slice(2, 5).map(layerSizes), ["1 10 64", "1 64 10 n t", "64 10 1 t n"]);
});

Deno.test("sizes that contradict the model or are missing are refused", async () => {
  const shape = (name: string, sizes: number[]) => ({ inputShapes: new Map([[name, sizes]]) });
  const refused: [Partial<TestGraph>, ModelOptions, RegExp][] = [
    [{}, shape("y", [1]), /: there is no input y, there are x$/],
    [{}, shape("x", [1, 3, 9, 8]), /: size 2 of the input x is 8 in the model, 9 was/],
    [{}, shape("x", [1, 3]), /: the input x has 4 axes, --input-shape says 1x3$/],
    [
      { inputs: { x: ["N", 3, "H", "W"] } },
      {},
      /: its input x is N x 3 x H x W, give sizes such as --input-shape x=1x3x224x224$/,
    ],
    [
      { inputs: { x: [1, 3, "H", "W"], y: ["N", "T"] } },
      {},
      /: its input x is 1 x 3 x H x W, y is N x T, give sizes such as --input-shape x=1x3x224x224 --input-shape y=1x1$/,
    ],
    [{ inputs: { x: [1, 3, 8, 8] } }, { batch: 2 }, /size 0 .* is 1 .* 2 was/],
  ];
  for (const [graph, options, message] of refused) {
    await assert.rejects(
      () => read({ ...NETWORK, ...graph }, options),
      (error: Error) => isInputError(error) && message.test(error.message),
    );
  }
});

Deno.test("a file that is no model, or not whole, is refused by what it is", async () => {
  const bytes = onnxModel(NETWORK);
  const text = (words: string) => new TextEncoder().encode(words);
  const graph = [...fieldsOf(bytes)].find(({ no }) => no === 7)!;
  const spoilt = bytes.slice();
  // The first node's length goes beyond the graph.
  spoilt[graph.bytes.byteOffset - bytes.byteOffset + 1] = 0x7f;
  const refused: [Uint8Array, RegExp][] = [
    [text("hello\n"), /: it is no ONNX model$/],
    [text("<!DOCTYPE html>\n<html>"), /: it is a web page, no ONNX model$/],
    [
      text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"),
      /`git lfs pull` fetches that$/,
    ],
    [bytes.slice(0, -9), /: it is cut off: its graph goes beyond its \d+ bytes$/],
    [spoilt, /: it is damaged: its graph cannot be read at byte \d+$/],
  ];
  for (const [file, message] of refused) {
    await assert.rejects(() => readBytes(file), { name: "SyntaxError", message });
  }
});

Deno.test("what onnxruntime says is shown without places in its source", () => {
  const said = "[ONNXRuntimeError] : 1 : FAIL : Load model failed:/src/core/graph/model.cc:150 " +
    "onnxruntime::Model::Model(ModelProto&&, f(int)) Unsupported model IR version: 99\nat x";
  assert.equal(runtimeWords(new Error(said)), "Load model failed:Unsupported model IR version: 99");
});
