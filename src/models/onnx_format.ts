/** The parts of ONNX's protobuf messages that layers are read from. Bytes stay views of the file. */
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";

/** A field of a message as it lies in the file. */
interface Field {
  readonly no: number;
  /** With its tag. */
  readonly raw: Uint8Array;
  /** Of a string, bytes, a message or packed numbers; else empty. */
  readonly bytes: Uint8Array;
  /** Of a whole number; else 0. */
  readonly int: number;
}

/** An attribute of a node. */
interface Attribute {
  readonly int?: number;
  readonly float?: number;
  readonly ints: readonly number[];
  readonly text?: string;
  readonly tensor?: TensorInfo;
  /** Bytes of graphs. */
  readonly graphs: readonly Uint8Array[];
}

/** A node of a graph. */
export interface OnnxNode {
  readonly name: string;
  readonly op: string;
  readonly domain: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes: ReadonlyMap<string, Attribute>;
}

/** A tensor's type and sizes; a size is a number, or a name where it is free. */
export interface ValueInfo {
  readonly name: string;
  /** ONNX's number of the element type; 0 where it is no tensor. */
  readonly type: number;
  /** Undefined where nothing is said. */
  readonly shape: readonly (number | string)[] | undefined;
}

/** A constant tensor without its values. */
export interface TensorInfo {
  readonly name: string;
  readonly type: number;
  readonly shape: readonly number[];
  /** Where values outside the file are: location, offset, length. */
  readonly external: ReadonlyMap<string, string>;
}

/** A graph. */
export interface OnnxGraph {
  readonly nodes: readonly OnnxNode[];
  readonly constants: ReadonlyMap<string, TensorInfo>;
  readonly inputs: readonly ValueInfo[];
  readonly outputs: readonly ValueInfo[];
  readonly values: readonly ValueInfo[];
}

const NO_BYTES = new Uint8Array();

/**
 * A message's fields in order.
 *
 * @throws {DamagedMessage} where what follows is no field.
 */
export function* fieldsOf(message: Uint8Array): Generator<Field> {
  const reader = new BinaryReader(message);
  while (reader.pos < reader.len) {
    const start = reader.pos;
    let [no, wire, bytes, int] = [0, 0, NO_BYTES, 0];
    try {
      [no, wire] = reader.tag();
      if (wire === WireType.LengthDelimited) bytes = reader.bytes() as Uint8Array<ArrayBuffer>;
      else if (wire === WireType.Varint) int = Number(reader.int64());
      else reader.skip(wire, no);
    } catch (cause) {
      throw new DamagedMessage(no, message.byteOffset + start, { cause });
    }
    yield { no, bytes, int, raw: message.subarray(start, reader.pos) };
  }
}

/** A field that cannot be read. */
export class DamagedMessage extends Error {
  constructor(
    /** Its number; 0 where not even that can be read. */
    readonly no: number,
    /** Where it begins in the file that messages are views of. */
    readonly offset: number,
    options: ErrorOptions,
  ) {
    super(`field ${no} at byte ${offset}`, options);
  }
}

/** Fields of a model's message. */
const MODEL_FIELDS: Readonly<Record<number, string>> = {
  1: "ir_version",
  2: "producer_name",
  3: "producer_version",
  4: "domain",
  5: "model_version",
  6: "doc_string",
  7: "graph",
  8: "opset_import",
  14: "metadata_props",
  20: "training_info",
  25: "functions",
};

/** What is wrong with a model's bytes, as a clause that names the field. */
export function damageOf(model: Uint8Array, { no, offset }: DamagedMessage): string {
  const known: Field[] = [];
  try {
    for (const field of fieldsOf(model)) {
      if (!(field.no in MODEL_FIELDS)) break;
      known.push(field);
      const begin = field.raw.byteOffset;
      if (begin <= offset && offset < begin + field.raw.length) {
        return `it is damaged: its ${MODEL_FIELDS[field.no]} cannot be read at byte ${offset}`;
      }
    }
  } catch (error) {
    if (!(error instanceof DamagedMessage)) throw error;
  }
  if (known.length === 0) return foreignWords(model);
  return no in MODEL_FIELDS
    ? `it is cut off: its ${MODEL_FIELDS[no]} goes beyond its ${model.length} bytes`
    : `it is damaged: no field of a model is at byte ${offset}`;
}

/** What a file is that is no model. */
function foreignWords(bytes: Uint8Array): string {
  const begin = decoder.decode(bytes.subarray(0, 100));
  if (begin.startsWith("version https://git-lfs")) {
    return "it stands for a file of Git LFS, `git lfs pull` fetches that";
  }
  return /^\s*</.test(begin) ? "it is a web page, no ONNX model" : "it is no ONNX model";
}

const decoder = new TextDecoder();

function textOf({ bytes }: Field): string {
  return decoder.decode(bytes);
}

/** Whole numbers that are packed, or stand one a field. */
function intsOf({ bytes, int }: Field): number[] {
  if (bytes.length === 0) return [int];
  const reader = new BinaryReader(bytes);
  const values: number[] = [];
  while (reader.pos < reader.len) values.push(Number(reader.int64()));
  return values;
}

/** The message of a model's graph; empty where it has none. */
export function graphBytes(model: Uint8Array): Uint8Array {
  for (const { no, bytes } of fieldsOf(model)) if (no === 7) return bytes;
  return NO_BYTES;
}

/** Strings of a message's fields of a number. */
export function textsOf(message: Uint8Array, no: number): string[] {
  return [...fieldsOf(message)].filter((field) => field.no === no).map(textOf);
}

/** Parses a graph; what is no field of one is passed over. */
export function parseGraph(message: Uint8Array): OnnxGraph {
  const graph = {
    nodes: [] as OnnxNode[],
    constants: new Map<string, TensorInfo>(),
    inputs: [] as ValueInfo[],
    outputs: [] as ValueInfo[],
    values: [] as ValueInfo[],
  };
  for (const field of fieldsOf(message)) {
    if (field.no === 1) graph.nodes.push(parseNode(field.bytes));
    else if (field.no === 5) {
      const constant = parseTensor(field.bytes);
      graph.constants.set(constant.name, constant);
    } else if (field.no === 11) graph.inputs.push(parseValue(field.bytes));
    else if (field.no === 12) graph.outputs.push(parseValue(field.bytes));
    else if (field.no === 13) graph.values.push(parseValue(field.bytes));
  }
  return graph;
}

/** Parses a node. */
export function parseNode(message: Uint8Array): OnnxNode {
  const node = { name: "", op: "", domain: "", inputs: [] as string[], outputs: [] as string[] };
  const attributes = new Map<string, Attribute>();
  for (const field of fieldsOf(message)) {
    if (field.no === 1) node.inputs.push(textOf(field));
    else if (field.no === 2) node.outputs.push(textOf(field));
    else if (field.no === 3) node.name = textOf(field);
    else if (field.no === 4) node.op = textOf(field);
    else if (field.no === 7) node.domain = textOf(field);
    else if (field.no === 5) attributes.set(...parseAttribute(field.bytes));
  }
  return { ...node, attributes };
}

/** Names of the tensors that a node reads, within its graphs too. */
export function namesRead({ inputs, attributes }: OnnxNode): string[] {
  const graphs = [...attributes.values()].flatMap(({ graphs }) => graphs).map(parseGraph);
  return [
    ...inputs,
    ...graphs.flatMap(({ nodes, outputs }) => [
      ...nodes.flatMap(namesRead),
      ...outputs.map(({ name }) => name),
    ]),
  ];
}

function parseAttribute(message: Uint8Array): [name: string, Attribute] {
  let name = "";
  let rest: Omit<Attribute, "ints" | "graphs"> = {};
  const ints: number[] = [];
  const graphs: Uint8Array[] = [];
  for (const field of fieldsOf(message)) {
    if (field.no === 1) name = textOf(field);
    else if (field.no === 2) {
      rest = { ...rest, float: new BinaryReader(field.raw.subarray(1)).float() };
    } else if (field.no === 3) rest = { ...rest, int: field.int };
    else if (field.no === 4) rest = { ...rest, text: textOf(field) };
    else if (field.no === 5) rest = { ...rest, tensor: parseTensor(field.bytes) };
    else if (field.no === 6 || field.no === 11) graphs.push(field.bytes);
    else if (field.no === 8) ints.push(...intsOf(field));
  }
  return [name, { ...rest, ints, graphs }];
}

/** Parses a tensor, but for its values. */
export function parseTensor(message: Uint8Array): TensorInfo {
  const tensor = { name: "", type: 0, shape: [] as number[] };
  const external = new Map<string, string>();
  for (const field of fieldsOf(message)) {
    if (field.no === 1) tensor.shape.push(...intsOf(field));
    else if (field.no === 2) tensor.type = field.int;
    else if (field.no === 8) tensor.name = textOf(field);
    else if (field.no === 13) {
      external.set(textsOf(field.bytes, 1)[0] ?? "", textsOf(field.bytes, 2)[0] ?? "");
    }
  }
  return { ...tensor, external };
}

function parseValue(message: Uint8Array): ValueInfo {
  let [name, type] = ["", 0];
  let shape: (number | string)[] | undefined;
  for (const field of fieldsOf(message)) {
    if (field.no === 1) name = textOf(field);
    if (field.no !== 2) continue;
    for (const kind of fieldsOf(field.bytes)) {
      if (kind.no !== 1) continue;
      for (const part of fieldsOf(kind.bytes)) {
        if (part.no === 1) type = part.int;
        if (part.no === 2) shape = [...fieldsOf(part.bytes)].map(({ bytes }) => parseSize(bytes));
      }
    }
  }
  return { name, type, shape };
}

/** A size; an empty name where nothing is said of it. */
function parseSize(message: Uint8Array): number | string {
  let size: number | string = "";
  for (const field of fieldsOf(message)) {
    if (field.no === 1) size = field.int;
    else if (field.no === 2) size = textOf(field);
  }
  return size;
}

/** Writes a tensor's type and sizes; without a type where it is 0. */
export function valueBytes({ name, type, shape = [] }: ValueInfo): Uint8Array {
  const writer = new BinaryWriter().tag(1, WireType.LengthDelimited).string(name);
  if (type === 0) return writer.finish();
  const message = (no: number) => writer.tag(no, WireType.LengthDelimited).fork();
  message(2);
  message(1);
  writer.tag(1, WireType.Varint).int32(type);
  message(2);
  for (const size of shape) {
    message(1);
    if (typeof size === "number") writer.tag(1, WireType.Varint).int64(size);
    else writer.tag(2, WireType.LengthDelimited).string(size);
    writer.join();
  }
  return writer.join().join().join().finish();
}

/** A message in which some fields have other bytes. */
export function rewritten(
  bytes: Uint8Array,
  change: (no: number, bytes: Uint8Array) => Uint8Array | undefined,
): Uint8Array {
  const writer = new BinaryWriter();
  for (const field of fieldsOf(bytes)) {
    const changed = change(field.no, field.bytes);
    if (changed === undefined) writer.raw(field.raw);
    else writer.tag(field.no, WireType.LengthDelimited).bytes(changed);
  }
  return writer.finish();
}

/** A field of a message. */
export function message(no: number, bytes: Uint8Array): Uint8Array {
  return new BinaryWriter().tag(no, WireType.LengthDelimited).bytes(bytes).finish();
}

/** A field with a node of the standard, and an axis if it takes one. */
export function nodeField(
  op: string,
  inputs: readonly string[],
  output: string,
  axis?: number,
): Uint8Array {
  const writer = new BinaryWriter();
  const text = (no: number, value: string) =>
    writer.tag(no, WireType.LengthDelimited).string(value);
  inputs.forEach((input) => text(1, input));
  text(2, output);
  text(4, op);
  if (axis !== undefined) {
    writer.tag(5, WireType.LengthDelimited).fork();
    text(1, "axis");
    writer.tag(3, WireType.Varint).int64(axis).tag(20, WireType.Varint).int32(2).join();
  }
  return message(1, writer.finish());
}
