/**
 * Convolutions, gradients of their inputs and matrix products of ONNX Runtime, for `wgconv verify --worker`. A problem becomes a
 * model of one node and its activation.
 *
 *   wgconv verify --worker 'deno run -A --no-lock examples/workers/onnx_worker.ts' --layout nchw --arithmetic f32-any
 *   wgconv verify gemm --worker 'deno run -A --no-lock examples/workers/onnx_worker.ts webgpu' --arithmetic f32-any
 *
 * The argument is the execution provider: cpu (default), webgpu, cuda. The first start fetches the npm package.
 */
import { readNpy, tensor, writeNpy } from "../../mod.ts";
import { onnxModel, type TestNode } from "../../tests/support/onnx_model.ts";

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

/** Activations, each a node or two from `sum` to `y`. */
const ACTIVATIONS: Readonly<Record<string, readonly TestNode[]>> = {
  none: [],
  relu: [{ op: "Relu", inputs: ["sum"], output: "y" }],
  "leaky-relu": [{ op: "LeakyRelu", inputs: ["sum"], output: "y" }],
  sigmoid: [{ op: "Sigmoid", inputs: ["sum"], output: "y" }],
  tanh: [{ op: "Tanh", inputs: ["sum"], output: "y" }],
  gelu: [{ op: "Gelu", inputs: ["sum"], output: "y" }],
  silu: [
    { op: "Sigmoid", inputs: ["sum"], output: "gate" },
    { op: "Mul", inputs: ["sum", "gate"], output: "y" },
  ],
};

/** The nodes that compute a problem of named operands. */
function nodesOf(request: Request): TestNode[] {
  const core = request.op === "gemm" ? productNode(request) : convolutionNode(request);
  const rest = ACTIVATIONS[request.activation]!;
  return [{ ...core, output: rest.length === 0 ? "y" : "sum" }, ...rest];
}

type Core = Omit<TestNode, "output">;

function convolutionNode(request: Request): Core {
  const { op, layout, stride, dilation, groups, input_size, filter_size } = request;
  const { padding_begin: begin, padding_end: end } = request;
  if (layout !== "nchw") throw new Unsupported("ONNX has nchw alone");
  if (op === "bwd-filter") throw new Unsupported("ONNX has no gradients of filters");
  if (end.some((pad) => pad < 0)) throw new Unsupported("negative padding");
  const attributes = {
    ...{ strides: stride, dilations: dilation, pads: [...begin, ...end], group: groups },
    kernel_shape: filter_size,
  };
  if (op === "fwd") {
    const bias = "bias" in request ? ["bias"] : [];
    return { op: "Conv", inputs: ["input", "filter", ...bias], attributes };
  }
  // Rows and columns that no step of the filter reaches.
  const output_padding = input_size.map((size, axis) => {
    const reach = (filter_size[axis]! - 1) * dilation[axis]! + 1;
    const steps = (request.output_size[axis]! - 1) * stride[axis]!;
    return size + begin[axis]! + end[axis]! - reach - steps;
  });
  const inputs = ["grad_output", "filter"];
  return { op: "ConvTranspose", inputs, attributes: { ...attributes, output_padding } };
}

function productNode({ transpose, alpha, beta, ...request }: Request): Core {
  if ("residual" in request) throw new Unsupported("ONNX has no residual");
  const added = ["c", "bias"].filter((name) => name in request);
  if (request.batch !== 1) {
    if (transpose !== "nn" || alpha !== 1 || added.length > 0) {
      throw new Unsupported("MatMul has neither transposes, alpha, C nor a bias");
    }
    return { op: "MatMul", inputs: ["a", "b"] };
  }
  if (added.length > 1) throw new Unsupported("Gemm adds either C or a bias");
  if (request.bias_side === "row" && added[0] === "bias") throw new Unsupported("a bias of rows");
  const [transA, transB] = [...transpose].map((one) => Number(one === "t"));
  return {
    ...{ op: "Gemm", inputs: ["a", "b", ...added] },
    attributes: { transA: transA!, transB: transB! },
    floats: { alpha, ...(added[0] === "c" ? { beta } : {}) },
  };
}

/** Computes a request and writes its result. */
async function answer(request: Request): Promise<object> {
  const type = TYPES[request.dtype];
  if (type === undefined) throw new Unsupported(request.dtype);
  const nodes = nodesOf(request);
  const { op, inputs: names } = nodes[0]!;
  const operands = await Promise.all(names.map((name) => readNpy(request[name] as string)));
  // Gemm takes matrices alone.
  const flat = (shape: readonly number[]) => op === "Gemm" ? shape.slice(-2) : shape;
  const shapes = Object.fromEntries(names.map((name, i) => [name, flat(operands[i]!.shape)]));
  const types = Object.fromEntries(names.map((name) => [name, type[0]]));
  const graph = {
    nodes,
    inputs: shapes,
    weights: {},
    outputs: ["y"],
    types,
    version: 9,
    opset: 20,
  };
  const session = await runtime.InferenceSession.create(onnxModel(graph), {
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
