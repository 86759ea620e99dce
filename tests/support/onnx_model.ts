/** Small ONNX models for tests. */
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { fillTensor } from "../../src/tensor/fill.ts";
import { valueBytes, type ValueInfo } from "../../src/models/onnx_format.ts";

/** A node: operator, inputs, output, attributes. */
export interface TestNode {
  readonly op: string;
  readonly inputs: readonly string[];
  readonly output: string;
  /** Further outputs. */
  readonly others?: readonly string[];
  readonly name?: string;
  readonly domain?: string;
  /** Numbers are whole, but for those of `floats`. */
  readonly attributes?: Readonly<Record<string, number | string | readonly number[] | TestGraph>>;
  readonly floats?: Readonly<Record<string, number>>;
}

/** A graph; shapes of tensors by name, f32 but for those whose type stands in `types`. */
export interface TestGraph {
  readonly nodes: readonly TestNode[];
  readonly inputs: Readonly<Record<string, readonly (number | string)[]>>;
  /** Constants: random ones of f32, any bytes else. */
  readonly weights: Readonly<Record<string, readonly number[]>>;
  /** Bytes of constants that are not random. */
  readonly data?: Readonly<Record<string, Uint8Array>>;
  /** Constants of i64. */
  readonly indices?: Readonly<Record<string, readonly number[]>>;
  /** Constants of one truth value. */
  readonly truths?: Readonly<Record<string, boolean>>;
  readonly values?: Readonly<Record<string, readonly (number | string)[]>>;
  readonly outputs: readonly string[];
  readonly types?: Readonly<Record<string, number>>;
  /** Version of the format; 8 where absent. */
  readonly version?: number;
  /** Version of the operators; 17 where absent. */
  readonly opset?: number;
  /** Whether weights lie in another file. */
  readonly external?: boolean;
}

type Message = (writer: BinaryWriter) => void;

function message(writer: BinaryWriter, no: number, body: Message): void {
  writer.tag(no, WireType.LengthDelimited).fork();
  body(writer);
  writer.join();
}

function text(writer: BinaryWriter, no: number, value: string): void {
  writer.tag(no, WireType.LengthDelimited).string(value);
}

function int(writer: BinaryWriter, no: number, value: number): void {
  writer.tag(no, WireType.Varint).int64(value);
}

/** The bytes of a model. */
export function onnxModel(graph: TestGraph): Uint8Array<ArrayBuffer> {
  const writer = new BinaryWriter();
  int(writer, 1, graph.version ?? 8);
  message(writer, 8, () => int(writer, 2, graph.opset ?? 17));
  message(writer, 8, () => {
    text(writer, 1, "com.microsoft");
    int(writer, 2, 1);
  });
  message(writer, 7, () => writeGraph(writer, graph));
  return writer.finish() as Uint8Array<ArrayBuffer>;
}

function writeGraph(writer: BinaryWriter, graph: TestGraph): void {
  const { nodes, inputs, weights, indices = {}, truths = {}, values = {}, types = {} } = graph;
  for (const node of nodes) message(writer, 1, () => writeNode(writer, node));
  text(writer, 2, "test");
  for (const [name, shape] of Object.entries(weights)) {
    const type = types[name] ?? 1;
    message(writer, 5, () => {
      shape.forEach((size) => int(writer, 1, size));
      int(writer, 2, type);
      text(writer, 8, name);
      const bytes = shape.reduce((x, y) => x * y, 1) * (type === 1 ? 4 : 1);
      if (graph.external) {
        message(writer, 13, () => {
          text(writer, 1, "location");
          text(writer, 2, "weights.bin");
        });
        int(writer, 14, 1);
      } else if (graph.data?.[name] !== undefined) {
        writer.tag(9, WireType.LengthDelimited).bytes(graph.data[name]);
      } else {
        const { buffer } = fillTensor("f32", [Math.ceil(bytes / 4)], "normal", 1).data;
        writer.tag(9, WireType.LengthDelimited).bytes(new Uint8Array(buffer, 0, bytes));
      }
    });
  }
  for (const [name, list] of Object.entries(indices)) {
    message(writer, 5, () => {
      int(writer, 1, list.length);
      int(writer, 2, 7);
      list.forEach((value) => int(writer, 7, value));
      text(writer, 8, name);
    });
  }
  for (const [name, truth] of Object.entries(truths)) {
    message(writer, 5, () => {
      int(writer, 2, 9);
      int(writer, 5, Number(truth));
      text(writer, 8, name);
    });
  }
  const value = (no: number, info: ValueInfo) =>
    writer.tag(no, WireType.LengthDelimited).bytes(valueBytes(info));
  const typed = (name: string, shape: readonly (number | string)[]) => (
    { name, type: types[name] ?? 1, shape }
  );
  for (const [name, shape] of Object.entries(inputs)) value(11, typed(name, shape));
  for (const name of graph.outputs) value(12, { name, type: 0, shape: undefined });
  for (const [name, shape] of Object.entries(values)) value(13, typed(name, shape));
}

function writeNode(writer: BinaryWriter, node: TestNode): void {
  node.inputs.forEach((name) => text(writer, 1, name));
  for (const output of [node.output, ...node.others ?? []]) text(writer, 2, output);
  text(writer, 3, node.name ?? node.output);
  text(writer, 4, node.op);
  if (node.domain !== undefined) text(writer, 7, node.domain);
  for (const [name, value] of Object.entries(node.attributes ?? {})) {
    message(writer, 5, () => {
      text(writer, 1, name);
      if (typeof value === "number") int(writer, 3, value);
      else if (typeof value === "string") text(writer, 4, value);
      else if ("nodes" in value) message(writer, 6, () => writeGraph(writer, value));
      else value.forEach((one) => int(writer, 8, one));
      const type = typeof value === "number"
        ? 2
        : typeof value === "string"
        ? 3
        : "nodes" in value
        ? 5
        : 7;
      int(writer, 20, type);
    });
  }
  for (const [name, value] of Object.entries(node.floats ?? {})) {
    message(writer, 5, () => {
      text(writer, 1, name);
      writer.tag(2, WireType.Bit32).float(value);
      int(writer, 20, 1);
    });
  }
}
