/**
 * Convolutions, gradients of their inputs and matrix products of ONNX Runtime, for `wgconv verify --worker`. A problem becomes a
 * model of one node and its activation.
 *
 *   wgconv verify --worker 'deno run -A --no-lock examples/workers/onnx_worker.ts' --layout nchw --arithmetic f32-any
 *   wgconv verify gemm --worker 'deno run -A --no-lock examples/workers/onnx_worker.ts webgpu' --arithmetic f32-any
 *
 * The argument is the execution provider: cpu (default), webgpu, cuda. The first start fetches the npm package.
 */
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { readNpy, tensor, writeNpy } from "../../mod.ts";

const PACKAGE = "npm:onnxruntime-node@1.30.0";

/** What of the package is used. */
interface Runtime {
  readonly InferenceSession: {
    create(model: Uint8Array, options: object): Promise<{
      run(feeds: Record<string, unknown>): Promise<Record<string, Result>>;
      release(): Promise<void>;
    }>;
  };
  readonly Tensor: new (type: string, data: Data, dims: readonly number[]) => unknown;
}

interface Result {
  readonly data: Data;
  readonly dims: readonly number[];
}

type Data = Float32Array<ArrayBuffer> | Float16Array<ArrayBuffer>;

/** A line of the protocol, as far as it is read. */
interface Request {
  readonly op: "fwd" | "bwd-data" | "bwd-filter" | "gemm";
  readonly dtype: string;
  readonly layout: string;
  readonly activation: string;
  readonly output: string;
  readonly input_size: readonly number[];
  readonly output_size: readonly number[];
  readonly filter_size: readonly number[];
  readonly stride: readonly number[];
  readonly dilation: readonly number[];
  readonly padding_begin: readonly number[];
  readonly padding_end: readonly number[];
  readonly batch: number;
  readonly groups: number;
  readonly transpose: string;
  readonly alpha: number;
  readonly beta: number;
  readonly bias_side?: string;
  readonly [operand: string]: unknown;
}

type Attributes = Readonly<Record<string, number | readonly number[]>>;

/** A node: operator, inputs, output, attributes. */
type Node = readonly [op: string, inputs: readonly string[], output: string, Attributes];

/** What the runtime has no operator for. */
class Unsupported extends Error {}

/** ONNX's numbers of element types, and the runtime's names. */
const TYPES: Readonly<Record<string, readonly [number, string]>> = {
  f32: [1, "float32"],
  f16: [10, "float16"],
};

// It would send what runs to its maker.
Deno.env.set("ORT_DISABLE_TELEMETRY", "1");
const runtime: Runtime = await import(PACKAGE);
const provider = Deno.args[0] ?? "cpu";

/** The nodes that compute a problem of named operands. */
function nodesOf(request: Request): Node[] {
  const core = request.op === "gemm" ? productNode(request) : convolutionNode(request);
  const activations: Readonly<Record<string, readonly Node[]>> = {
    none: [],
    relu: [["Relu", ["sum"], "y", {}]],
    "leaky-relu": [["LeakyRelu", ["sum"], "y", {}]],
    sigmoid: [["Sigmoid", ["sum"], "y", {}]],
    tanh: [["Tanh", ["sum"], "y", {}]],
    gelu: [["Gelu", ["sum"], "y", {}]],
    silu: [["Sigmoid", ["sum"], "gate", {}], ["Mul", ["sum", "gate"], "y", {}]],
  };
  const rest = activations[request.activation]!;
  const [op, inputs, , attributes] = core;
  return [[op, inputs, rest.length === 0 ? "y" : "sum", attributes], ...rest];
}

function convolutionNode(request: Request): Node {
  const { op, layout, stride, dilation, groups, input_size, filter_size } = request;
  const { padding_begin: begin, padding_end: end } = request;
  if (layout !== "nchw") throw new Unsupported("ONNX has nchw alone");
  if (op === "bwd-filter") throw new Unsupported("ONNX has no gradients of filters");
  if (end.some((pad) => pad < 0)) throw new Unsupported("negative padding");
  const own = {
    strides: stride,
    dilations: dilation,
    pads: [...begin, ...end],
    group: groups,
    kernel_shape: filter_size,
  };
  if (op === "fwd") {
    const bias = "bias" in request ? ["bias"] : [];
    return ["Conv", ["input", "filter", ...bias], "sum", own];
  }
  // Rows and columns that no step of the filter reaches.
  const beyond = input_size.map((size, axis) => {
    const reach = (filter_size[axis]! - 1) * dilation[axis]! + 1;
    const steps = (request.output_size[axis]! - 1) * stride[axis]!;
    return size + begin[axis]! + end[axis]! - reach - steps;
  });
  return ["ConvTranspose", ["grad_output", "filter"], "sum", { ...own, output_padding: beyond }];
}

function productNode({ transpose, alpha, beta, ...request }: Request): Node {
  if ("residual" in request) throw new Unsupported("ONNX has no residual");
  const added = ["c", "bias"].filter((name) => name in request);
  if (request.batch !== 1) {
    if (transpose !== "nn" || alpha !== 1 || added.length > 0) {
      throw new Unsupported("MatMul has neither transposes, alpha, C nor a bias");
    }
    return ["MatMul", ["a", "b"], "sum", {}];
  }
  if (added.length > 1) throw new Unsupported("Gemm adds either C or a bias");
  if (request.bias_side === "row" && added[0] === "bias") throw new Unsupported("a bias of rows");
  const [transA, transB] = [...transpose].map((one) => Number(one === "t"));
  const scaled = added[0] === "c" ? { beta } : {};
  return ["Gemm", ["a", "b", ...added], "sum", {
    transA: transA!,
    transB: transB!,
    alpha,
    ...scaled,
  }];
}

/** The bytes of a model: onnx.proto3's ModelProto. */
function modelOf(
  nodes: readonly Node[],
  type: number,
  inputs: Readonly<Record<string, readonly number[]>>,
): Uint8Array {
  const writer = new BinaryWriter();
  const message = (field: number, write: () => void) => {
    writer.tag(field, WireType.LengthDelimited).fork();
    write();
    writer.join();
  };
  const text = (field: number, value: string) =>
    writer.tag(field, WireType.LengthDelimited).string(value);
  const whole = (field: number, value: number) => writer.tag(field, WireType.Varint).int64(value);
  const attribute = (name: string, value: number | readonly number[]) => {
    text(1, name);
    if (typeof value !== "number") {
      value.forEach((one) => whole(8, one));
      whole(20, 7);
    } else if (name === "alpha" || name === "beta") {
      writer.tag(2, WireType.Bit32).float(value);
      whole(20, 1);
    } else {
      whole(3, value);
      whole(20, 2);
    }
  };
  const value = (name: string, shape?: readonly number[]) => {
    text(1, name);
    message(2, () =>
      message(1, () => {
        whole(1, type);
        if (shape) message(2, () => shape.forEach((size) => message(1, () => whole(1, size))));
      }));
  };
  whole(1, 9);
  message(8, () => whole(2, 20));
  message(7, () => {
    for (const [op, names, output, attributes] of nodes) {
      message(1, () => {
        names.forEach((name) => text(1, name));
        text(2, output);
        text(4, op);
        Object.entries(attributes).forEach(([name, one]) => message(5, () => attribute(name, one)));
      });
    }
    text(2, "problem");
    Object.entries(inputs).forEach(([name, shape]) => message(11, () => value(name, shape)));
    message(12, () => value("y"));
  });
  return writer.finish();
}

/** Computes a request and writes its result. */
async function answer(request: Request): Promise<object> {
  const type = TYPES[request.dtype];
  if (type === undefined) throw new Unsupported(request.dtype);
  const nodes = nodesOf(request);
  const names = nodes[0]![1];
  const operands = await Promise.all(names.map((name) => readNpy(request[name] as string)));
  // Gemm takes matrices alone.
  const flat = (shape: readonly number[]) => nodes[0]![0] === "Gemm" ? shape.slice(-2) : shape;
  const shapes = Object.fromEntries(names.map((name, i) => [name, flat(operands[i]!.shape)]));
  const session = await runtime.InferenceSession.create(modelOf(nodes, type[0], shapes), {
    executionProviders: [provider],
    logSeverityLevel: 3,
  });
  try {
    const feeds = Object.fromEntries(names.map((name, i) => [
      name,
      new runtime.Tensor(type[1], operands[i]!.data as Data, shapes[name]!),
    ]));
    const start = performance.now();
    const { y } = await session.run(feeds);
    const time = (performance.now() - start) * 1000;
    const dtype = request.dtype as "f32" | "f16";
    await writeNpy(request.output, tensor(dtype, [...y!.dims], y!.data));
    return { output: request.output, time_us: time };
  } finally {
    await session.release();
  }
}

let rest = "";
for await (const text of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
  const lines = (rest + text).split("\n");
  rest = lines.pop()!;
  for (const line of lines) {
    const said = await answer(JSON.parse(line)).catch((error) =>
      error instanceof Unsupported
        ? { unsupported: error.message }
        : { error: String(error.message ?? error) }
    );
    console.log(JSON.stringify(said));
  }
}
