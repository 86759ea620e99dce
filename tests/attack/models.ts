import { encodeSafetensors } from "../../src/npy/safetensors.ts";
import { fillTensor } from "../../src/tensor/fill.ts";
import { MIOPEN_LOG, ONEDNN_LOG } from "../support/layer_logs.ts";
import { onnxModel, type TestGraph, type TestNode } from "../support/onnx_model.ts";
import { Finding } from "./attack.ts";
import { Draw } from "./draw.ts";
import { commandAttack, holdEnded, runInProcess } from "./in_process.ts";
import { mutateBytes } from "./mutate.ts";

/** A graph within a node. */
function inner(nodes: readonly TestNode[], more: Partial<TestGraph> = {}): TestGraph {
  return { nodes, inputs: {}, weights: {}, outputs: nodes.map(({ output }) => output), ...more };
}

/** A model of all that is read: layers of every kind, branches, loops, constants. It states its shapes. */
const GRAPH: TestGraph = {
  inputs: { x: ["N", 3, 8, 8], s: [6, 5], flag: [], q: [2, 4, 6, 6] },
  types: { flag: 9, q: 2, qw: 3 },
  weights: { w: [4, 3, 3, 3], b: [4], u: [4, 8, 2, 2], f: [5, 9], h: [7, 9], qw: [8, 4, 3, 3] },
  indices: { times: [3], rest: [-1, 8] },
  truths: { on: true },
  nodes: [
    { op: "Conv", inputs: ["x", "w", "b"], output: "a", attributes: { pads: [1, 0, 1, 2] } },
    { op: "Relu", inputs: ["a"], output: "r" },
    { op: "ConvTranspose", inputs: ["r", "u"], output: "t", attributes: { strides: [2, 2] } },
    { op: "MatMul", inputs: ["s", "f"], output: "m" },
    { op: "Gemm", inputs: ["m", "h"], output: "g", attributes: { transB: 1 } },
    { op: "ConvInteger", inputs: ["q", "qw"], output: "i", attributes: { group: 1 } },
    {
      op: "If",
      inputs: ["flag"],
      output: "y",
      attributes: {
        then_branch: inner([{ op: "Conv", inputs: ["x", "v"], output: "c" }], {
          weights: { v: [2, 3, 1, 1] },
        }),
        else_branch: inner([{ op: "Identity", inputs: ["x"], output: "c" }]),
      },
    },
    {
      op: "Loop",
      inputs: ["times", "on", "s"],
      output: "l",
      attributes: {
        body: inner([
          { op: "Identity", inputs: ["go"], output: "again" },
          { op: "MatMul", inputs: ["part", "f"], output: "p" },
        ], { inputs: { n: [], go: [], part: [6, 5] }, types: { n: 7, go: 9 } }),
      },
    },
    { op: "LSTM", inputs: ["s", "f", "f"], output: "k" },
  ],
  values: { r: ["N", 4, 8, 8], m: [6, 9] },
  outputs: ["y", "l"],
};

/** Two tensors, of float32 and of bfloat16. */
function safetensors(): Uint8Array {
  const first = fillTensor("f32", [3, 4], "normal", 1);
  const header = encodeSafetensors(
    [
      ["conv1.weight", { dtype: "F32", shape: first.shape, bytes: first.data.byteLength }],
      ["conv1.bias", { dtype: "BF16", shape: [5], bytes: 10 }],
    ],
    { format: "pt" },
    "damaged.safetensors",
  );
  return new Uint8Array([...header, ...new Uint8Array(first.data.buffer), ...new Uint8Array(10)]);
}

const encoder = new TextEncoder();

/** Damaged models, logs and safetensors, read by the commands that take them. */
export const MODELS = commandAttack("models", 20, (seed) => {
  // Shapes that damage leaves open would need a package.
  Deno.env.set("WGCONV_ONNXRUNTIME", "/nonexistent");
  const bases = [
    { name: "damaged.onnx", bytes: onnxModel(GRAPH) },
    { name: "damaged.onnx", bytes: onnxModel({ ...GRAPH, external: true }) },
    { name: "damaged.log", bytes: encoder.encode(ONEDNN_LOG) },
    { name: "damaged.log", bytes: encoder.encode(MIOPEN_LOG) },
    { name: "damaged.safetensors", bytes: safetensors() },
  ];
  const readers = (name: string) =>
    name.endsWith(".safetensors")
      ? [["tensor", "info", name], ["tensor", "convert", `${name}:conv1.weight`, "o.npy"]]
      : [["layers", name], ...(name.endsWith(".onnx") ? [["layers", name, "--training"]] : [])];
  return {
    commandOf(number) {
      const draw = new Draw(seed, "models", number);
      const { name, bytes } = draw.pick([bases[0]!, ...bases]);
      const args = draw.pick(readers(name));
      return { args, files: { [name]: mutateBytes(draw, bytes, draw.pick(bases).bytes) } };
    },
    shown: ({ files }) => Object.keys(files),
    async run({ args, files }) {
      const [size] = Object.values(files).map(({ length }) => length);
      const before = Deno.memoryUsage().external;
      const ended = await runInProcess(args);
      const took = Deno.memoryUsage().external - before;
      if (took > (16 << 20) + 3 * size!) {
        throw new Finding(`reading ${size} bytes took ${took} bytes of memory`);
      }
      return holdEnded(ended, { args });
    },
  };
});
