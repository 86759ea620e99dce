import type { ConvProblem, Operation } from "../problem/conv_problem.ts";
import { printDescriptor } from "../problem/descriptor.ts";
import { type GemmProblem, gemmProblem, type Transpose } from "../problem/gemm_problem.ts";
import { printGemm } from "../problem/gemm_suite.ts";

/** Element types that layers run in. */
type LayerDType = "f32" | "f16" | "bf16" | "i8";

/** A convolution or a product of a network. */
export interface Layer {
  readonly name: string;
  readonly problem: { readonly conv: ConvProblem } | { readonly gemm: GemmProblem };
  /** What is computed of a convolution; of a product none. */
  readonly ops: readonly Operation[];
  readonly dtype: LayerDType;
  /** The element type that the source says, where layers run in none such. */
  readonly said?: string | undefined;
  /** What is fused or follows: `bias`, `relu`. */
  readonly follows?: readonly string[];
  /** Whether it reads the network's input, whose gradient nobody needs. */
  readonly first?: boolean;
}

/** What a source holds: its layers in their order, and what is no layer here, by name. */
export interface ModelLayers {
  readonly layers: readonly Layer[];
  readonly left: readonly { readonly name: string; readonly why: string }[];
  /** What else a reader must know of the list, a sentence each. */
  readonly notes?: readonly string[];
}

/** What fixes a model's free sizes, and what is listed of it. */
export interface ModelOptions {
  /** First size of the model's inputs. */
  readonly batch?: number | undefined;
  /** Shapes of inputs by name. */
  readonly inputShapes?: ReadonlyMap<string, readonly number[]> | undefined;
  /** Whether the gradients of a training step are listed, too. */
  readonly training?: boolean | undefined;
}

/** On what a model is run. */
export const RUNTIME_PROVIDERS = ["cpu", "webgpu"] as const;
export type RuntimeProvider = typeof RUNTIME_PROVIDERS[number];

/** Layers of one size. */
export interface LayerGroup extends Pick<Layer, "problem" | "ops" | "dtype" | "said"> {
  readonly members: readonly Layer[];
}

const DTYPES: Readonly<Record<string, LayerDType>> = {
  f32: "f32",
  f16: "f16",
  bf16: "bf16",
  i8: "i8",
  s8: "i8",
  u8: "i8",
};

/** How layers of an element type run: bytes as int8, and what is no type here as f32. */
export function layerType(said: string): Pick<Layer, "dtype" | "said"> {
  const dtype = DTYPES[said];
  return dtype === undefined ? { dtype: "f32", said } : { dtype };
}

/** A layer's sizes as a suite has them, without a name. */
export function layerSizes({ problem }: Pick<Layer, "problem">): string {
  const { name: _, ...sizes } = "gemm" in problem ? problem.gemm : problem.conv;
  return "m" in sizes ? printGemm(sizes) : printDescriptor(sizes);
}

/** Layers of the same sizes, operations and types together, in the order of the first of each. */
export function groupLayers(layers: readonly Layer[]): LayerGroup[] {
  const key = (layer: Layer) =>
    [layerSizes(layer), layer.ops.join(), layer.dtype, layer.said].join("|");
  return [...Map.groupBy(layers, key).values()].map((members) => {
    const { problem, ops, dtype, said } = members[0]!;
    return { problem, ops, dtype, said, members };
  });
}

const OTHER = { n: "t", t: "n" } as const;

/** A layer with the gradients that a training step computes: of both operands, but for the network's input. */
export function withGradients(layer: Layer): Layer[] {
  const { problem, name, first = false } = layer;
  if ("conv" in problem) {
    const [forward] = layer.ops;
    const ofInput = forward === "fwd" ? "bwd-data" : "fwd";
    return [{ ...layer, ops: [forward!, ...(first ? [] : [ofInput] as const), "bwd-filter"] }];
  }
  const { m, n, k, batch, transpose } = problem.gemm;
  const [a, b] = [...transpose] as ("n" | "t")[] as ["n" | "t", "n" | "t"];
  const product = (of: string, sizes: { m: number; n: number; k: number }, stored: string) => ({
    name: `${name}.${of}`,
    problem: { gemm: gemmProblem({ ...sizes, batch, transpose: stored as Transpose }) },
    ops: [],
    dtype: layer.dtype,
    said: layer.said,
  });
  const ofA = a === "n"
    ? product("dA", { m, n: k, k: n }, `n${OTHER[b]}`)
    : product("dA", { m: k, n: m, k: n }, `${b}t`);
  const ofB = b === "n"
    ? product("dB", { m: k, n, k: m }, `${OTHER[a]}n`)
    : product("dB", { m: n, n: k, k: m }, `t${a}`);
  return [layer, ...(first ? [] : [ofA]), ofB];
}
