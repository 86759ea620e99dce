import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { InputRangeError, UnsupportedError } from "../errors.ts";
import { constantConditions } from "./onnx_expand.ts";
import {
  fieldsOf,
  graphBytes,
  namesRead,
  type OnnxGraph,
  parseGraph,
  parseNode,
  parseTensor,
  type TensorInfo,
  valueBytes,
  type ValueInfo,
} from "./onnx_format.ts";
import type { ModelOptions } from "./layer.ts";
import { closeRuntime, openRuntime, type RuntimeValue, runtimeWords } from "./onnxruntime.ts";
import { makeTemporary } from "../temporary.ts";

/** A tensor's type and sizes, all known. */
export interface KnownValue {
  readonly type: number;
  readonly shape: readonly number[];
}

/** A constant of more elements holds no shape, and is an input to the runtime, which then needs no weights. */
const SMALL = 1024;

/**
 * The model's inputs with their free sizes fixed: by name, else a first size by the batch (1 where none is asked for); names of sizes
 * stand for the same number everywhere.
 *
 * @throws {RangeError} that says what is left to fix, or contradicts the model.
 */
export function fixedInputs(
  graph: OnnxGraph,
  { batch, inputShapes = new Map() }: ModelOptions,
  path: string,
): { inputs: Map<string, KnownValue>; sizes: Map<string, number> } {
  const doing = `Cannot read ${path}`;
  const own = graph.inputs.filter(({ name }) => !graph.constants.has(name));
  for (const name of inputShapes.keys()) {
    if (own.some((input) => input.name === name)) continue;
    throw new InputRangeError(
      `${doing}: there is no input ${name}, there are ${own.map((one) => one.name).join(", ")}`,
    );
  }
  const sizes = new Map<string, number>();
  const bind = (input: ValueInfo, axis: number, size: number) => {
    const said = input.shape![axis]!;
    const known = typeof said === "number" ? said : sizes.get(said);
    if (known !== undefined && known !== size) {
      throw new InputRangeError(
        `${doing}: size ${axis} of the input ${input.name} is ${known} in the model, ${size} was asked for`,
      );
    }
    if (typeof said === "string" && said !== "") sizes.set(said, size);
  };
  for (const input of own) {
    const asked = inputShapes.get(input.name);
    if (asked === undefined) continue;
    if (input.shape !== undefined && input.shape.length !== asked.length) {
      throw new InputRangeError(
        `${doing}: the input ${input.name} has ${input.shape.length} axes, ` +
          `--input-shape says ${asked.join("x")}`,
      );
    }
    if (input.shape !== undefined) asked.forEach((size, axis) => bind(input, axis, size));
  }
  for (const input of own) {
    const first = input.shape?.[0];
    if (first === undefined || inputShapes.has(input.name)) continue;
    if (typeof first === "string") bind(input, 0, sizes.get(first) ?? batch ?? 1);
    else if (batch !== undefined && input.shape!.length > 2) bind(input, 0, batch);
  }
  const inputs = new Map<string, KnownValue>();
  const open: { readonly shown: string; readonly option: string }[] = [];
  for (const { name, type, shape } of own) {
    const fixed = inputShapes.get(name) ??
      shape?.map((size, axis) =>
        typeof size === "number"
          ? size
          : sizes.get(size) ?? (axis === 0 && size === "" ? batch ?? 1 : size)
      );
    const free = fixed?.some((size) => typeof size !== "number") ?? type !== 0;
    if (free) {
      const shown = shape?.map((size) => size === "" ? "?" : size).join(" x ") ?? "of any shape";
      const example = (fixed ?? [1, 3, 224, 224])
        .map((size, axis) => typeof size === "number" ? size : axis < 2 ? 1 : 224).join("x");
      open.push({ shown: `${name} is ${shown}`, option: `--input-shape ${name}=${example}` });
    } else if (fixed !== undefined) {
      inputs.set(name, { type, shape: fixed as readonly number[] });
    }
  }
  if (open.length > 0) {
    throw new InputRangeError(
      `${doing}: its input ${open.map(({ shown }) => shown).join(", ")}, ` +
        `give sizes such as ${open.map(({ option }) => option).join(" ")}`,
    );
  }
  return { inputs, sizes };
}

/** What the model itself says of its tensors: constants, inputs, and values whose sizes are numbers or names that are fixed. */
export function statedShapes(
  graph: OnnxGraph,
  inputs: ReadonlyMap<string, KnownValue>,
  sizes: ReadonlyMap<string, number>,
): Map<string, KnownValue> {
  const known = new Map<string, KnownValue>();
  for (const { name, type, shape } of [...graph.values, ...graph.outputs]) {
    const fixed = shape?.map((size) => typeof size === "number" ? size : sizes.get(size));
    if (fixed?.every((size) => size !== undefined)) known.set(name, { type, shape: fixed });
  }
  for (const { outputs: [output], op, attributes } of graph.nodes) {
    const value = op === "Constant" ? attributes.get("value")?.tensor : undefined;
    if (value !== undefined && output !== undefined) known.set(output, value);
  }
  for (const [name, constant] of [...graph.constants, ...inputs]) known.set(name, constant);
  return known;
}

/**
 * Shapes of tensors that the model does not state, by onnxruntime's inference: the model is loaded with its inputs fixed, these
 * tensors as outputs, and its weights as inputs, so that neither they nor external data are read.
 *
 * @throws {UnsupportedError} where onnxruntime cannot be had.
 * @throws {RangeError} with what it says where it cannot load the model.
 */
export async function inferredShapes(
  model: Uint8Array,
  inputs: ReadonlyMap<string, KnownValue>,
  wanted: readonly string[],
  path: string,
): Promise<Map<string, KnownValue>> {
  const { outputs, folded } = await foldModel(model, inputs, wanted, path);
  const known = outputs
    .filter(({ shape }) => shape.length > 0 && shape.every((size) => size >= 0))
    .map(({ name, type, shape }) => [name, { type, shape }] as const);
  return new Map([...known, ...outputShapes(folded)]);
}

/**
 * Conditions that follow from shapes and constants, by onnxruntime's folding; none where the runtime cannot be had.
 */
export async function foldedConditions(
  model: Uint8Array,
  inputs: ReadonlyMap<string, KnownValue>,
  names: readonly string[],
  path: string,
): Promise<Map<string, boolean>> {
  try {
    return await ofThoseThatLoad(names, async (some) => {
      const { folded } = await foldModel(model, inputs, some, path);
      return constantConditions(graphBytes(folded));
    });
  } catch (error) {
    if (error instanceof UnsupportedError) return new Map();
    throw error;
  }
}

/** What a function gives for names, but for those for which the runtime refuses the model: the sizes fit one of two branches, say. */
export async function ofThoseThatLoad<T>(
  names: readonly string[],
  ask: (names: readonly string[]) => Promise<Map<string, T>>,
): Promise<Map<string, T>> {
  try {
    return await ask(names);
  } catch (error) {
    if (!(error instanceof InputRangeError)) throw error;
    if (names.length === 1) return new Map();
    const middle = names.length >> 1;
    return new Map([
      ...await ofThoseThatLoad(names.slice(0, middle), ask),
      ...await ofThoseThatLoad(names.slice(middle), ask),
    ]);
  }
}

/** Loads what of a model leads to some tensors, with its inputs fixed; gives what the runtime says of these, and the model that it saves. */
async function foldModel(
  model: Uint8Array,
  inputs: ReadonlyMap<string, KnownValue>,
  wanted: readonly string[],
  path: string,
): Promise<{ outputs: readonly RuntimeValue[]; folded: Uint8Array }> {
  const session = await openRuntime();
  const bytes = openModel(model, inputs, wanted);
  // The runtime folds what depends on shapes alone, and tells the shapes that follow in the model that it saves. Where there is nothing
  // to fold it saves the model as it came; then the session itself tells them, with no axes where it knows none.
  const saved = await makeTemporary("file", { suffix: ".onnx" });
  try {
    session.loadModel(bytes.buffer, bytes.byteOffset, bytes.byteLength, {
      graphOptimizationLevel: "basic",
      optimizedModelFilePath: saved,
      logSeverityLevel: 4,
    });
    return { outputs: session.outputMetadata, folded: await Deno.readFile(saved) };
  } catch (error) {
    throw new InputRangeError(
      `Cannot read ${path}: onnxruntime cannot load it: ${runtimeWords(error)}`,
    );
  } finally {
    closeRuntime(session);
    await Deno.remove(saved);
  }
}

function outputShapes(model: Uint8Array): Map<string, KnownValue> {
  const known = new Map<string, KnownValue>();
  for (const { name, type, shape } of parseGraph(graphBytes(model)).outputs) {
    const sizes = shape?.filter((size) => typeof size === "number");
    if (sizes !== undefined && sizes.length === shape?.length) {
      known.set(name, { type, shape: sizes });
    }
  }
  return known;
}

/** Versions of the format between which a model is the same: from 4 on constants need not be inputs, the runtime knows 10. */
const OLDEST_IR = 4;
const NEWEST_IR = 10;

/** What of a model leads to some tensors, which are its outputs: without its weights, with its inputs fixed. */
function openModel(
  model: Uint8Array,
  inputs: ReadonlyMap<string, KnownValue>,
  wanted: readonly string[],
): Uint8Array {
  const writer = new BinaryWriter();
  for (const field of fieldsOf(model)) {
    if (field.no === 1) {
      writer.tag(1, WireType.Varint).int32(Math.min(Math.max(field.int, OLDEST_IR), NEWEST_IR));
    } else if (field.no !== 7) writer.raw(field.raw);
    if (field.no !== 7) continue;
    const outputs = new Set(wanted);
    const leading = nodesTo(field.bytes, wanted);
    const seen = new Set<string>();
    writer.tag(7, WireType.LengthDelimited).fork();
    const input = (info: ValueInfo) => {
      if (seen.has(info.name)) return;
      seen.add(info.name);
      writer.tag(11, WireType.LengthDelimited).bytes(valueBytes(info));
    };
    for (const part of fieldsOf(field.bytes)) {
      if (part.no === 5) {
        const tensor = parseTensor(part.bytes);
        if (holdsShape(tensor)) writer.raw(part.raw);
        else input(tensor);
      } else if (part.no === 1) {
        if (!leading.has(part.bytes.byteOffset)) continue;
        const large = largeConstant(part.bytes);
        if (large === undefined) writer.raw(part.raw);
        else input(large);
      } else if (part.no === 12) {
        if (outputs.delete(nameOf(part.bytes))) writer.raw(part.raw);
      } else if (part.no === 11) {
        const name = nameOf(part.bytes);
        const fixed = inputs.get(name);
        if (fixed !== undefined) input({ name, ...fixed });
      } else if (part.no !== 13) writer.raw(part.raw);
    }
    for (const name of outputs) {
      writer.tag(12, WireType.LengthDelimited).bytes(
        valueBytes({ name, type: 0, shape: undefined }),
      );
    }
    writer.join();
  }
  return writer.finish();
}

/** Where in the file the nodes begin that some tensors are computed by. */
function nodesTo(graph: Uint8Array, wanted: readonly string[]): Set<number> {
  const makers = new Map<string, Uint8Array>();
  for (const { no, bytes } of fieldsOf(graph)) {
    if (no === 1) { for (const name of parseNode(bytes).outputs) makers.set(name, bytes); }
  }
  const leading = new Set<number>();
  const waiting = [...wanted];
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    const node = makers.get(name);
    if (node === undefined || leading.has(node.byteOffset)) continue;
    leading.add(node.byteOffset);
    waiting.push(...namesRead(parseNode(node)));
  }
  return leading;
}

/** The value of a node that is a constant too large to hold a shape. */
function largeConstant(bytes: Uint8Array): ValueInfo | undefined {
  const { op, outputs: [name], attributes } = parseNode(bytes);
  const value = op === "Constant" ? attributes.get("value")?.tensor : undefined;
  return value === undefined || name === undefined || holdsShape(value)
    ? undefined
    : { ...value, name };
}

function holdsShape({ shape, external }: TensorInfo): boolean {
  return external.size === 0 && shape.reduce((x, y) => x * y, 1) <= SMALL;
}

/** The first field of a message is its name. */
function nameOf(message: Uint8Array): string {
  for (const { no, bytes } of fieldsOf(message)) {
    if (no === 1) return new TextDecoder().decode(bytes);
  }
  return "";
}
