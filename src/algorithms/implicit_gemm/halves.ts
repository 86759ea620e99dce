/** Products of f32 in halves: how they are cut, what they take, and their passes. */
import { type EpilogueFactory, NO_STEPS } from "../../kernels/epilogue.ts";
import { canonicalName } from "../../kernels/kernel.ts";
import { unitDepth } from "../../kernels/matrix_units.ts";
import { moduleBuilder, type SizeMode } from "../../kernels/module.ts";
import type { SplitHalves } from "../../kernels/split_halves.ts";
import { type RescaledResults, rescaleStep } from "../../kernels/split_rescale.ts";
import {
  FLAG_OF,
  flagWords,
  splitRestKernel,
  type SplitWindows,
  splitWindowsKernel,
} from "../../kernels/split_rest.ts";
import {
  accumulationLength,
  type ConvTensor,
  operandTensors,
  resultTensor,
} from "../../problem/conv_problem.ts";
import type { PlanArithmetic } from "../../problem/plan_arithmetic.ts";
import { meanChain } from "../../problem/split_rounding.ts";
import { elementCount } from "../../tensor/tensor.ts";
import { addsUp, cutTiles, productPass } from "../conv_product.ts";
import { type Cut, cutProduct, cutSchedule } from "../cut.ts";
import { cutNotes } from "../cut_notes.ts";
import { deviceOf } from "../device/h200.ts";
import { copyTime, productTime } from "../device/model.ts";
import { splittingCost } from "../gemm/operands.ts";
import { stridesOf } from "../geometry.ts";
import { halvesArithmetic } from "../halves.ts";
import {
  clearMarksPass,
  convEpilogue,
  maximaPasses,
  pass,
  reducePass,
  splitHalvesPass,
} from "../passes.ts";
import type { Pass, Plan } from "../plan.ts";
import { type Product, productUnit } from "../product.ts";
import { isRefusal, type Planned, refusal } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { problemBuffers, reduceShape, resultElements, tensorElements } from "../tensors.ts";
import { copiedElements, copyPasses } from "./channels_copy.ts";
import {
  filledShare,
  type HalvesMarks,
  halvesMarks,
  type HalvesOperands,
  halvesOperands,
  inHalves,
  metShare,
  sumsPlaces,
  turnedImages,
  writtenElements,
  writtenOperands,
} from "./halves_operands.ts";
import { implicitTime, operandsProduct } from "./product.ts";

/** The product of a request in halves, how it is cut and what it takes. */
export interface HalvesProduct extends HalvesOperands {
  readonly product: Product;
  readonly cut: Cut;
  /** Predicted microseconds. */
  readonly time: number;
}

/** Why implicit GEMM has no halves of a convolution, as a clause; undefined if it has. */
export function refuseHalves({ problem, layout }: PlanRequest): string | undefined {
  if (problem.groups > 1) return "its halves are of one group";
  if (layout === "chwn") return "its halves are of nchw and nhwc";
  const tensors = [...operandTensors(problem.op), resultTensor(problem.op)];
  const empty = tensors.some((which) => tensorElements(problem, which) === 0);
  return empty ? "there is nothing to sum" : undefined;
}

/** The product of a request in halves that is predicted to take least. */
export function halvesProduct(asked: PlanRequest): Planned<HalvesProduct> {
  const reason = refuseHalves(asked);
  if (reason !== undefined) {
    return refusal("problem", `math f16x3 by implicit-gemm cannot be: ${reason}`);
  }
  const request = inHalves(asked);
  const tried = halvesOperands(asked, request).map((operands): Planned<HalvesProduct> => {
    const way = { request, operands };
    const product = productOf(asked, way);
    const cut = cutProduct(request, product);
    if (isRefusal(cut)) return cut;
    const { depth, name } = cut.policy;
    const whole = sumsPlaces(asked)
      ? request.problem.batch
      : operands.pack(cut.policy)!.paddedChannels;
    if (operands.crossesTaps(cut.policy) || whole % depth !== 0) {
      return refusal(
        "problem",
        `policy ${name} has steps of ${depth}, halves lie in runs of ${whole}`,
      );
    }
    return { ...way, product, cut, time: timeOf(asked, way, cut) };
  });
  return tried.reduce((best, one) =>
    !isRefusal(one) && (isRefusal(best) || one.time < best.time) ? one : best
  );
}

/** Values of an operand, as gemm has them for what splitting costs. */
function splitting(asked: PlanRequest, which: ConvTensor): number {
  const depth = tensorElements(asked.problem, which);
  return splittingCost(deviceOf(asked), {
    ...{ places: 1, depth, batches: 1, along: "depth", batchStride: 0, vector: 4 },
  });
}

/** The product of halves, before it is cut. */
function productOf(asked: PlanRequest, way: HalvesOperands): Product {
  const { request, operands } = way;
  const elements = resultElements(asked.problem);
  return {
    ...operandsProduct(operands, request),
    elements,
    finishedApart: true,
    workspaceBytes: (policy) => {
      const { a, b } = writtenOperands(asked, way, policy);
      const turned = turnedImages(asked).reduce((sum, { copy }) => sum + copiedElements(copy), 0);
      return 2 * (writtenElements(a) + writtenElements(b)) +
        4 * (turned + halvesMarks(asked).words + flagWords(elements));
    },
    matrix: productUnit(
      request,
      addsUp(operands.result, operands.rows),
      accumulationLength(asked.problem),
    ),
    a: { ...operands.a, packing: () => splitting(asked, operandTensors(asked.problem.op)[1]) },
    b: operands.b,
  };
}

/** Microseconds of a product in halves: images in halves, then the product as f16 has it. */
function timeOf(asked: PlanRequest, { request, operands }: HalvesOperands, cut: Cut): number {
  const device = deviceOf(asked);
  const { rates, times } = device;
  // Places are counted, and flagged results looked for.
  const beside = 2 * times.dispatch;
  const images = productTime(splitting(asked, operandTensors(asked.problem.op)[0]), rates.gathered);
  const turned = turnedImages(asked).reduce((sum, { copy }) => {
    return sum + copyTime(2 * 4 * copiedElements(copy), rates.filterStream, device);
  }, 0);
  return images + turned + beside +
    implicitTime(request, { ...operands, pack: () => undefined }, cut);
}

const HALVES_NOTE =
  "f16x3: of f32 in two halves three products; passes before it find powers of two for images and channels and split both, " +
  "one after it sums in f32 what halves do not hold";

export function planHalves(
  asked: PlanRequest,
  chosen: HalvesProduct,
  mode: SizeMode,
): Planned<Plan> {
  const { operands, cut } = chosen;
  const { problem, limits, layout, filterLayout } = asked;
  const { policy, splits } = cut;
  const { buffers, tensor, ends } = problemBuffers(asked, mode);
  const [image, other] = operandTensors(problem.op);
  const result = tensor[resultTensor(problem.op)];
  const elements = resultElements(problem);
  const products = accumulationLength(problem);
  const { columns } = operands;
  const rows = operands.loopRows?.(policy) ?? operands.rows;
  const depth = operands.depth(policy);
  const unit = chosen.product.matrix!.chain;
  const marks = halvesMarks(asked);
  const { images } = marks;
  const { cutsOff } = asked.matrixUnits!;
  const filled = filledShare(asked, chosen);
  const arithmetic = drifting(halvesArithmetic(cut, depth, products, unit, cutsOff, filled));
  const written = writtenOperands(asked, chosen, policy);
  const [a, b] = [written.a, written.b].map((operand) =>
    buffers.workspace(`halves of ${operand.which}`, writtenElements(operand), "f16")
  ) as [number, number];
  const source = { ...tensor };
  const turned = turnedImages(asked).flatMap(({ which, copy }) => {
    const packed = buffers.workspace(`${which} with channels last`, copiedElements(copy), "f32");
    source[which] = packed;
    return copyPasses(copy, buffers, { unpacked: tensor[which], packed }, "f32");
  });
  const places = {
    marks: buffers.workspace("marks of rows and columns", marks.words, "u32"),
    flags: buffers.workspace("flags of results", flagWords(elements), "u32"),
  };
  for (const place of Object.values(places)) {
    if (buffers.split(place).parts === 1) continue;
    const { name, bytes } = buffers.list[place]!;
    buffers.refuse(
      refusal(
        "limit",
        `${name} take ${bytes} bytes, one binding has ${limits.maxStorageBufferBindingSize}`,
      ),
    );
  }
  const partials = buffers.workspace("partial results", splits * elements, "f32");
  const main = product();
  const finished: EpilogueFactory = (module, width, row) => [
    rescaleStep(module, {
      marks,
      depth: products,
      ...(images.places === 0 ? { drift: arithmetic.drift ?? 0 } : {}),
      ...resultPlaces(asked, marks),
    }),
    ...convEpilogue(asked)(module, width, row),
  ];
  const between = { ...places, partials, result, ...ends };
  const flagged = splitRestKernel(
    buffers.module(tensor),
    { problem, layout, filterLayout },
    convEpilogue(asked),
  );
  return buffers.plan({
    kernel: canonicalName(main.kernel),
    algorithm: "implicit-gemm",
    passes: [
      clearMarksPass(buffers, places, marks.words),
      ...turned,
      ...largest("a"),
      ...largest("b"),
      splitting("a"),
      splitting("b"),
      ...windows(),
      main,
      reducePass(reduceShape(asked, splits, true), finished, buffers, between, "f32"),
      // Sums flagged results in f32.
      pass(flagged, buffers, { ...tensor, ...places, ...ends }),
    ],
    multiplications: main.multiplications,
    arithmetic,
    schedule: cutSchedule(cut, asked),
    notes: [
      `a product of ${operands.rows} x ${operands.columns} x ${products}`,
      HALVES_NOTE,
      ...(turned.length === 0 ? [] : ["images written once with channels innermost before"]),
      ...cutNotes(cut, cutTiles({ cut, rows, columns }, 1), asked),
    ],
  });

  /** By how much results are enlarged: forward and backward-data each by the products that it meets, a gradient by their mean. */
  function drifting(arithmetic: PlanArithmetic): PlanArithmetic {
    const { drift } = arithmetic;
    if (drift === undefined) return arithmetic;
    if (images.places === 0) {
      return { ...arithmetic, drift: Math.round(drift * metShare(asked)) };
    }
    // Splits of a class share its own depth.
    const shared = operands.uneven === undefined ? 1 : splits;
    const length = Math.max(1, Math.round(shared * meanChain(arithmetic, products)));
    return { ...arithmetic, driftLength: length };
  }

  /** The passes that find the largest values of an operand. */
  function largest(side: "a" | "b"): Pass[] {
    const { which, keys, rest } = written[side];
    const firstKey = marksOf(side).largest.first;
    const shape = { keys, rest, firstKey, firstFine: firstFine(side) };
    return maximaPasses(buffers, places, shape, source[which]);
  }

  /** Where it is said how fine the values are that are rounded away from zero: places of the results are those of B. */
  function firstFine(side: "a" | "b"): number | undefined {
    return side === "b" && arithmetic.highs === "away" ? marks.fine : undefined;
  }

  /** Where the largest values and counts of an operand's places are. */
  function marksOf(side: "a" | "b"): Pick<SplitHalves, "largest" | "counts"> {
    if (side === "b" && images.places > 0) {
      const { shape } = written.b;
      return {
        largest: { first: images.largest, batch: 1, place: 0 },
        counts: { first: images.counts, batch: shape.places, kind: images.places },
      };
    }
    const first = marks.first[side];
    // Not every large value of a gradient's images is met by every tap.
    const kind = side === "b" ? {} : { kind: marks.places };
    return {
      largest: { first, batch: 0, place: 1 },
      counts: { first: first + marks.places, batch: 0, ...kind },
    };
  }

  function splitting(side: "a" | "b"): Pass {
    const { which, shape } = written[side];
    const halves: SplitHalves = {
      ...shape,
      ...marksOf(side),
      firstFine: firstFine(side),
      flags: side === "a" ? flagWords(elements) : 0,
      unitDepth: unitDepth(policy.matrix!.unit),
      rounding: (side === "b" ? arithmetic.highs : undefined) ?? "nearest",
    };
    return splitHalvesPass(buffers, places, halves, source[which], side === "a" ? a : b);
  }

  /** The pass that adds up the marks of images' places for each place of the result. */
  function windows(): Pass[] {
    if (images.places === 0) return [];
    const shape: SplitWindows = {
      problem,
      firstLargest: images.largest,
      counts: { first: images.counts, kind: images.places },
      places: { first: marks.first.b, kind: marks.places },
      drift: {
        most: arithmetic.drift ?? 0,
        length: arithmetic.driftLength ?? 1,
        channels: products / elementCount(problem.filterSize),
      },
    };
    const kernel = splitWindowsKernel(buffers.module({}), shape);
    return [pass(kernel, buffers, places)];
  }

  /** The product of halves, whose sums are left as they are. */
  function product(): Pass {
    const module = moduleBuilder(mode);
    const split = buffers.splits({ a, b });
    const [aLoader, bLoader] = operands.loaders(module, policy, (operand) => split[operand]);
    return productPass({
      name: `implicit_gemm_${problem.op.replace("-", "_")}_f32_f16x3`,
      accumulate: "f32",
      chain: unit,
      trait: operands.trait(policy),
      module,
      policy,
      variant: asked.schedule,
      rows,
      columns,
      depth,
      batches: 1,
      splits,
      uneven: operands.uneven?.(module, policy),
      a: aLoader,
      b: bLoader,
      places: { [operands.left === "filter" ? "packed" : other]: a, [image]: b },
      target: {
        ...operands.result,
        buffer: partials,
        element: "f32",
        ...(splits === 1 ? {} : { split: elements }),
      },
      epilogue: NO_STEPS,
      ends,
    }, buffers);
  }
}

/** Where the marks and flags of results are. */
function resultPlaces(
  request: PlanRequest,
  { first }: HalvesMarks,
): Pick<RescaledResults, "trait" | "places"> {
  const which = resultTensor(request.problem.op);
  const [outerStride, channelStride] = stridesOf(request, which) as [number, number];
  // Of nchw columns count the places of a channel of an image.
  const planes = which !== "filter" && channelStride > 1;
  return {
    trait: `rescaled_${which === "filter" ? "filters" : planes ? "planes" : "blocks"}`,
    places(module) {
      const size = (name: string, value: number) => module.size(`split_${name}`, value);
      const image = planes
        ? ` + at / ${size("image_stride", outerStride)} * ${size("channel_stride", channelStride)}`
        : "";
      return {
        row: "row",
        column: `${size("first_column", first.b)}${image} + column`,
        ...FLAG_OF,
      };
    },
  };
}
