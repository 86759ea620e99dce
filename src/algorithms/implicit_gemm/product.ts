import { fullVariant } from "../../kernels/main_loop_variant.ts";
import { packedElements } from "../../kernels/pack_strided.ts";
import { TILE_POLICIES } from "../../kernels/policy.ts";
import { type Cut, cutProduct } from "../cut.ts";
import { streamsOf } from "../cut_passes.ts";
import { type Product, productUnit, stepsOf } from "../product.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { bufferBytes, operandBytes, resultElements } from "../tensors.ts";
import type { Operands } from "./access.ts";
import { classOperands } from "./class_operands.ts";
import { correlationOperands, gatherOperands } from "./operands.ts";
import { implicitTime, storesApart } from "./price.ts";
import { inWords, paddedBytes, paddingTime } from "./words.ts";

/** What implicit GEMM multiplies, how that is cut, and what it takes. */
export interface ImplicitProduct {
  readonly operands: Operands;
  readonly product: Product;
  readonly cut: Cut;
  /** Predicted microseconds. */
  readonly time: number;
}

/** Longer strides may exceed 32 bits, times their padding. */
const MOST_TAPS = 65_535;

/**
 * The request with strides as long as the filter along axes of one output place, where no stride is ever taken: each place of
 * backward-data then meets one tap, and is no sum over all of them.
 */
function withFreeStrides(request: PlanRequest): PlanRequest {
  const { problem } = request;
  const { op, inputSize, outputSize, filterSize, dilation } = problem;
  if (op !== "bwd-data") return request;
  const stride = problem.stride.map((step, d) => {
    const taps = filterSize[d]!;
    const one = outputSize[d] === 1 && dilation[d] === 1 && taps <= inputSize[d]!;
    return one && taps > 0 && taps <= MOST_TAPS ? taps : step;
  });
  return { ...request, problem: { ...problem, stride } };
}

/** The products that a request may become; results are the same. */
function operandsOf(asked: PlanRequest): readonly [Operands, ...Operands[]] {
  const request = withFreeStrides(asked);
  const { op, stride } = request.problem;
  if (op === "bwd-filter") return [correlationOperands(request)];
  if (op === "fwd" || stride.every((step) => step === 1)) return gatherOperands(request);
  return classOperands(request);
}

/** The product of a request that is predicted to take least; of int8 its channels are words. */
export function implicitProduct(asked: PlanRequest): Planned<ImplicitProduct> {
  const request = inWords(asked);
  const { packedFilter } = fullVariant(request.variant);
  const all = operandsOf(request);
  const packed = all.filter(({ pack }) => pack(TILE_POLICIES[0]!) !== undefined);
  const wanted = packedFilter && packed.length > 0 ? packed : all;
  const tried = wanted.map((operands): Planned<ImplicitProduct> => {
    const product = productOf(request, operands, paddedBytes(asked));
    const cut = cutProduct(request, product);
    return isRefusal(cut)
      ? cut
      : { operands, product, cut, time: paddingTime(asked) + implicitTime(request, operands, cut) };
  });
  // A packed filter that there is no room for is none where it can be read as it lies.
  const { maxWorkspaceBytes = Infinity } = request;
  const roomy = tried.filter((one) =>
    !isRefusal(one) && (one.product.workspaceBytes?.(one.cut.policy) ?? 0) <= maxWorkspaceBytes
  );
  return (roomy.length > 0 ? roomy : tried).reduce((best, one) =>
    isRefusal(best) ||
      !isRefusal(one) &&
        (one.time < best.time || one.time === best.time && one.cut.cost < best.cut.cost)
      ? one
      : best
  );
}

/** The product of a request's operands, before it is cut. */
function productOf(request: PlanRequest, operands: Operands, padded: number): Product {
  const elements = resultElements(request.problem);
  const sums = storesApart(request, operands) ? bufferBytes(elements, "i32") : 0;
  return {
    rows: operands.rows,
    columns: operands.columns,
    batches: operands.batches,
    ...(operands.uneven === undefined ? stepsOf(operands.depth, request.variant) : {
      steps: (policy) => Math.ceil(operands.depth(policy) / policy.depth),
    }),
    ...(operands.share === undefined ? {} : { share: operands.share }),
    elements,
    workspaceBytes: (policy) => {
      const pack = operands.pack(policy);
      return padded + sums +
        (pack === undefined ? 0 : operandBytes(request) * packedElements(pack));
    },
    streams: streamsOf(request),
    matrix: productUnit(request),
    a: operands.a,
    b: operands.b,
  };
}
