import { elementsOf, sumOf } from "../../elements/elements.ts";
import type { Stored } from "../../elements/scalar.ts";
import type { MatrixStack, TileAxis, TiledTensor } from "../../kernels/winograd_tiles.ts";
import {
  type ConvProblem,
  type ConvTensor,
  operandTensors,
  resultTensor,
  tensorShape,
} from "../../problem/conv_problem.ts";
import type { SplitDrift } from "../../problem/split_rounding.ts";
import { type Matrix, transpose } from "../../winograd/matrix.ts";
import { formatTile, parseTile, type WinogradTile } from "../../winograd/tile.ts";
import { tileTransform, type WinogradTransform } from "../../winograd/transform.ts";
import { tileCount } from "../../problem/plan_arithmetic.ts";
import type { Cut } from "../cut.ts";
import { groupOf, stridesOf } from "../geometry.ts";
import type { PlanRequest } from "../request.ts";
import type { ProblemBuffers } from "../tensors.ts";

/** Largest n + r − 1 of an axis that the default takes: beyond it rounding errors grow fast. */
const DEFAULT_ALPHA = 8;
/** Largest step of the default tile. */
const DEFAULT_STEP = 4;
/** Longest filter axis: F(1,16) and F(16,1) are the longest transforms. */
const LONGEST_FILTER = 16;

/**
 * The tile that is taken where none is asked for, one entry a spatial axis. Of the steps up to 4 with α ≤ 8 (2 for
 * filters of 8 and more) each axis takes the one with the fewest products, ⌈size / step⌉·α: 4 for 3x3 and 5x5
 * filters on large images, 3 where an output of 5 would waste three eighths of two tiles of 4. An axis of filter
 * size 1 has tiles of 1, and so no transform. Backward-filter, F(filter size, step), steps through the output.
 */
export function defaultTile(problem: ConvProblem): WinogradTile {
  const { op, filterSize } = problem;
  const sizes = op === "bwd-data" ? problem.inputSize : problem.outputSize;
  const steps = filterSize.map((filter, axis) => {
    const most = Math.max(2, Math.min(DEFAULT_STEP, DEFAULT_ALPHA + 1 - filter));
    const products = (step: number) =>
      tileCount(sizes[axis]!, step, problem.dilation[axis]!) * (step + filter - 1);
    let best = 1;
    for (let step = 2; step <= Math.min(most, LONGEST_FILTER + 1 - filter); step++) {
      if (products(step) < products(best)) best = step;
    }
    return best;
  });
  return op === "bwd-filter" ? { n: [...filterSize], r: steps } : { n: steps, r: [...filterSize] };
}

function tileOf({ problem, tile }: PlanRequest): WinogradTile {
  return tile === undefined ? defaultTile(problem) : parseTile(tile);
}

/** Why there is no such algorithm for the problem, or undefined if there is. */
export function nonfusedReason(request: PlanRequest): string | undefined {
  const { problem } = request;
  const { op, filterSize, stride, dilation } = problem;
  if (request.math === "f16x3" && dilation.some((value) => value !== 1)) {
    return `its dilation is ${dilation.join("x")}, in math f16x3 1 is supported`;
  }
  const rank = filterSize.length;
  if (rank > 2) return `it has ${rank} spatial axes, 1 and 2 are supported`;
  if (stride.some((value) => value !== 1)) return `its stride is ${stride.join("x")}, not 1`;
  const longest = Math.max(...filterSize);
  if (longest > LONGEST_FILTER) {
    return `its filter is ${longest} long, ${LONGEST_FILTER} are supported`;
  }
  const tile = tileOf(request);
  const filter = op === "bwd-filter" ? tile.n : tile.r;
  if (planar(filter, 1).join() !== planar(filterSize, 1).join()) {
    return `tile ${formatTile(tile)} is for filters of ${filter.join("x")}, ` +
      `this one is ${filterSize.join("x")}`;
  }
  return undefined;
}

/** Values of two axes; of one axis, after a first one of `first`. */
function planar(values: readonly number[], first: number): [number, number] {
  return values.length === 1 ? [first, values[0]!] : [values[0]!, values[1]!];
}

/** The tile of a request over two axes, and its transforms. */
interface PlannedTile {
  readonly text: string;
  /** `m4x4r3x3`: in kernel names. */
  readonly trait: string;
  readonly transforms: readonly [WinogradTransform, WinogradTransform];
  /** Products a tile and pair of channels: α0·α1. */
  readonly products: number;
  /** What transformed data is stored in: two halves a value where matrix units multiply them. */
  readonly stored: Stored;
}

/**
 * The tile of a supported request.
 *
 * @throws {SyntaxError | RangeError} if the tile asked for is none.
 */
export function plannedTile(request: PlanRequest): PlannedTile {
  const tile = tileOf(request);
  const n = planar(tile.n, 1);
  const r = planar(tile.r, 1);
  const stored = request.math === "f16x3" ? "halves" : sumOf(elementsOf(request));
  const scaled = stored === "halves" ? "f16" : "f32";
  const transforms = [
    tileTransform(n[0], r[0], scaled),
    tileTransform(n[1], r[1], scaled),
  ] as const;
  return {
    text: formatTile(tile),
    trait: `m${n.join("x")}r${r.join("x")}`,
    transforms,
    products: transforms[0].alpha * transforms[1].alpha,
    stored,
  };
}

type Along = MatrixStack["along"];
type Matrices = readonly [Matrix, Matrix];

/** An operand of the products: patches of a tensor, transformed. */
export interface WinogradOperand {
  readonly which: ConvTensor;
  /** Enters the kernel's name. */
  readonly role: "data" | "gradient" | "filter";
  /** The tensor with so many images (all of them, for a filter). */
  tensor(images: number): TiledTensor;
  readonly matrices: Matrices;
  /** The side that is summed over; the other one is rows or columns of the product. */
  readonly depth: Along;
  /** The contiguous side. */
  readonly along: Along;
}

/** A request's convolution as α0·α1·groups products. */
export interface WinogradGeometry {
  readonly request: PlanRequest;
  readonly tile: PlannedTile;
  /** Operand of the rows, then of the columns. */
  readonly operands: readonly [WinogradOperand, WinogradOperand];
  /** The result of the products: tiles of a tensor. */
  readonly result: {
    readonly which: ConvTensor;
    tensor(images: number): TiledTensor;
    readonly matrices: Matrices;
    readonly masked: boolean;
    /** The side that is the columns of the product. */
    readonly columns: Along;
  };
}

/**
 * How a request's tensors and transforms enter the products. Forward, and backward-data with the filter rotated: transformed filter times
 * transformed images. Backward-filter, F(filter, step): transformed gradient times transformed images, summed over all tiles.
 */
export function geometryOf(request: PlanRequest): WinogradGeometry {
  const { problem, layout, filterLayout } = request;
  const { op } = problem;
  const tile = plannedTile(request);
  const [rows, columns] = tile.transforms;
  const gradient = op === "bwd-filter";
  const filterSize = planar(problem.filterSize, 1);
  const sizes = planar(op === "bwd-data" ? problem.inputSize : problem.outputSize, 1);
  const step = gradient ? [rows.r, columns.r] : [rows.n, columns.n];
  const dilation = planar(problem.dilation, 1);
  const origins = planar(problem.paddingBegin, 0)
    .map((pad, d) => op === "bwd-data" ? pad - (filterSize[d]! - 1) * dilation[d]! : -pad);
  const images = (which: ConvTensor, origins = [0, 0]) => {
    const axes = step.map((step, d) => ({
      tiles: tileCount(sizes[d]!, step, dilation[d]!),
      step,
      origin: origins[d]!,
      dilation: dilation[d]!,
    }));
    const tensor = activations(request, which, axes);
    return (batch: number) => ({ ...tensor, batch });
  };
  const along: Along = layout === "nhwc" ? "channel" : "tile";
  const filter = filterTensor(request);
  const filterOf = () => filter;
  const [source, other] = operandTensors(op);
  const data: WinogradOperand = {
    which: source,
    role: "data",
    tensor: images(source, origins),
    matrices: [transpose(rows.d), transpose(columns.d)],
    depth: gradient ? "tile" : "channel",
    along,
  };
  const forward = op === "fwd";
  const second: WinogradOperand = {
    which: other,
    matrices: [rows.g, columns.g],
    ...(gradient ? { role: "gradient", tensor: images("output"), depth: "tile", along } : {
      role: "filter",
      tensor: filterOf,
      depth: forward ? "channel" : "tile",
      along: forward ? "tile" : "channel",
    }),
  };
  // Columns are what lies innermost in the result, so that neighbours store neighbours.
  const inner: Along = !gradient ? along : filterLayout === "crsk" ? "tile" : "channel";
  const dataFirst = gradient ? inner === "tile" : inner === "channel";
  const target = resultTensor(op);
  return {
    request,
    tile,
    operands: dataFirst ? [data, second] : [second, data],
    result: {
      which: target,
      tensor: gradient ? filterOf : images(target),
      matrices: [transpose(rows.a), transpose(columns.a)],
      masked: !gradient,
      columns: inner,
    },
  };
}

type TileSteps = Omit<TileAxis, "size" | "stride">;

/** What images and filters have in common. */
function tiledTensor(request: PlanRequest, which: ConvTensor, steps: readonly TileSteps[]) {
  const [, , ...shape] = tensorShape(request.problem, which);
  const [batchStride, channelStride, ...strides] = stridesOf(request, which) as [number, number];
  const sizes = planar(shape, 1);
  const along = planar(strides, 0);
  const axis = (d: 0 | 1): TileAxis => ({ size: sizes[d], stride: along[d], ...steps[d]! });
  const axes = [axis(0), axis(1)] as const;
  return { groups: request.problem.groups, batchStride, channelStride, axes };
}

/** Images, however many there are. */
function activations(
  request: PlanRequest,
  which: ConvTensor,
  steps: readonly TileSteps[],
): Omit<TiledTensor, "batch"> {
  const { problem, layout } = request;
  const tensor = tiledTensor(request, which, steps);
  const channels = tensorShape(problem, which)[1]! / problem.groups;
  const groupStride = channels * tensor.channelStride;
  return { ...tensor, groupStride, channels, batchInner: layout === "chwn" };
}

/** The filter, one tile for each of a group's K x C. */
function filterTensor(request: PlanRequest): TiledTensor {
  const one = { tiles: 1, step: 0, origin: 0, dilation: 1 };
  const tensor = tiledTensor(request, "filter", [one, one]);
  const { inputs, outputs } = groupOf(request);
  const groupStride = outputs * tensor.batchStride;
  return { ...tensor, groupStride, batch: outputs, channels: inputs, batchInner: false };
}

/** The products of one chunk of the batch, cut and laid out in memory. */
export interface ChunkLayout {
  readonly images: number;
  readonly rows: number;
  readonly columns: number;
  /** Products of matrices: α0·α1·groups. */
  readonly batches: number;
  /** In values, padded to the policy. */
  readonly depth: number;
  readonly cut: Cut;
  readonly stacks: readonly [MatrixStack, MatrixStack];
  /** Matrices of rows x columns, columns padded to vectors. */
  readonly result: MatrixStack;
  readonly resultColumns: number;
  /** Elements of each operand's stack and of one split's products. */
  readonly operandElements: readonly [number, number];
  readonly resultElements: number;
}

/** What the parts of a plan share. */
export interface Context {
  readonly geometry: WinogradGeometry;
  readonly tensors: ProblemBuffers;
  /** Of the transformed operands. */
  readonly operands: readonly [number, number];
  /** Of halves: what is kept of the operands. */
  readonly marks: number | undefined;
  readonly drift: SplitDrift;
}
