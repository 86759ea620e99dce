/** Random convolutions and products, drawn from a seed. */
import { Draw } from "./draw.ts";
import type { AlgorithmName } from "../../src/algorithms/plan.ts";
import { algorithmNames } from "../../src/algorithms/registry.ts";
import type { PlanRequest } from "../../src/algorithms/request.ts";
import type { SizeMode } from "../../src/kernels/module.ts";
import { TILE_POLICIES } from "../../src/kernels/policy.ts";
import {
  type ConvProblem,
  convProblem,
  dilatedSize,
  OPERATIONS,
} from "../../src/problem/conv_problem.ts";
import { PLAIN_ACTIVATIONS } from "../../src/problem/activations.ts";
import { type Epilogue, NO_EPILOGUE } from "../../src/problem/epilogue.ts";
import {
  GEMM_DTYPES,
  type GemmDType,
  type GemmProblem,
  gemmProblem,
  TRANSPOSES,
} from "../../src/problem/gemm_problem.ts";
import { FILL_KINDS, type FillKind } from "../../src/tensor/fill.ts";
import {
  type FilterLayout,
  filterLayoutFor,
  type Layout,
  LAYOUTS,
} from "../../src/tensor/layout.ts";

/** A convolution and how it is to be computed. */
export interface ConvCase {
  readonly kind: "conv";
  readonly problem: ConvProblem;
  readonly layout: Layout;
  readonly filterLayout: FilterLayout;
  readonly epilogue: Epilogue;
  readonly fill: FillKind;
  readonly seed: number;
  readonly choice: Pick<
    PlanRequest,
    "algorithm" | "schedule" | "tile" | "sizes"
  >;
}

/** A product and how it is to be computed. */
export interface GemmCase {
  readonly kind: "gemm";
  readonly problem: GemmProblem;
  readonly dtype: GemmDType;
  readonly accumulate: "f32" | "f16";
  readonly fill: FillKind;
  readonly seed: number;
  readonly choice: {
    readonly policy: string;
    readonly splits?: number;
    readonly sizes: SizeMode;
  };
}

/** Tiles to ask for, of each Winograd algorithm. */
const TILES: Readonly<Partial<Record<AlgorithmName, readonly string[]>>> = {
  "winograd2d-nonfused": [
    "F(2x2,3x3)",
    "F(4x4,3x3)",
    "F(6x6,3x3)",
    "F(4x4,5x5)",
    "F(2x2,2x2)",
    "F(3x3,3x3)",
  ],
  winograd2d: ["F(2x2,3x3)"],
  winograd1d: ["F(2,3)", "F(4,3)", "F(6,3)", "F(4,5)", "F(2,2)"],
};

/** A policy: nearly always the smallest, since its pipelines compile in a tenth of the others' time. */
function drawPolicy(draw: Draw): string {
  return draw.chance(0.9) ? "tiny" : draw.pick(TILE_POLICIES).name;
}

/** Where kernels have their sizes: seldom in their text as users' kernels do, since each then compiles its own pipelines. */
function drawSizes(draw: Draw): SizeMode {
  return draw.chance(0.1) ? "constant" : "uniform";
}

/** Most products of a problem: plain loops take a moment for them. */
const BUDGET = 1e6;

function drawConv(draw: Draw): ConvCase {
  const algorithm = draw.pick<AlgorithmName | "auto">(["auto", ...algorithmNames()]);
  const op = algorithm === "winrs" ? "bwd-filter" : draw.pick(OPERATIONS);
  const winograd = algorithm.startsWith("win");
  const rank = winograd ? draw.pick([1, 2, 2, 2]) : draw.pick([1, 2, 2, 3]);
  const groups = draw.pick([1, 1, 1, 2, 3]);
  const most = rank === 3 ? 6 : 24;
  const axes = draw.times(rank, () => {
    const filter = winograd ? draw.pick([2, 3, 3, 3, 5]) : draw.int(1, 5);
    const dilation = winograd && algorithm !== "winograd2d-nonfused"
      ? 1
      : draw.pick([1, 1, 1, 2, 3]);
    const begin = draw.int(0, 3), end = draw.chance(0.7) ? begin : draw.int(0, 3);
    const stride = winograd ? 1 : draw.pick([1, 1, 2, 3]);
    const size = Math.max(
      1,
      dilatedSize(filter, dilation) + draw.int(0, rank === 3 ? 4 : 10) - begin - end,
    );
    return {
      filter,
      dilation,
      begin,
      end: Math.max(end, dilatedSize(filter, dilation) - size - begin),
      stride,
      size,
    };
  });
  const init = {
    op,
    batch: draw.int(1, 4),
    groups,
    inChannels: groups * draw.int(1, most),
    outChannels: groups * draw.int(1, most),
    inputSize: axes.map(({ size }) => size),
    filterSize: axes.map(({ filter }) => filter),
    stride: axes.map(({ stride }) => stride),
    paddingBegin: axes.map(({ begin }) => begin),
    paddingEnd: axes.map(({ end }) => end),
    dilation: axes.map(({ dilation }) => dilation),
  };
  let problem = convProblem(init);
  // The plain reference is to take a fraction of a second.
  while (products(problem) > BUDGET) {
    const { inChannels, outChannels, batch } = problem;
    const half = (count: number) => groups * Math.max(1, Math.floor(count / groups / 2));
    problem = convProblem({
      ...init,
      batch: Math.max(1, batch >> 1),
      inChannels: half(inChannels),
      outChannels: half(outChannels),
    });
    init.batch = problem.batch;
    init.inChannels = problem.inChannels;
    init.outChannels = problem.outChannels;
  }
  const layout = draw.pick(LAYOUTS);
  const tiles = algorithm === "auto" ? undefined : TILES[algorithm];
  const fused = algorithm === "winograd1d" || algorithm === "winograd2d" || algorithm === "winrs";
  const free = algorithm === "auto" || algorithm === "direct";
  return {
    kind: "conv",
    problem,
    layout,
    filterLayout: filterLayoutFor(layout),
    epilogue: op === "fwd" && draw.chance(0.4)
      ? { bias: draw.chance(0.5), activation: draw.pick(PLAIN_ACTIVATIONS) }
      : NO_EPILOGUE,
    fill: draw.pick(FILL_KINDS),
    seed: draw.int(0, 1e6),
    choice: {
      algorithm,
      ...(tiles && draw.chance(0.4) ? { tile: draw.pick(tiles) } : {}),
      schedule: {
        ...(fused && draw.chance(0.95)
          ? { policy: draw.pick(["32x32x8_4x4", "16x16x4_4x4"]) }
          : {}),
        ...(!free && !fused && draw.chance(0.95) ? { policy: drawPolicy(draw) } : {}),
        ...(!free && !winograd && draw.chance(0.2) ? { splits: draw.int(1, 4) } : {}),
      },
      sizes: drawSizes(draw),
    },
  };
}

function products(
  { batch, inChannels, outChannels, groups, outputSize, filterSize }: ConvProblem,
): number {
  return [...outputSize, ...filterSize].reduce(
    (product, size) => product * size,
    batch * inChannels * outChannels / groups,
  );
}

/** Fills whose chains of 32 products f16 holds. */
const HALF_FILLS = FILL_KINDS.filter((kind) => !["int8", "outliers", "mixed"].includes(kind));

function drawGemm(draw: Draw): GemmCase {
  const dtype = draw.pick(GEMM_DTYPES);
  const whole = dtype === "i8";
  const size = () => draw.pick([draw.int(1, 9), draw.int(1, 70), draw.int(60, 130)]);
  const [m, n] = [size(), size()];
  const k = draw.chance(0.2) ? draw.int(200, 900) : size();
  const halfSums = dtype === "f16" && draw.chance(0.4);
  const small = whole ? [1, -3, 2] : [1, 1, -1.5, 0.1];
  const problem = gemmProblem({
    m,
    n,
    k: Math.max(1, Math.min(k, Math.floor(BUDGET / (m * n)))),
    batch: draw.pick([1, 1, 1, 2, 3]),
    transpose: draw.pick(TRANSPOSES),
    alpha: draw.pick(small),
    beta: draw.chance(0.3) ? draw.pick(small) : 0,
    bias: draw.pick(["none", "none", "row", "column"] as const),
    activation: draw.chance(0.3)
      ? draw.pick(whole ? ["relu"] as const : PLAIN_ACTIVATIONS)
      : "none",
    residual: draw.chance(0.2),
  });
  return {
    kind: "gemm",
    problem,
    dtype,
    accumulate: halfSums ? "f16" : "f32",
    fill: whole
      ? draw.pick(["constant", "integer", "int8"] as const)
      : draw.pick(halfSums ? HALF_FILLS : FILL_KINDS),
    seed: draw.int(0, 1e6),
    choice: {
      policy: drawPolicy(draw),
      ...(draw.chance(0.3) ? { splits: draw.int(1, 4) } : {}),
      sizes: drawSizes(draw),
    },
  };
}

export function caseOf(seed: number, number: number): ConvCase | GemmCase {
  const draw = new Draw(seed, "problems", number);
  return draw.chance(0.35) ? drawGemm(draw) : drawConv(draw);
}
