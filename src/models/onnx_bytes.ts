/** Operands of ONNX's int8 operators, as a convolution of bytes has them: channels last, a product as one of single places. */
import { type ConvProblem, convProblem } from "../problem/conv_problem.ts";
import type { ByteDType, IntegerOperands } from "../problem/conv_elements.ts";
import { convertLayout, permute } from "../tensor/layout.ts";
import { elementCount, type Tensor, tensor } from "../tensor/tensor.ts";
import type { OnnxLayer } from "./onnx.ts";

/** In what a layer of bytes is: its zero points, and of results that are bytes theirs. */
export interface ByteLayer extends Required<IntegerOperands> {
  readonly outDtype: "i32" | ByteDType;
  readonly outputZeroPoint?: number;
}

/** A layer of bytes with its tensors. */
interface ByteParts {
  readonly bytes: ByteLayer;
  readonly tensors: Readonly<Record<string, Tensor>>;
}

/** Where parts stand among the inputs of the operators. */
const PLACES: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  ConvInteger: { input: 0, filter: 1, inputZero: 2, filterZero: 3 },
  MatMulInteger: { input: 0, filter: 1, inputZero: 2, filterZero: 3 },
  QLinearConv: {
    ...{ input: 0, inputScale: 1, inputZero: 2, filter: 3, filterScale: 4, filterZero: 5 },
    ...{ outputScale: 6, outputZero: 7, bias: 8 },
  },
  QLinearMatMul: {
    ...{ input: 0, inputScale: 1, inputZero: 2, filter: 3, filterScale: 4, filterZero: 5 },
    ...{ outputScale: 6, outputZero: 7 },
  },
};

/** Names of the tensors that are a layer's parts; undefined of an operator that is not of bytes. */
export function byteNames(
  { node: { op, inputs, outputs } }: OnnxLayer,
): Record<string, string> | undefined {
  if (!Object.hasOwn(PLACES, op)) return undefined;
  const named = Object.entries(PLACES[op]!)
    .map(([part, place]) => [part, inputs[place] ?? ""])
    .filter(([, name]) => name !== "");
  return { ...Object.fromEntries(named), result: outputs[0] ?? "" };
}

/** The convolution that a layer of bytes is; why it is none where it is not. */
export function byteProblem({ problem }: Pick<OnnxLayer, "problem">): ConvProblem | string {
  if ("conv" in problem) return problem.conv;
  const { m, n, k, batch, transpose } = problem.gemm;
  if (batch !== 1 || transpose !== "nn") return "its matrices of bytes are a batch";
  const sizes = { inputSize: [1, 1], filterSize: [1, 1] };
  return convProblem({ batch: m, inChannels: k, outChannels: n, ...sizes });
}

/** A layer's tensors in the layouts of a convolution of bytes, from what the model has; why there is none where there is not. */
export function byteParts(
  problem: ConvProblem,
  product: boolean,
  raw: Readonly<Record<string, Tensor>>,
): ByteParts | string {
  const { input, filter, bias, result } = raw as Record<"input" | "filter" | "result", Tensor> & {
    readonly bias?: Tensor;
  };
  if (!isBytes(input) || !isBytes(filter)) return "its operands are no bytes";
  const { outChannels: count } = problem;
  const inputZero = numberOf(raw.inputZero) ?? 0;
  const filterZero = numberOf(raw.filterZero) ?? 0;
  if (inputZero === "several") return "its zero points are of rows";
  if (filterZero === "several" && raw.filterZero!.data.length !== count) {
    return "its zero points are of no output channel each";
  }
  const outDtype = isBytes(result) ? result.dtype : "i32";
  const scale = outDtype === "i32" ? undefined : scalesOf(raw, count);
  if (typeof scale === "string") return scale;
  const outputZero = numberOf(raw.outputZero) ?? 0;
  if (outputZero === "several") return "its zero points are of rows";
  const zeros = filterZero === "several" ? "channel" : filterZero;
  return {
    bytes: {
      ...{ inputDtype: input.dtype, filterDtype: filter.dtype, outDtype },
      ...{ inputZeroPoint: inputZero, filterZeroPoint: zeros },
      ...(outDtype === "i32" ? {} : { outputZeroPoint: outputZero }),
    },
    tensors: {
      input: product ? rowsOf(input, problem.inChannels) : convertLayout(input, "nchw", "nhwc"),
      filter: product ? columnsOf(filter, problem) : convertLayout(filter, "kcrs", "krsc"),
      ...(bias === undefined ? {} : { bias }),
      ...(scale === undefined ? {} : { scale }),
      ...(zeros === "channel"
        ? {
          filterZeroPoint: tensor(
            "i32",
            [count],
            Int32Array.from(raw.filterZero!.data as Int8Array),
          ),
        }
        : {}),
      result: product ? rowsOf(result, count) : convertLayout(result, "nchw", "nhwc"),
    },
  };
}

function isBytes(value: Tensor): value is Tensor<ByteDType> {
  return value.dtype === "i8" || value.dtype === "u8";
}

/** The value of a tensor of one. */
function numberOf(value: Tensor | undefined): number | "several" | undefined {
  if (value === undefined) return undefined;
  return value.data.length === 1 ? Number(value.data[0]) : "several";
}

/** What sums of each output channel are multiplied by, as onnxruntime computes it. */
function scalesOf(raw: Readonly<Record<string, Tensor>>, count: number): Tensor | string {
  const [input, output] = [numberOf(raw.inputScale), numberOf(raw.outputScale)];
  const filter = raw.filterScale?.data as Float32Array | undefined;
  if (typeof input !== "number" || typeof output !== "number" || filter === undefined) {
    return "its scales are of rows";
  }
  if (filter.length !== 1 && filter.length !== count) return "its scales are of no channel each";
  const each = Float32Array.from(
    { length: count },
    (_, channel) => Math.fround(input * filter[filter.length === 1 ? 0 : channel]!) / output,
  );
  return tensor("f32", [count], each);
}

/** The rows of a matrix as images of one place. */
function rowsOf(matrix: Tensor, length: number): Tensor {
  const rows = elementCount(matrix.shape) / length;
  return tensor(matrix.dtype, [rows, 1, 1, length], matrix.data);
}

/** The columns of a matrix as filters of one tap. */
function columnsOf(matrix: Tensor, { inChannels, outChannels }: ConvProblem): Tensor {
  const flat = tensor(matrix.dtype, [inChannels, outChannels], matrix.data);
  return tensor(matrix.dtype, [outChannels, 1, 1, inChannels], permute(flat, [1, 0]).data);
}
