import { planGemm } from "../../src/algorithms/gemm/plan.ts";
import type { Plan } from "../../src/algorithms/plan.ts";
import { planConv } from "../../src/algorithms/planner.ts";
import {
  ALGORITHM_NAMES,
  type AlgorithmName,
  type PlanRequest,
} from "../../src/algorithms/request.ts";
import { checkAgainst, type Checked, computeReference } from "../../src/bench/check.ts";
import { checkGemm, computeGemmReference } from "../../src/bench/gemm_check.ts";
import { fillGemm, gemmResult } from "../../src/bench/gemm_operands.ts";
import { convResult, runPlan } from "../../src/bench/gpu_case.ts";
import { fillOperand, type HostOperands } from "../../src/bench/operands.ts";
import { UnsupportedError } from "../../src/errors.ts";
import { type GpuDevice, openDevice } from "../../src/gpu/device.ts";
import { TILE_POLICIES } from "../../src/kernels/policy.ts";
import {
  type ConvProblem,
  convProblem,
  dilatedSize,
  operandTensors,
  OPERATIONS,
  resultTensor,
  tensorShape,
} from "../../src/problem/conv_problem.ts";
import { printDescriptor } from "../../src/problem/descriptor.ts";
import {
  type Activation,
  ACTIVATIONS,
  type Epilogue,
  NO_EPILOGUE,
} from "../../src/problem/epilogue.ts";
import {
  GEMM_DTYPES,
  type GemmDType,
  type GemmProblem,
  gemmProblem,
  TRANSPOSES,
} from "../../src/problem/gemm_problem.ts";
import type { ReferenceResult } from "../../src/reference/reference.ts";
import { FILL_KINDS, type FillKind, fillTensor } from "../../src/tensor/fill.ts";
import {
  type FilterLayout,
  filterLayoutFor,
  type Layout,
  LAYOUTS,
  stridesInLayout,
} from "../../src/tensor/layout.ts";
import { rowMajorStrides, unravelIndex } from "../../src/tensor/tensor.ts";
import { type Attack, Finding, messageFault, type Outcome } from "./attack.ts";
import { Draw } from "./draw.ts";
import { plainConv, plainGemm, type PlainResult } from "./plain_reference.ts";

/** A convolution and how it is to be computed. */
interface ConvCase {
  readonly kind: "conv";
  readonly problem: ConvProblem;
  readonly layout: Layout;
  readonly filterLayout: FilterLayout;
  readonly epilogue: Epilogue;
  readonly fill: FillKind;
  readonly seed: number;
  readonly choice: Pick<PlanRequest, "algorithm" | "policy" | "tile" | "splits" | "flush">;
}

/** A product and how it is to be computed. */
interface GemmCase {
  readonly kind: "gemm";
  readonly problem: GemmProblem;
  readonly dtype: GemmDType;
  readonly accumulate: "f32" | "f16";
  readonly fill: FillKind;
  readonly seed: number;
  readonly choice: { readonly policy: string; readonly splits?: number };
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

/** Most products of a problem: plain loops take a moment for them. */
const BUDGET = 1e6;

function drawConv(draw: Draw): ConvCase {
  const algorithm = draw.pick<AlgorithmName | "auto">(["auto", ...ALGORITHM_NAMES]);
  const op = algorithm === "winrs" ? "bwd-filter" : draw.pick(OPERATIONS);
  const winograd = algorithm.startsWith("win");
  const rank = winograd ? draw.pick([1, 2, 2, 2]) : draw.pick([1, 2, 2, 3]);
  const groups = draw.pick([1, 1, 1, 2, 3]);
  const most = rank === 3 ? 6 : 24;
  const axes = draw.times(rank, () => {
    const filter = winograd ? draw.pick([2, 3, 3, 3, 5]) : draw.int(1, 5);
    const dilation = winograd ? 1 : draw.pick([1, 1, 1, 2, 3]);
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
      ? { bias: draw.chance(0.5), activation: draw.pick(ACTIVATIONS) }
      : NO_EPILOGUE,
    fill: draw.pick(FILL_KINDS),
    seed: draw.int(0, 1e6),
    choice: {
      algorithm,
      ...(tiles && draw.chance(0.4) ? { tile: draw.pick(tiles) } : {}),
      ...(fused && draw.chance(0.95) ? { policy: draw.pick(["32x32x8_4x4", "16x16x4_4x4"]) } : {}),
      ...(!free && !fused && draw.chance(0.95) ? { policy: drawPolicy(draw) } : {}),
      ...(!free && !winograd && draw.chance(0.2) ? { splits: draw.int(1, 4) } : {}),
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
    activation: draw.chance(0.3) ? draw.pick(whole ? ["relu"] as const : ACTIVATIONS) : "none",
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
    },
  };
}

function caseOf(seed: number, number: number): ConvCase | GemmCase {
  const draw = new Draw(seed, "problems", number);
  return draw.chance(0.35) ? drawGemm(draw) : drawConv(draw);
}

/** What a case made, and how it is judged. */
interface Computed {
  readonly kernel: string;
  readonly result: Values;
  readonly reference: ReferenceResult;
  readonly plain: PlainResult;
  /** Relative error that the reference itself may have. */
  readonly exactness: number;
  /** Strides of the result in memory, of its canonical axes. */
  readonly strides: readonly number[];
  /** Unit roundoff of the sums; 0 of integers. */
  readonly roundoff: number;
  readonly activation: Activation;
  readonly check: (result: Values) => Checked;
}

type Values =
  | Float32Array<ArrayBuffer>
  | Float64Array<ArrayBuffer>
  | Float16Array<ArrayBuffer>
  | Int32Array<ArrayBuffer>;

const ONCE = { samples: 1, fillMs: 0 };

async function computeConv(gpu: GpuDevice, one: ConvCase): Promise<Computed | string> {
  const { problem, layout, filterLayout, epilogue, fill, seed, choice } = one;
  const plan = planned(() =>
    planConv({
      problem,
      dtype: "f32",
      layout,
      filterLayout,
      epilogue,
      ...choice,
      limits: gpu.limits,
      sizes: "uniform",
    })
  );
  if (typeof plan === "string") return plan;
  const layouts = { layout, filterLayout };
  const operands: HostOperands = {
    ...Object.fromEntries(
      operandTensors(problem.op).map((which) => [
        which,
        fillOperand(problem, which, layouts, fill, seed),
      ]),
    ),
    ...(epilogue.bias
      ? { bias: fillTensor("f32", [problem.outChannels], fill, seed + 9).data }
      : {}),
  };
  const { result } = await runPlan(gpu, plan, operands, convResult(problem), ONCE);
  const reference = await computeReference({
    problem,
    epilogue,
    operands,
    ...layouts,
    mode: "full",
    seed: 1,
  });
  const shape = tensorShape(problem, resultTensor(problem.op));
  return {
    kernel: plan.kernel,
    result,
    reference,
    plain: plainConv(problem, operands, layout, filterLayout, epilogue),
    exactness: 1e-9,
    strides: stridesInLayout(shape, resultTensor(problem.op) === "filter" ? filterLayout : layout),
    roundoff: 2 ** -24,
    activation: epilogue.activation,
    check: (values) => checkAgainst(reference, values as Float32Array, plan.arithmetic),
  };
}

async function computeGemm(gpu: GpuDevice, one: GemmCase): Promise<Computed | string> {
  const { problem, dtype, accumulate, fill, seed, choice } = one;
  const feature = dtype === "f16" ? "shader-f16" : dtype === "f64" ? "shader-f64" : undefined;
  if (feature !== undefined && !gpu.features.has(feature)) return `without ${feature}`;
  const plan = planned(() =>
    planGemm({
      problem,
      dtype,
      ...(accumulate === "f16" ? { accumulate } : {}),
      ...choice,
      limits: gpu.limits,
      sizes: "uniform",
    })
  );
  if (typeof plan === "string") return plan;
  const operands = fillGemm(problem, dtype, fill, seed);
  const run = await runPlan(gpu, plan, operands, gemmResult(problem, dtype), ONCE);
  const request = { problem, dtype, operands, mode: "full", seed: 1 } as const;
  const reference = await computeGemmReference(request);
  const exact = dtype === "i8" || dtype === "f64";
  const round = exact ? (factor: number) => factor : Math.fround;
  const factors = { alpha: round(problem.alpha), beta: round(problem.beta) };
  return {
    kernel: plan.kernel,
    result: run.result as Values,
    reference,
    plain: plainGemm({ ...problem, ...factors }, operands as Parameters<typeof plainGemm>[1]),
    exactness: dtype === "i8" ? 0 : 1e-9,
    strides: rowMajorStrides(reference.shape),
    roundoff: dtype === "i8"
      ? 0
      : dtype === "f64"
      ? 2 ** -53
      : accumulate === "f16"
      ? 2 ** -11
      : 2 ** -24,
    activation: problem.activation,
    check: (values) => checkGemm(reference, values, plan.arithmetic),
  };
}

/** A plan, or that it was refused in a sentence. */
function planned(make: () => Plan): Plan | string {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof RangeError || error instanceof UnsupportedError)) throw error;
    const fault = messageFault(error.message);
    if (fault !== undefined) throw new Finding(fault);
    return "refused";
  }
}

/** Holds the FP64 reference to loops as plain as the definition. */
function holdReference({ reference, plain, exactness }: Computed): void {
  const { values } = reference;
  for (let i = 0; i < values.length; i++) {
    const expected = plain.values[i]!;
    const room = exactness * plain.magnitudes[i]!;
    if (!(Math.abs(values[i]! - expected) <= room) && !Object.is(values[i], expected)) {
      if (values[i] === expected) continue;
      throw new Finding(
        `the reference has ${values[i]} where plain loops have ${expected}, at ` +
          `[${unravelIndex(i, reference.shape)}]`,
      );
    }
  }
}

/** What can be wrong with a result. Each changes a copy of it. */
const SPOILERS: Readonly<
  Record<string, (draw: Draw, computed: Computed, values: Values, room: Float64Array) => void>
> = {
  "one output off": (draw, { reference, strides }, values, room) => {
    const index = draw.int(0, values.length - 1);
    const at = placeOf(index, reference.shape, strides);
    // So that rounding does not bring it below.
    const amount = values instanceof Int32Array ? 1 : 1.1 * room[index]!;
    values[at] = values[at]! + (draw.chance(0.5) ? amount : -amount);
  },
  "a channel scaled": (draw, computed, values) => {
    const { shape } = computed.reference;
    const axis = channelAxis(shape);
    const channel = draw.int(0, shape[axis]! - 1);
    for (const [at, index] of places(computed)) {
      if (index[axis] === channel) values[at] = values[at]! * 1.02;
    }
  },
  "a tile zeroed": (draw, computed, values) => {
    const { shape } = computed.reference;
    const begin = shape.map((size) => draw.int(0, size - 1));
    const size = shape.map((_, axis) => axis < 2 ? draw.int(1, 32) : draw.int(1, 6));
    for (const [at, index] of places(computed)) {
      if (
        index.every((value, axis) => value >= begin[axis]! && value < begin[axis]! + size[axis]!)
      ) {
        values[at] = 0;
      }
    }
  },
  "two channels swapped": (draw, computed, values) => {
    const { shape } = computed.reference;
    const axis = channelAxis(shape);
    const [one, other] = [draw.int(0, shape[axis]! - 1), draw.int(0, shape[axis]! - 1)];
    const before = values.slice();
    for (const [at, index] of places(computed)) {
      const channel = index[axis] === one ? other : index[axis] === other ? one : undefined;
      if (channel === undefined) continue;
      const from = index.with(axis, channel);
      values[at] = before[offsetOf(from, computed.strides)]!;
    }
  },
};

/** The axis of the product's rows: K of filters, else the second; of products m. */
function channelAxis(shape: readonly number[]): number {
  return shape.length > 1 ? 1 : 0;
}

function offsetOf(index: readonly number[], strides: readonly number[]): number {
  return index.reduce((sum, value, axis) => sum + value * strides[axis]!, 0);
}

function placeOf(index: number, shape: readonly number[], strides: readonly number[]): number {
  return offsetOf(unravelIndex(index, shape), strides);
}

function* places({ reference, strides }: Computed): Generator<[at: number, index: number[]]> {
  for (let i = 0; i < reference.values.length; i++) {
    const index = unravelIndex(i, reference.shape);
    yield [offsetOf(index, strides), index];
  }
}

/** Times the typical error that a single output must not be wrong by. */
const SINGLE_FAULT = 20;
/** Roundings that an activation of exponentials may add. */
const ACTIVATION_ROUNDINGS = 64;

/** What each output may be off by before the gate must see it, in canonical order. */
function faultRoom(
  { reference, result, roundoff, activation }: Computed,
  typical: number,
): Float64Array {
  const { shape, values, magnitudes } = reference;
  const area = shape.slice(2).reduce((product, size) => product * size, 1);
  const half = result instanceof Float16Array;
  // A Winograd tile has one scale, which is no larger than the largest of its image and channel.
  const largest = new Float64Array(values.length / area);
  magnitudes.forEach((magnitude, i) => {
    const slice = Math.floor(i / area);
    if (Number.isFinite(magnitude)) largest[slice] = Math.max(largest[slice]!, magnitude);
  });
  return values.map((value, i) => {
    const stored = half ? Math.max(2 ** -25, Math.abs(value) * 2 ** -11) : 0;
    const least = roundoff === 0 || result instanceof Float64Array ? 0 : 2 ** -126;
    const scale = Math.max(least, roundoff * largest[Math.floor(i / area)]!) + stored;
    return SINGLE_FAULT * typical * scale + activationRoom(activation, scale, half);
  });
}

function activationRoom(activation: Activation, scale: number, half: boolean): number {
  switch (activation) {
    case "none":
    case "relu":
    case "leaky-relu":
      return 0;
    // Whatever the sum, they are at most 1.
    case "sigmoid":
    case "tanh":
      return ACTIVATION_ROUNDINGS * 2 ** -24 + (half ? 2 ** -10 : 0);
    case "gelu":
    case "silu":
      return ACTIVATION_ROUNDINGS * scale;
  }
}

/** Spoils the result; whether the gate had to see it. Throws where it did not. */
function holdFault(draw: Draw, computed: Computed, healthy: Checked): string {
  const { reference: { shape, values }, result, strides, check } = computed;
  const typical = healthy.accuracy.bound_typical ?? 0;
  const room = faultRoom(computed, typical);
  const name = draw.pick(Object.keys(SPOILERS));
  const spoilt = result.slice() as Values;
  SPOILERS[name]!(draw, computed, spoilt, room);
  let most = 0, off = "";
  for (let i = 0; i < values.length; i++) {
    const at = placeOf(i, shape, strides);
    const change = Math.abs(spoilt[at]! - result[at]!);
    // Where nothing rounds, results are exact, and any change is one too many.
    const times = room[i] === 0 ? (change > 0 ? Infinity : 0) : change / room[i]!;
    if (!Number.isFinite(change) || !(times > most)) continue;
    most = times;
    off = `[${unravelIndex(i, shape)}] of ${values[i]} by ${change}`;
  }
  if (most < 1) return "faults too small";
  const checked = check(spoilt);
  if (checked.verdict === "fail") return `faults found`;
  const { max_bound_ratio: ratio, bound_limit: limit } = checked.accuracy;
  throw new Finding(
    `the gate passes ${name}: ${off} is off by ${most} times what it must see, typical ${typical}, ` +
      `bound ratio ${ratio} of ${limit} allowed (healthy ${healthy.accuracy.max_bound_ratio}); ` +
      `kernel ${computed.kernel}`,
  );
}

/** Random convolutions and products on the device, held to the gate, to plain loops, and spoilt. */
export const PROBLEMS: Attack = {
  kind: "problems",
  limit: 120,
  weight: 2,
  async open(seed) {
    let device: GpuDevice | undefined;
    const describe = (number: number) => {
      const one = caseOf(seed, number);
      const problem = one.kind === "conv" ? printDescriptor(one.problem) : one.problem;
      const op = one.kind === "conv"
        ? { op: one.problem.op, paddingEnd: one.problem.paddingEnd }
        : {};
      return JSON.stringify({ ...one, ...op, problem });
    };
    return await Promise.resolve({
      describe,
      run: async (number): Promise<Outcome> => {
        device ??= await openDevice({ optionalFeatures: ["shader-f16", "shader-f64"] });
        const one = caseOf(seed, number);
        const computed = one.kind === "conv"
          ? await computeConv(device, one)
          : await computeGemm(device, one);
        if (typeof computed === "string") return `${one.kind} ${computed}`;
        holdReference(computed);
        const healthy = computed.check(computed.result);
        if (healthy.verdict !== "pass") {
          throw new Finding(`a right result fails: ${healthy.message}; kernel ${computed.kernel}`);
        }
        const fault = holdFault(new Draw(seed, "spoil", number), computed, healthy);
        return `${one.kind} right, ${fault}`;
      },
      [Symbol.asyncDispose]: () => Promise.resolve(device?.close()),
    });
  },
};
