import assert from "#assert";
import { ROOT, wgconv } from "../cli.ts";
import { isInputError } from "../../src/errors.ts";
import { layerSizes, type ModelOptions } from "../../src/models/layer.ts";
import { readModel } from "../../src/models/read_model.ts";
import { Draw } from "../attack/draw.ts";
import { mutateBytes } from "../attack/mutate.ts";
import { onnxModel, type TestGraph } from "../support/onnx_model.ts";

/** No shape is stated; the product's rows follow from sizes that the model computes. Weights lie in a file that is not there. */
const GRAPH: TestGraph = {
  inputs: { x: ["N", 3, "H", "W"] },
  weights: { w: [8, 3, 3, 3], f: [8, 5] },
  indices: { first: [0], rest: [-1, 8], two: [2] },
  nodes: [
    { op: "Conv", inputs: ["x", "w"], output: "a", attributes: { strides: [2, 2] } },
    { op: "Relu", inputs: ["a"], output: "b" },
    { op: "ConvTranspose", inputs: ["b", "v"], output: "up", attributes: { strides: [2, 2] } },
    { op: "Shape", inputs: ["up"], output: "shape" },
    { op: "Gather", inputs: ["shape", "first"], output: "batch" },
    { op: "Mul", inputs: ["batch", "two"], output: "rows" },
    { op: "Concat", inputs: ["rows", "rest"], output: "sizes", attributes: { axis: 0 } },
    { op: "Reshape", inputs: ["up", "sizes"], output: "c" },
    { op: "MatMul", inputs: ["c", "f"], output: "d" },
    { op: "NonZero", inputs: ["d"], output: "e" },
    { op: "Cast", inputs: ["e"], output: "g", attributes: { to: 1 } },
    { op: "MatMul", inputs: ["g", "open"], output: "h" },
  ],
  outputs: ["h"],
  external: true,
};
const graph: TestGraph = {
  ...GRAPH,
  weights: { ...GRAPH.weights, v: [8, 4, 2, 2], open: [7, 7] },
};

async function readBytes(bytes: Uint8Array, options: ModelOptions) {
  const path = await Deno.makeTempFile({ suffix: ".onnx" });
  try {
    await Deno.writeFile(path, bytes);
    return await readModel(path, options);
  } finally {
    await Deno.remove(path);
  }
}

const options = { inputShapes: new Map([["x", [2, 3, 17, 17]]]) };

Deno.test("onnxruntime infers shapes that a model leaves open, without its weights", async () => {
  const { layers, left } = await readBytes(onnxModel(graph), options);
  assert.deepEqual(layers.map(layerSizes), [
    "mb2ic3ih17oc8oh8kh3sh2",
    "mb2ic4ih16oc8oh8kh2sh2",
    "256 5 8",
  ]);
  assert.deepEqual(left, [{ name: "h", why: "the shape of g depends on data" }]);
});

Deno.test("a model in which nothing can be folded has shapes, too", async () => {
  const nodes = graph.nodes.slice(0, 3);
  const plain = { ...graph, nodes, indices: {}, outputs: ["up"] };
  // Of a version that the runtime does not know, too.
  for (const version of [3, 8, 99]) {
    const { layers, left } = await readBytes(onnxModel({ ...plain, version }), options);
    assert.deepEqual([layers.length, left], [2, []]);
  }
});

Deno.test("damaged models never end the process within onnxruntime", async () => {
  const bytes = onnxModel(graph);
  for (let seed = 1; seed <= 500; seed++) {
    try {
      await readBytes(mutateBytes(new Draw(1, "models", seed), bytes, bytes), options);
    } catch (error) {
      assert.ok(isInputError(error), `seed ${seed}: ${error}`);
    }
  }
});

for (const command of [["verify", "--layout", "nchw"], ["verify", "gemm"]]) {
  Deno.test(`examples/workers/onnx_worker.ts is right: ${command.join(" ")}`, async () => {
    const worker =
      `'${Deno.execPath()}' run -A --no-check --no-lock '${ROOT}examples/workers/onnx_worker.ts'`;
    const options = ["--worker", worker, "--random", "24", "--arithmetic", "f32-any"];
    const { code, stdout, stderr } = await wgconv([...command, ...options]);
    assert.equal(code, 0, stdout + stderr);
    assert.match(stdout, /^24 cases of deno: (1[2-9]|2[0-4]) passed/m);
  });
}
