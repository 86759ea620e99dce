import { tapRingOf } from "../../kernels/loader.ts";
import { elementsOf } from "../../elements/elements.ts";
import { fullVariant } from "../../kernels/variant.ts";
import { packedElements } from "../../kernels/pack.ts";
import { TILE_POLICIES, type TilePolicy } from "../../kernels/policy.ts";
import type { Layout } from "../../tensor/layout.ts";
import { addsUp, gatheredTime, storedShare, streamsOf, targetStore } from "../conv_product.ts";
import { type Cut, cutProduct } from "../cut.ts";
import { deviceOf } from "../device/h200.ts";
import { productTime } from "../device/model.ts";
import { quantizeTime, sumsRequest } from "../passes.ts";
import { type Product, productUnit, stepsOf } from "../product.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { bufferBytes, operandBytes, resultElements } from "../tensors.ts";
import { accessVector, type Operands } from "./access.ts";
import { classOperands } from "./class_operands.ts";
import { correlationOperands } from "./correlation_operands.ts";
import { gatherOperands } from "./gather_operands.ts";
import { channelsLastWays, wordWays, writingTime, type Written, writtenBytes } from "./written.ts";

/** Whether a pass of its own stores int8 results: where four that a thread has are no word, which has one writer. */
export function storesApart(request: PlanRequest, { result, rows }: Operands): boolean {
  return elementsOf(request).result === "i8" &&
    targetStore(result, rows, request.variant) !== "rows";
}

/** Microseconds of implicit GEMM: the packed filter, then the product; sums of split depth are in the cut's cost. */
export function implicitTime(
  request: PlanRequest,
  operands: Operands,
  { policy, cost }: Cut,
): number {
  const { problem, layout } = request;
  const { rates, shares } = deviceOf(request);
  const rate = problem.op !== "bwd-filter"
    ? rates.gathered
    : rates.correlated[layout === "nhwc" ? "along" : "across"];
  // Of a vector the first element finds it.
  const alone = problem.op === "bwd-filter" || operands.b.vector === 1;
  const share = problem.op === "bwd-filter" && layout === "nhwc" && operands.b.vector === 1
    ? shares.singleLoads
    : operands.crossesTaps(policy) && alone
    ? shares.linear
    : 1;
  const units = policy.matrix === undefined ? 1 : unitsShare(request, operands, policy);
  const { result, rows } = operands;
  // Of a filter that is read as it lies, element by element.
  const uncoalesced = operands.left === "filter" && operands.a.vector === 1 &&
    operands.pack(policy) === undefined;
  const loads = uncoalesced ? shares.strewn : 1;
  const apart = storesApart(request, operands);
  return (apart ? quantizeTime(request) : 0) +
    gatheredTime(
      apart ? sumsRequest(request) : request,
      productTime(cost, share * units * loads * rate),
      operands.pack(policy),
      storedShare(request, result, rows),
    );
}

/** On matrix units, of images that are loaded fewer than eight halves at a time, and of int8. */
function unitsShare(
  request: PlanRequest,
  { b, crossesTaps, pack }: Operands,
  policy: TilePolicy,
): number {
  const { singleHalves, fewHalves, gatheredWords } = deviceOf(request).shares;
  if (request.dtype === "i8") {
    if (b.vector === 1) return gatheredWords.one;
    if (crossesTaps(policy)) return gatheredWords.linear;
    return gatheredWords[pack(policy) === undefined ? "lying" : "packed"];
  }
  const filters = request.problem.op === "bwd-filter";
  if (request.layout !== "nhwc") {
    if (b.vector !== 1) return 1;
    return crossesTaps(policy) ? fewHalves.one : singleHalves[filters ? "correlated" : "gathered"];
  }
  const vector = accessVector(policy, b);
  return vector === 8 ? 1 : fewHalves[vector === 4 ? "four" : "one"];
}

/** What implicit GEMM multiplies, how that is cut, and what it takes. */
export interface ImplicitProduct {
  readonly operands: Operands;
  readonly product: Product;
  readonly cut: Cut;
  /** Predicted microseconds. */
  readonly time: number;
  /** How operands are written before, and lie then; undefined where they are read as they lie. */
  readonly written: Written | undefined;
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

/** The products that a request may become, whose results lie as `results` says; they are the same. */
function operandsOf(asked: PlanRequest, results: Layout): readonly [Operands, ...Operands[]] {
  const request = withFreeStrides(asked);
  const { op, stride } = request.problem;
  if (op === "bwd-filter") return correlationOperands(request);
  if (op === "fwd" || stride.every((step) => step === 1)) return gatherOperands(request, results);
  return classOperands(request, results);
}

/** Operands that a request may become, and what is written before they are read. */
type OperandPreparation = Pick<ImplicitProduct, "operands" | "written">;

/** Every preparation to make a product of a request; of int8 its channels are words. By rows of taps alone where there are such and `tapRows`. */
function preparationsOf(
  asked: PlanRequest,
  tapRows: boolean,
): readonly [OperandPreparation, ...OperandPreparation[]] {
  const { packedFilter, channelsLast: rewritten } = fullVariant(asked.variant);
  const lying = asked.dtype === "i8" ? wordWays(asked) : [undefined];
  const last = channelsLastWays(asked);
  const all = (rewritten && last.length > 0 ? last : [...lying, ...last]).flatMap((written) =>
    operandsOf(written?.request ?? asked, asked.layout).map((operands) => ({ operands, written }))
  ) as [OperandPreparation, ...OperandPreparation[]];
  const walked = tapRows ? preferred(all, ({ b }) => b.sharedTaps !== undefined) : all;
  return packedFilter
    ? preferred(walked, ({ pack }) => pack(TILE_POLICIES[0]!) !== undefined)
    : walked;
}

/** Those preparations whose operands are such; all where none are. */
function preferred(
  preparations: readonly [OperandPreparation, ...OperandPreparation[]],
  such: (operands: Operands) => boolean,
): readonly [OperandPreparation, ...OperandPreparation[]] {
  const [first, ...others] = preparations.filter(({ operands }) => such(operands));
  return first === undefined ? preparations : [first, ...others];
}

/** The product of a request that is predicted to take least; of int8 its channels are words. */
export function implicitProduct(asked: PlanRequest): Planned<ImplicitProduct> {
  const { tapRows } = fullVariant(asked.variant);
  const product = leastProduct(asked, tapRows);
  // Rows of taps that no tile, or no workspace, has room for are none, but on the tile that is asked for.
  return tapRows && asked.policy === undefined && !hasRoom(asked, product)
    ? leastProduct(asked, false)
    : product;
}

/** Whether a product is none that is refused, or will be for the workspace it takes. */
function hasRoom(
  { maxWorkspaceBytes = Infinity }: PlanRequest,
  planned: Planned<ImplicitProduct>,
): boolean {
  return !isRefusal(planned) &&
    (planned.product.workspaceBytes?.(planned.cut.policy) ?? 0) <= maxWorkspaceBytes;
}

function leastProduct(asked: PlanRequest, tapRows: boolean): Planned<ImplicitProduct> {
  const tried = preparationsOf(asked, tapRows).map((preparation): Planned<ImplicitProduct> => {
    const { operands, written } = preparation;
    const request = written?.request ?? asked;
    const product = productOf(request, operands, written ? writtenBytes(written) : 0);
    const cut = cutProduct(request, product);
    if (isRefusal(cut)) return cut;
    const writing = written ? writingTime(asked, written) : 0;
    return { ...preparation, product, cut, time: writing + implicitTime(request, operands, cut) };
  });
  // A packed filter that there is no room for is none where it can be read as it lies.
  const roomy = tried.filter((one) => hasRoom(asked, one));
  return (roomy.length > 0 ? roomy : tried).reduce((best, one) =>
    !isRefusal(one) &&
      (isRefusal(best) || one.time < best.time ||
        one.time === best.time && one.cut.cost < best.cut.cost)
      ? one
      : best
  );
}

/** What of a product its operands say: its sides, and its depth in steps. */
export function operandsProduct(
  { rows, columns, batches, depth, uneven, share }: Operands,
  { variant }: PlanRequest,
): Pick<Product, "rows" | "columns" | "batches" | "steps" | "wholeSteps" | "share"> {
  return {
    ...{ rows, columns, batches },
    ...(uneven === undefined
      ? stepsOf(depth, variant)
      : { steps: (policy) => Math.ceil(depth(policy) / policy.depth) }),
    ...(share === undefined ? {} : { share }),
  };
}

/** The product of a request's operands, before it is cut. */
function productOf(request: PlanRequest, operands: Operands, written: number): Product {
  const elements = resultElements(request.problem);
  const sums = storesApart(request, operands) ? bufferBytes(elements, "i32") : 0;
  return {
    ...operandsProduct(operands, request),
    elements,
    workspaceBytes: (policy) => {
      const pack = operands.pack(policy);
      return written + sums +
        (pack === undefined ? 0 : operandBytes(request) * packedElements(pack));
    },
    // Partial sums of single tiles know no order of columns but their own.
    streams: streamsOf(request) && tapRingOf(operands.b) === undefined,
    matrix: productUnit(request, addsUp(operands.result, operands.rows, request.variant)),
    a: operands.a,
    b: operands.b,
  };
}
