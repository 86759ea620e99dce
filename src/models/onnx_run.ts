/** The operands and results of a model's layers, as onnxruntime computes them. */
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { dirname, resolve } from "node:path";
import { InputRangeError, UnsupportedError } from "../errors.ts";
import type { ConvProblem } from "../problem/conv_problem.ts";
import { type GemmProblem, gemmProblem, gemmShape } from "../problem/gemm_problem.ts";
import { type DType, dtypeBytes } from "../tensor/dtype.ts";
import { fillTensor } from "../tensor/fill.ts";
import { elementCount, type Tensor, tensor } from "../tensor/tensor.ts";
import { einsumMatrices } from "./onnx_ops.ts";
import { type ByteLayer, byteNames, byteParts, byteProblem } from "./onnx_bytes.ts";
import {
  fieldsOf,
  graphBytes,
  message,
  parseNode,
  rewritten,
  textsOf,
  valueBytes,
} from "./onnx_format.ts";
import type { OnnxLayer, OnnxModel } from "./onnx.ts";
import type { RuntimeProvider } from "./layer.ts";
import {
  closeRuntime,
  openRuntime,
  type RuntimeSession,
  RuntimeTensor,
  runtimeWords,
} from "./onnxruntime.ts";

/** A layer of the model with its tensors by their parts: those of a convolution or a product, and `result`. */
export interface RunLayer {
  readonly name: string;
  readonly problem: { readonly conv: ConvProblem } | { readonly gemm: GemmProblem };
  readonly bias: boolean;
  readonly tensors: Readonly<Record<string, Tensor>>;
  /** Of bytes: in what it is. */
  readonly bytes?: ByteLayer;
}

/** A layer that is left out, and why. */
export interface LeftLayer {
  readonly name: string;
  readonly why: string;
}

/** Names of the tensors that a layer's parts are in the model. */
export interface Parts {
  readonly layer: OnnxLayer;
  readonly problem: RunLayer["problem"];
  readonly bias: boolean;
  readonly names: Readonly<Record<string, string>>;
  /** Output of the node that is run once more without its bias. */
  readonly unbiased?: string;
}

/** Element types by the runtime's numbers and names. */
const TYPES: readonly (readonly [number: number, name: string, dtype: DType])[] = [
  [1, "float32", "f32"],
  [2, "uint8", "u8"],
  [3, "int8", "i8"],
  [6, "int32", "i32"],
  [7, "int64", "i64"],
  [9, "bool", "bool"],
  [10, "float16", "f16"],
  [11, "float64", "f64"],
];

/** Results that one run of the model fetches at most, unless a single layer has more. */
const RUN_BYTES = 256 << 20;

/** The parts of a layer, or why they are not to be had. */
export function partsOf(layer: OnnxLayer): Parts | LeftLayer {
  const { name } = layer;
  const { node: { op, inputs, outputs, attributes }, problem } = layer;
  const [first = "", second = "", third = ""] = inputs;
  const result = outputs[0] ?? "";
  const bias = third !== "";
  const bytes = byteNames(layer);
  if (bytes !== undefined) {
    const conv = byteProblem(layer);
    if (typeof conv === "string") return { name, why: conv };
    return { layer, problem: { conv }, bias: bytes.bias !== undefined, names: bytes };
  }
  if ("conv" in problem) {
    const conv = { ...problem.conv, op: layer.ops[0]! };
    if (op === "Conv") {
      const named = { input: first, filter: second, ...(bias ? { bias: third } : {}), result };
      return { layer, problem: { conv }, bias, names: named };
    }
    if (op !== "ConvTranspose") return { name, why: `${op} is more than sums` };
    // A gradient has no bias.
    const named = { output: first, filter: second, result: bias ? `${result}/unbiased` : result };
    const more = bias ? { unbiased: result } : {};
    return { layer, problem: { conv }, bias: false, names: named, ...more };
  }
  if (op === "MatMul") {
    return { layer, problem, bias: false, names: { a: first, b: second, result } };
  }
  if (op === "Einsum") {
    const gemm = gemmProblem({ ...problem.gemm, transpose: "nn" });
    return { layer, problem: { gemm }, bias: false, names: { a: first, b: second, result } };
  }
  if (op !== "Gemm") return { name, why: `${op} is more than sums` };
  const factor = (name: string) => attributes.get(name)?.float ?? 1;
  const beta = bias ? factor("beta") : 0;
  // A bias that is broadcast over rows is C with one row.
  const gemm = gemmProblem({ ...problem.gemm, alpha: factor("alpha"), beta });
  const named = { a: first, b: second, ...(bias ? { c: third } : {}), result };
  return { layer, problem: { gemm }, bias: false, names: named };
}

/** What a model is fed: tensors by the names of its inputs, or made data by a seed. */
export function feedsOf(
  { inputs }: Pick<OnnxModel, "inputs">,
  given: ReadonlyMap<string, Tensor>,
  seed: number,
): Map<string, Tensor> {
  const unknown = [...given.keys()].find((name) => !inputs.has(name));
  if (unknown !== undefined) {
    throw new InputRangeError(
      `Cannot run the model: there is no input ${unknown}, there are ${
        [...inputs.keys()].join(", ")
      }`,
    );
  }
  return new Map([...inputs].map(([name, { type, shape }], place) => {
    const dtype = TYPES.find(([number]) => number === type)?.[2];
    if (dtype === undefined) {
      throw new InputRangeError(`Cannot run the model: its input ${name} has a type of its own`);
    }
    const own = given.get(name);
    const float = dtype === "f32" || dtype === "f16" || dtype === "f64";
    const fed = own ?? fillTensor(dtype, shape, float ? "uniform01" : "constant", seed + place);
    if (fed.dtype !== dtype || fed.shape.join() !== shape.join()) {
      throw new InputRangeError(
        `Cannot run the model: its input ${name} is ${dtype} [${shape.join(", ")}], ` +
          `it is fed ${fed.dtype} [${fed.shape.join(", ")}]`,
      );
    }
    return [name, fed];
  }));
}

/**
 * What conditions of a model are, by a run of it.
 *
 * @throws {UnsupportedError} where onnxruntime cannot be had. {RangeError} with what it says where it cannot run the model.
 */
export async function runConditions(
  model: Uint8Array,
  names: readonly string[],
  feeds: ReadonlyMap<string, Tensor>,
  path: string,
): Promise<Map<string, boolean>> {
  const values = new Map<string, boolean>();
  const take = (name: string, { data }: Pick<Tensor, "data">) => values.set(name, data[0] === 1);
  for (const [name, value] of feeds) if (names.includes(name)) take(name, value);
  const wanted = names.filter((name) => !feeds.has(name));
  if (wanted.length === 0) return values;
  const session = await openRuntime();
  try {
    load(session, model, wanted, { path });
    const results = session.run(fedBy(feeds), fetching(wanted), {});
    for (const name of wanted) take(name, results[name]!);
  } catch (error) {
    throw refusalOf(error, path);
  } finally {
    closeRuntime(session);
  }
  return values;
}

function fedBy(feeds: ReadonlyMap<string, Tensor>): Record<string, RuntimeTensor> {
  return Object.fromEntries([...feeds].map(([name, value]) => [name, toRuntime(value)]));
}

function fetching(names: readonly string[]): Record<string, null> {
  return Object.fromEntries(names.map((name) => [name, null]));
}

/** What onnxruntime says, as a sentence. */
function refusalOf(error: unknown, path: string): unknown {
  if (error instanceof InputRangeError) return error;
  if (error instanceof Error && error.message.includes("Failed to get a WebGPU adapter")) {
    return new UnsupportedError(
      `Cannot run ${path}: onnxruntime's WebGPU provider takes no GPU driver of this machine`,
      { cause: error },
    );
  }
  return new InputRangeError(`Cannot run ${path}: onnxruntime says: ${runtimeWords(error)}`);
}

/**
 * Runs the model and gives each layer's tensors, some at a time, so that they are never all in memory.
 *
 * @throws {UnsupportedError} where onnxruntime cannot be had. {RangeError} with what it says where it cannot run the model.
 */
export async function* runLayers(
  { model }: Pick<OnnxModel, "model">,
  all: readonly Parts[],
  feeds: ReadonlyMap<string, Tensor>,
  path: string,
  provider: RuntimeProvider = "cpu",
): AsyncGenerator<RunLayer | LeftLayer, void, undefined> {
  const session = await openRuntime();
  const wanted = new Set(all.flatMap(({ names }) => Object.values(names)));
  for (const name of feeds.keys()) wanted.delete(name);
  try {
    const unbiased = all.flatMap(({ unbiased }) => unbiased ?? []);
    const nodes = unbiasedNodes(model, unbiased);
    load(session, model, [...wanted], { path, provider, nodes });
    const fed = fedBy(feeds);
    for (const some of batches(all)) {
      const names = some.flatMap(({ names }) => Object.values(names))
        .filter((name) => wanted.has(name));
      const results = session.run(fed, fetching(names), {});
      for (const parts of some) {
        const { layer: { name, node }, problem, bias } = parts;
        if ("conv" in problem && byteNames(parts.layer) !== undefined) {
          const raw = Object.fromEntries(
            Object.entries(parts.names)
              .map(([part, name]) => [part, feeds.get(name) ?? fromRuntime(results[name]!)]),
          );
          const made = byteParts(problem.conv, "gemm" in parts.layer.problem, raw);
          yield typeof made === "string" ? { name, why: made } : { name, problem, bias, ...made };
          continue;
        }
        const entries = Object.entries(parts.names).map(([part, name]) => {
          const value = feeds.get(name) ?? fromRuntime(results[name]!);
          const lying = node.op === "Einsum"
            ? einsumMatrices(node, part as "a" | "b" | "result", value)
            : value;
          return [part, asPart(problem, part, lying)] as const;
        });
        const open = entries.find(([, value]) => value === undefined);
        yield open === undefined
          ? { name, problem, bias, tensors: Object.fromEntries(entries) as RunLayer["tensors"] }
          : { name, why: `${open[0]} is broadcast along a batch` };
      }
    }
  } catch (error) {
    throw refusalOf(error, path);
  } finally {
    closeRuntime(session);
  }
}

/** Loads the model with further outputs and nodes: a message that follows another of the same field adds to its lists. */
function load(
  session: RuntimeSession,
  model: Uint8Array,
  outputs: readonly string[],
  { path, provider = "cpu", nodes = [] }: {
    readonly path: string;
    readonly provider?: RuntimeProvider;
    readonly nodes?: readonly Uint8Array[];
  },
): void {
  const there = new Set(outputNames(model));
  const writer = new BinaryWriter().raw(model).tag(7, WireType.LengthDelimited).fork();
  for (const node of nodes) writer.raw(node);
  for (const name of outputs) {
    if (there.has(name)) continue;
    writer.tag(12, WireType.LengthDelimited)
      .bytes(valueBytes({ name, type: 0, shape: undefined }));
  }
  const bytes = writer.join().finish();
  session.loadModel(bytes.buffer, bytes.byteOffset, bytes.byteLength, {
    executionProviders: [provider],
    logSeverityLevel: 4,
    extra: {
      session: { model_external_initializers_file_folder_path: dirname(resolve(path)) },
    },
  });
}

/** Nodes with some outputs once more, without the bias: as fields of the graph. */
function unbiasedNodes(model: Uint8Array, outputs: readonly string[]): Uint8Array[] {
  if (outputs.length === 0) return [];
  const encoder = new TextEncoder();
  const fields: Uint8Array[] = [];
  for (const { no, bytes } of fieldsOf(graphBytes(model))) {
    const output = no === 1 ? parseNode(bytes).outputs[0] : undefined;
    if (output === undefined || !outputs.includes(output)) continue;
    let input = 0;
    const unbiased = rewritten(bytes, (part, text) => {
      if (part === 1) return input++ === 2 ? new Uint8Array() : text;
      return part === 2 || part === 3 ? encoder.encode(`${output}/unbiased`) : undefined;
    });
    fields.push(message(1, unbiased));
  }
  return fields;
}

function outputNames(model: Uint8Array): string[] {
  return [...fieldsOf(model)].filter(({ no }) => no === 7)
    .flatMap(({ bytes }) => [...fieldsOf(bytes)])
    .flatMap(({ no, bytes }) => no === 12 ? textsOf(bytes, 1) : []);
}

/** Parts whose tensors are fetched by one run. */
function* batches(all: readonly Parts[]): Generator<Parts[]> {
  let some: Parts[] = [];
  let bytes = 0;
  for (const parts of all) {
    const own = 4 * sizeOf(parts);
    if (some.length > 0 && bytes + own > RUN_BYTES) {
      yield some;
      [some, bytes] = [[], 0];
    }
    some.push(parts);
    bytes += own;
  }
  if (some.length > 0) yield some;
}

/** Elements of a layer's tensors. */
function sizeOf({ problem }: Parts): number {
  if ("gemm" in problem) {
    return (["a", "b", "output"] as const)
      .reduce((sum, which) => sum + elementCount(gemmShape(problem.gemm, which)), 0);
  }
  const { batch, inChannels, outChannels, groups, inputSize, outputSize, filterSize } =
    problem.conv;
  return batch * (inChannels * elementCount(inputSize) + outChannels * elementCount(outputSize)) +
    outChannels * inChannels / groups * elementCount(filterSize);
}

function toRuntime({ dtype, data, shape }: Tensor): RuntimeTensor {
  return new RuntimeTensor(TYPES.find(([, , own]) => own === dtype)![1], data, shape);
}

function fromRuntime({ type, data, dims }: RuntimeTensor): Tensor {
  const dtype = TYPES.find(([, name]) => name === type)?.[2];
  if (dtype === undefined) {
    throw new InputRangeError(`Cannot run the model: it has a tensor of ${type}`);
  }
  // Halves come as their bits.
  const own = dtype === "f16"
    ? new Float16Array(data.buffer, data.byteOffset, data.byteLength / dtypeBytes("f16"))
    : data;
  return tensor(dtype, dims, own as Tensor["data"]);
}

/** A tensor in the shape that its part has in the problem: products of a batch have one axis of it. Undefined where it is broadcast. */
function asPart(problem: RunLayer["problem"], part: string, value: Tensor): Tensor | undefined {
  if (!("gemm" in problem) || part === "c") return value;
  const shape = gemmShape(problem.gemm, part === "result" ? "output" : part as "a" | "b");
  return elementCount(shape) === elementCount(value.shape)
    ? tensor(value.dtype, shape, value.data)
    : undefined;
}
