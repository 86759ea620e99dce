import { fullVariant } from "../../kernels/main_loop_variant.ts";
import { packedElements } from "../../kernels/pack.ts";
import { TILE_POLICIES } from "../../kernels/policy.ts";
import { type Cut, cutProduct } from "../cut.ts";
import { streamsOf } from "../cut_passes.ts";
import { addsUp } from "../conv_product.ts";
import { type Product, productUnit, stepsOf } from "../product.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import type { Layout } from "../../tensor/layout.ts";
import type { PlanRequest } from "../request.ts";
import { bufferBytes, operandBytes, resultElements } from "../tensors.ts";
import type { Operands } from "./access.ts";
import { classOperands } from "./class_operands.ts";
import { correlationOperands } from "./correlation_operands.ts";
import { gatherOperands } from "./gather_operands.ts";
import { implicitTime, storesApart } from "./price.ts";
import {
  type ChannelsLast,
  channelsLastBytes,
  channelsLastTime,
  channelsLastWays,
} from "./channels_last.ts";
import { type Words, wordsBytes, wordsTime, wordWays } from "./words.ts";

/** What implicit GEMM multiplies, how that is cut, and what it takes. */
export interface ImplicitProduct {
  readonly operands: Operands;
  readonly product: Product;
  readonly cut: Cut;
  /** Predicted microseconds. */
  readonly time: number;
  /** How operands are written with channels innermost before, and lie so; undefined where they are read as they lie. */
  readonly channelsLast: ChannelsLast | undefined;
  /** Of int8: its words of channels. */
  readonly words: Words | undefined;
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
function operandsOf(
  asked: PlanRequest,
  results: Layout,
): readonly [Operands, ...Operands[]] {
  const request = withFreeStrides(asked);
  const { op, stride } = request.problem;
  if (op === "bwd-filter") return correlationOperands(request);
  if (op === "fwd" || stride.every((step) => step === 1)) return gatherOperands(request, results);
  return classOperands(request, results);
}

/** Operands that a request may become, and what is written before they are read. */
interface Way {
  /** As the operands lie. */
  readonly request: PlanRequest;
  readonly operands: Operands;
  /** Bytes that passes before write, and the microseconds they take. */
  readonly written: { readonly bytes: number; readonly time: number };
  readonly channelsLast: ChannelsLast | undefined;
  readonly words: Words | undefined;
}

/** Every way to make a product of a request; of int8 its channels are words. By rows of taps alone where there are such and `tapRows`. */
function waysOf(asked: PlanRequest, tapRows: boolean): readonly [Way, ...Way[]] {
  const { packedFilter } = fullVariant(asked.variant);
  const [first, ...rest] = asked.dtype === "i8"
    ? wordWays(asked).flatMap((words) => writtenWays(asked, words))
    : writtenWays(asked, undefined);
  const all = [first!, ...rest] as const;
  const walked = tapRows ? preferred(all, ({ b }) => (b.tapRow ?? b.tapRing) !== undefined) : all;
  return packedFilter
    ? preferred(walked, ({ pack }) => pack(TILE_POLICIES[0]!) !== undefined)
    : walked;
}

/** The ways of a request whose operands are read as they lie, of int8 as its words do, or written once more with channels innermost. */
function writtenWays(asked: PlanRequest, words: Words | undefined): readonly [Way, ...Way[]] {
  const request = words?.request ?? asked;
  const { channelsLast: rewritten } = fullVariant(request.variant);
  const ways = (
    request: PlanRequest,
    results: Layout,
    rest: Pick<Way, "written" | "channelsLast">,
  ) => {
    const [first, ...others] = operandsOf(request, results);
    const way = (operands: Operands): Way => ({ request, operands, words, ...rest });
    return [way(first), ...others.map(way)] as const;
  };
  const lying = ways(request, request.layout, {
    written: words === undefined
      ? { bytes: 0, time: 0 }
      : { bytes: wordsBytes(words), time: wordsTime(asked, words) },
    channelsLast: undefined,
  });
  const [last, ...others] = channelsLastWays(request).flatMap((channelsLast) =>
    ways(channelsLast.request, request.layout, {
      written: {
        bytes: channelsLastBytes(channelsLast),
        time: channelsLastTime(request, channelsLast),
      },
      channelsLast,
    })
  );
  if (last === undefined) return lying;
  return rewritten ? [last, ...others] : [...lying, last, ...others];
}

/** Those ways whose operands are such; all where none are. */
function preferred(
  ways: readonly [Way, ...Way[]],
  such: (operands: Operands) => boolean,
): readonly [Way, ...Way[]] {
  const [first, ...others] = ways.filter(({ operands }) => such(operands));
  return first === undefined ? ways : [first, ...others];
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
  const tried = waysOf(asked, tapRows).map((way): Planned<ImplicitProduct> => {
    const { request, operands, written, channelsLast, words } = way;
    const product = productOf(request, operands, written.bytes);
    const cut = cutProduct(request, product);
    if (isRefusal(cut)) return cut;
    const time = written.time + implicitTime(request, operands, cut);
    return { operands, product, cut, time, channelsLast, words };
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
    streams: streamsOf(request) && operands.b.tapRing === undefined,
    matrix: productUnit(request, addsUp(operands.result, operands.rows, request.variant)),
    a: operands.a,
    b: operands.b,
  };
}
