import { isInputError } from "../errors.ts";
import { type ConvProblem, convProblem, type Operation } from "../problem/conv_problem.ts";
import { convTransposeProblem } from "../problem/conv_transpose.ts";
import { parseDescriptor } from "../problem/descriptor.ts";
import { gemmProblem, type Transpose } from "../problem/gemm_problem.ts";
import { type Layer, layerType, type ModelLayers } from "./layer.ts";

/** MIOpenDriver's options, by their short and long names, and what they are where absent. */
const OPTIONS: readonly (readonly [short: string, long: string, standard: number])[] = [
  ["n", "batchsize", 100],
  ["c", "in_channels", 3],
  ["!", "in_d", 32],
  ["H", "in_h", 32],
  ["W", "in_w", 32],
  ["k", "out_channels", 32],
  ["@", "fil_d", 3],
  ["y", "fil_h", 3],
  ["x", "fil_w", 3],
  ["$", "pad_d", 0],
  ["p", "pad_h", 0],
  ["q", "pad_w", 0],
  ["#", "conv_stride_d", 1],
  ["u", "conv_stride_h", 1],
  ["v", "conv_stride_w", 1],
  ["^", "dilation_d", 1],
  ["l", "dilation_h", 1],
  ["j", "dilation_w", 1],
  ["%", "trans_output_pad_d", 0],
  ["Y", "trans_output_pad_h", 0],
  ["X", "trans_output_pad_w", 0],
  ["g", "group_count", 1],
  ["F", "forw", 0],
  ["b", "bias", 0],
  ["_", "spatial_dim", 2],
];

const TYPES: Readonly<Record<string, string>> = {
  conv: "f32",
  convfp16: "f16",
  convbfp16: "bf16",
  convint8: "i8",
};

/** Whether a text holds commands of MIOpenDriver. */
export function isMiopenLog(text: string): boolean {
  return /\bMIOpenDriver(\.exe)?\s+\w/.test(text);
}

/** Layers of commands such as `MIOpen(HIP): Command [LogCmdConvolution] ./bin/MIOpenDriver conv -n 64 -c 3 …`. */
export function miopenLayers(text: string): ModelLayers {
  const layers: Layer[] = [];
  const left: { name: string; why: string }[] = [];
  let calls = 0;
  for (const [, command, rest] of text.matchAll(/\bMIOpenDriver(?:\.exe)?[ \t]+(\w+)([^\r\n]*)/g)) {
    const name = `${command}_${++calls}`;
    const said = TYPES[command!];
    if (said === undefined) {
      left.push({ name, why: "it is no convolution" });
      continue;
    }
    try {
      layers.push({ name, ...layerType(said), ...miopenLayer(rest!) });
    } catch (error) {
      if (!isInputError(error)) throw error;
      left.push({ name, why: error.message });
    }
  }
  return { layers, left };
}

function miopenLayer(text: string): Pick<Layer, "problem" | "ops" | "follows"> {
  const words = text.trim().split(/\s+/);
  const valueOf = (short: string, long: string) => {
    const at = words.findIndex((word) => word === `-${short}` || word === `--${long}`);
    return at < 0 ? undefined : words[at + 1];
  };
  const option = (name: string) => {
    const [short, long, standard] = OPTIONS.find(([, long]) => long === name)!;
    return Number(valueOf(short, long) ?? standard);
  };
  const rank = option("spatial_dim") === 3 ? 3 : 2;
  const axes = (name: string) => ["d", "h", "w"].slice(3 - rank).map((axis) => option(name + axis));
  const sizes = {
    batch: option("batchsize"),
    inChannels: option("in_channels"),
    outChannels: option("out_channels"),
    groups: option("group_count"),
    inputSize: axes("in_"),
    filterSize: axes("fil_"),
    stride: axes("conv_stride_"),
    dilation: axes("dilation_"),
  };
  const padding = axes("pad_");
  const transposed = valueOf("m", "mode") === "trans";
  const conv = transposed
    ? convTransposeProblem({ ...sizes, padding, outputPadding: axes("trans_output_pad_") })
    : convProblem({ ...sizes, paddingBegin: padding });
  // Bits: 1 forward, 2 backward-data, 4 backward-filter; 0 is all.
  const bits = option("forw") || 7;
  const ops: readonly Operation[] = transposed
    ? ["bwd-data", "fwd", "bwd-filter"]
    : ["fwd", "bwd-data", "bwd-filter"];
  return {
    problem: { conv },
    ops: ops.filter((_, bit) => (bits & (1 << bit)) !== 0),
    ...(option("bias") === 1 ? { follows: ["bias"] } : {}),
  };
}

/** Primitives that are convolutions or products. */
const TAKEN = ["convolution", "deconvolution", "inner_product", "matmul"];

/** Whether a text holds lines of `ONEDNN_VERBOSE`. */
export function isOnednnLog(text: string): boolean {
  return /^(onednn|dnnl|mkldnn)_verbose,/m.test(text);
}

/**
 * Layers of a log that `ONEDNN_VERBOSE=1` (or `profile_exec`) makes: one for each primitive that ran. Their problems are
 * benchdnn's descriptors.
 */
export function onednnLayers(text: string): ModelLayers {
  const layers: Layer[] = [];
  const left: { name: string; why: string }[] = [];
  const calls: Record<string, number> = {};
  for (const line of text.split(/\r?\n/)) {
    if (!/^(onednn|dnnl|mkldnn)_verbose,/.test(line)) continue;
    const fields = line.split(",");
    const at = fields.indexOf("exec");
    const kind = fields[at + 2];
    if (at < 0 || kind === undefined || !TAKEN.includes(kind)) continue;
    const name = `${kind}_${calls[kind] = (calls[kind] ?? 0) + 1}`;
    try {
      const layer = onednnLayer(kind, fields.slice(at + 3));
      if (typeof layer === "string") left.push({ name, why: layer });
      else layers.push({ ...layer, name });
    } catch (error) {
      if (!isInputError(error)) throw error;
      left.push({ name, why: error.message.split("\n")[0]! });
    }
  }
  return { layers, left };
}

/** What a primitive computes, from its fields; why it is not taken where it is not. */
function onednnLayer(kind: string, fields: readonly string[]): Omit<Layer, "name"> | string {
  const text = fields.join(",");
  const direction = /\b(forward|backward_data|backward_weights|backward)/.exec(text)?.[1] ??
    "forward";
  const type = /\b(?:src|diff_src)[:_](?:[a-z]+:)?([a-z]+\d\w*)\b/.exec(text)?.[1] ?? "f32";
  const follows = [
    ...(/\bbia[:_]/.test(text) ? ["bias"] : []),
    ...[...text.matchAll(/eltwise_([a-z_]+)/g)].map(([, name]) => name!),
  ];
  const common = { ...layerType(type), ...(follows.length === 0 ? {} : { follows }) };
  if (kind === "matmul") {
    const sizes = fields.find((field) => /^[\dx]+:[\dx]+(:[\dx]+)?$/.test(field));
    return sizes === undefined ? "it has no sizes" : matmul(sizes, text, common);
  }
  const problem = fields.find((field) => /^(g\d+_?)?mb\d+/.test(field));
  if (problem === undefined) return "it has no sizes";
  if (kind === "inner_product") return innerProduct(problem, direction, common);
  const conv = kind === "convolution" ? parseDescriptor(problem) : transposed(problem);
  const forward = kind === "convolution" ? "fwd" : "bwd-data";
  const ops: Readonly<Record<string, Operation>> = {
    forward,
    backward_data: forward === "fwd" ? "bwd-data" : "fwd",
    backward_weights: "bwd-filter",
  };
  const op = ops[direction];
  return op === undefined ? `its direction is ${direction}` : {
    ...common,
    problem: { conv },
    ops: [op],
  };
}

/** A deconvolution's descriptor names the sizes of what comes in first, which is the output of the convolution. */
function transposed(text: string): ConvProblem {
  const swapped = text.replaceAll(
    /(?<![a-z])([io])([cdhw])(?=\d)/g,
    (_, side, axis) => `${side === "i" ? "o" : "i"}${axis}`,
  );
  return parseDescriptor(swapped, "bwd-data");
}

type Common = Pick<Layer, "dtype" | "said" | "follows">;

/** `mb64ic512ih7iw7oc10`: a product with all of an image as its depth. */
function innerProduct(text: string, direction: string, common: Common): Omit<Layer, "name"> {
  const size = (key: string) => Number(new RegExp(`(?<![a-z])${key}(\\d+)`).exec(text)?.[1] ?? 1);
  const [m, n] = [size("mb"), size("oc")];
  const k = ["ic", "id", "ih", "iw"].reduce((product, key) => product * size(key), 1);
  const gemm = direction === "backward_data"
    ? gemmProblem({ m, n: k, k: n })
    : direction === "backward_weights"
    ? gemmProblem({ m: n, n: k, k: m, transpose: "tn" })
    : gemmProblem({ m, n, k, transpose: "nt" });
  return { ...common, problem: { gemm }, ops: [] };
}

/** `2x4:4x8`, with a batch in front that may be 1 on a side. */
function matmul(text: string, fields: string, common: Common): Omit<Layer, "name"> | string {
  const [a, b] = text.split(":").map((shape) => shape.split("x").map(Number)) as [
    number[],
    number[],
  ];
  const [m, k] = a.slice(-2);
  const [depth, n] = b.slice(-2);
  if (a.length < 2 || b.length < 2 || k !== depth) return `its sizes are ${text}`;
  const batches = [a, b].map((shape) => shape.slice(0, -2).reduce((x, y) => x * y, 1));
  const stored = ["src", "wei"].map((which) =>
    new RegExp(`\\b${which}[:_][^ ]*:(?:ba|acb|abdc):`).test(fields) ? "t" : "n"
  ).join("") as Transpose;
  const batch = Math.max(...batches);
  // Matrices that meet the same B are one with all of their rows.
  const joined = batches[1] === 1 && stored[0] === "n";
  const sizes = joined ? { m: batch * m!, batch: 1 } : { m: m!, batch };
  const gemm = gemmProblem({ ...sizes, n: n!, k: k!, transpose: stored });
  return { ...common, problem: { gemm }, ops: [] };
}
