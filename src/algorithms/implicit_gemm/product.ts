import { tapRingOf } from "../../kernels/loader.ts";
import { elementsOf } from "../../elements/elements.ts";
import { fullVariant } from "../../kernels/variant.ts";
import { packedElements } from "../../kernels/pack.ts";
import { TILE_POLICIES, type TilePolicy } from "../../kernels/policy.ts";
import type { Layout } from "../../tensor/layout.ts";
import { addsUp, streamsOf, targetStore } from "../conv_product.ts";
import { convertingShare, gatheredTime, isHalf, storedShare } from "../product_time.ts";
import { type Cut, cutProduct } from "../cut.ts";
import { deviceOf } from "../device/h200.ts";
import { productTime } from "../device/model.ts";
import { groupOf } from "../geometry.ts";
import { quantizeTime, sumsRequest } from "../passes.ts";
import { type Product, productUnit, stepsOf } from "../product.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { bufferBytes, operandBytes, resultBytes, resultElements } from "../tensors.ts";
import { accessVector, type Operands } from "./access.ts";
import { classOperands } from "./class_operands.ts";
import { correlationOperands } from "./correlation_operands.ts";
import { gatherOperands } from "./gather_operands.ts";
import { channelsLastWays, wordWays, writingTime, type Written, writtenBytes } from "./written.ts";

/** Whether a separate pass stores int8 results: where the four results of a thread are no word, and a word has one writer. */
export function storesApart(request: PlanRequest, { result, rows }: Operands): boolean {
  return elementsOf(request).result === "i8" &&
    targetStore(result, rows) !== "rows";
}

/** Share of the rate that is left where bf16 is loaded alone: half of each word is used (stems of 3 channels on an H200). */
const BF16_SINGLE = 0.8;

/** Microseconds of implicit GEMM: packing the filter, then the product. The cut's cost includes split-K's reduction. */
export function implicitTime(
  request: PlanRequest,
  operands: Operands,
  cut: Cut,
): number {
  const { policy, cost } = cut;
  const { problem, layout } = request;
  const { rates, shares, software } = deviceOf(request);
  const rate = problem.op !== "bwd-filter"
    ? rates.gathered
    : rates.correlated[layout === "nhwc" ? "along" : "across"];
  const share = loadsShare(request, operands, policy);
  const units = policy.matrix === undefined
    ? convertingShare(request, cut)
    : unitsShare(request, operands, policy);
  const { result, rows } = operands;
  // A filter that is read in place, element by element.
  const uncoalesced = operands.left === "filter" && operands.a.vector === 1 &&
    operands.pack(policy) === undefined;
  const alone = request.dtype === "bf16" && layout === "nhwc" && operands.b.vector === 1;
  const unpacked = alone && !software ? BF16_SINGLE : 1;
  const loads = unpacked * (uncoalesced ? shares.strewn : 1);
  const apart = storesApart(request, operands);
  return (apart ? quantizeTime(request) : 0) +
    gatheredTime(
      apart ? sumsRequest(request) : request,
      productTime(cost, share * units * loads * rate),
      operands.pack(policy),
      storedShare(request, result, rows),
    );
}

/** Share of the rate that is left where places are found element by element. Shares are of tiles of 64 rows: with fewer a load serves less. */
function loadsShare(request: PlanRequest, operands: Operands, policy: TilePolicy): number {
  const { singleLoads, linear } = deviceOf(request).shares;
  const single = operands.b.vector === 1;
  const crosses = operands.crossesTaps(policy);
  const loads = 64 / policy.rows;
  // A vector computes its address once.
  if (request.problem.op !== "bwd-filter") return crosses && single ? linear : 1;
  if (single && request.layout === "nhwc") return singleLoads ** loads;
  if (policy.matrix !== undefined) return crosses ? linear : 1;
  return crosses || single ? linear ** loads : 1;
}

/** Bytes of a pixel's channels of a group below which a load's line is mostly of others, and the share that is left of f16's rate then. */
const SHORT_RUN = 64;
const GROUP_RUNS = 0.65;

/** Whether a group's channels of a pixel are so few bytes, between those of other groups. */
function readsRuns(request: PlanRequest): boolean {
  const { inputs, outputs } = groupOf(request);
  const channels = request.problem.op === "fwd" ? inputs : outputs;
  return request.problem.groups > 1 && channels * operandBytes(request) < SHORT_RUN;
}

/** Share of the rate on matrix units where images are loaded fewer than eight halves at a time, and of int8. */
function unitsShare(
  request: PlanRequest,
  { b, crossesTaps, pack }: Operands,
  policy: TilePolicy,
): number {
  const { singleHalves, singles, fewHalves, gatheredWords } = deviceOf(request).shares;
  if (request.dtype === "i8") {
    if (b.vector === 1) return gatheredWords.one;
    if (crossesTaps(policy)) return gatheredWords.linear;
    return gatheredWords[pack(policy) === undefined ? "lying" : "packed"];
  }
  const filters = request.problem.op === "bwd-filter";
  if (request.layout !== "nhwc") {
    if (b.vector !== 1) return 1;
    if (crossesTaps(policy)) return fewHalves.one;
    const tile = policy.matrix?.split ? 1 : singles[policy.name] ?? 1;
    return tile * singleHalves[filters ? "correlated" : "gathered"];
  }
  const vector = accessVector(policy, b);
  if (vector === 8) return !filters && readsRuns(request) ? GROUP_RUNS : 1;
  return fewHalves[vector === 4 ? "four" : "one"];
}

/** The geometry of implicit GEMM: its operands, how the product is cut, and the predicted time. */
export interface ImplicitProduct {
  readonly operands: Operands;
  readonly product: Product;
  readonly cut: Cut;
  /** Predicted microseconds. */
  readonly time: number;
  /** How operands are rewritten before; undefined where they are read in place. */
  readonly written: Written | undefined;
}

/** Longer strides may exceed 32 bits, times their padding. */
const MOST_TAPS = 65_535;

/**
 * The request with strides as long as the filter along axes with a single output place, where the stride has no effect: each place of
 * backward-data then meets one tap instead of summing over all.
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

/** The equivalent products that a request may become, with results in layout `results`. */
function operandsOf(asked: PlanRequest, results: Layout): readonly [Operands, ...Operands[]] {
  const request = withFreeStrides(asked);
  const { op, stride } = request.problem;
  if (op === "bwd-filter") return correlationOperands(request);
  if (op === "fwd" || stride.every((step) => step === 1)) return gatherOperands(request, results);
  return classOperands(request, results);
}

/** Operands of a product, and how they are prepared. */
type OperandPreparation = Pick<ImplicitProduct, "operands" | "written">;

/** Every preparation of a request's operands; int8 channels become words. Only rows of taps where `tapRows` asks for them and there are any. */
function preparationsOf(
  asked: PlanRequest,
  tapRows: boolean,
): readonly [OperandPreparation, ...OperandPreparation[]] {
  const { packedFilter, channelsLast: rewritten } = fullVariant(asked.schedule);
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

/** The preparations whose operands match; all where none do. */
function preferred(
  preparations: readonly [OperandPreparation, ...OperandPreparation[]],
  such: (operands: Operands) => boolean,
): readonly [OperandPreparation, ...OperandPreparation[]] {
  const [first, ...others] = preparations.filter(({ operands }) => such(operands));
  return first === undefined ? preparations : [first, ...others];
}

/** The product of a request that is predicted to be fastest. */
export function implicitProduct(asked: PlanRequest): Planned<ImplicitProduct> {
  const { tapRows } = fullVariant(asked.schedule);
  const product = leastProduct(asked, tapRows);
  // Rows of taps that fit no tile or workspace are not used, unless a tile is asked for.
  return tapRows && asked.schedule?.policy === undefined && !hasRoom(asked, product)
    ? leastProduct(asked, false)
    : product;
}

/** Whether a product is planned and fits the workspace. */
function hasRoom(
  { maxWorkspaceBytes = Infinity }: PlanRequest,
  planned: Planned<ImplicitProduct>,
): boolean {
  return !isRefusal(planned) &&
    (planned.product.workspaceBytes?.(planned.cut.policy) ?? 0) <= maxWorkspaceBytes;
}

/** A product on matrix units, and where these multiply halves that are read as they lie by threads alone: how loads suit them differs. */
function processorsOf(product: Product, written: Written | undefined): readonly Product[] {
  const { matrix, b } = product;
  const halves = matrix?.unit.component === "f16" && !matrix.split;
  const both = halves && written === undefined && b.sharedTaps === undefined;
  return both ? [product, { ...product, matrix: undefined }] : [product];
}

function leastProduct(asked: PlanRequest, tapRows: boolean): Planned<ImplicitProduct> {
  const tried = preparationsOf(asked, tapRows).flatMap((preparation) => {
    const { operands, written } = preparation;
    const request = written?.request ?? asked;
    const product = productOf(request, operands, written ? writtenBytes(written) : 0);
    const writing = written ? writingTime(asked, written) : 0;
    return processorsOf(product, written).map((product): Planned<ImplicitProduct> => {
      const cut = cutProduct(request, product);
      if (isRefusal(cut)) return cut;
      return { ...preparation, product, cut, time: writing + implicitTime(request, operands, cut) };
    });
  });
  // Where a packed filter does not fit, the filter is read in place if it can be.
  const roomy = tried.filter((one) => hasRoom(asked, one));
  return (roomy.length > 0 ? roomy : tried).reduce((best, one) =>
    !isRefusal(one) &&
      (isRefusal(best) || one.time < best.time ||
        one.time === best.time && one.cut.cost < best.cut.cost)
      ? one
      : best
  );
}

/** A product's sides, and its depth in steps. */
export function operandsProduct(
  { rows, columns, batches, depth, uneven, share }: Operands,
  { schedule }: PlanRequest,
): Pick<Product, "rows" | "columns" | "batches" | "steps" | "wholeSteps" | "share"> {
  return {
    ...{ rows, columns, batches },
    ...(uneven === undefined
      ? stepsOf(depth, schedule)
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
    ...(isHalf(request) && { resultBytes: resultBytes(request) }),
    workspaceBytes: (policy) => {
      const pack = operands.pack(policy);
      return written + sums +
        (pack === undefined ? 0 : operandBytes(request) * packedElements(pack));
    },
    // Stream-K's partial tiles have no other order of columns.
    streams: streamsOf(request) && tapRingOf(operands.b) === undefined,
    matrix: productUnit(request, addsUp(operands.result, operands.rows)),
    a: operands.a,
    b: operands.b,
  };
}
