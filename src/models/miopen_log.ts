import { isInputError } from "../errors.ts";
import { convProblem, type Operation } from "../problem/conv_problem.ts";
import { convTransposeProblem } from "../problem/conv_transpose.ts";
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
      layers.push({ name, ...layerType(said), ...layerOf(rest!) });
    } catch (error) {
      if (!isInputError(error)) throw error;
      left.push({ name, why: error.message });
    }
  }
  return { layers, left };
}

function layerOf(text: string): Pick<Layer, "problem" | "ops" | "follows"> {
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
