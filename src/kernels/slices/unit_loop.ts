import { BARRIER, type Statement } from "../ir/tree.ts";
import { lines, range } from "../lists.ts";
import {
  END_BYTES,
  mainloopText,
  type OperandLoader,
  type StepProducts,
  type TripCount,
} from "../loop/mainloop.ts";
import {
  matrixFeatures,
  matrixSubgroups,
  type MatrixUnit,
  type MatrixUnits,
  unitShape,
} from "../matrix_units.ts";
import type { ModuleBuilder } from "../module.ts";
import { type SizedKernel, sizedKernel } from "../sized_kernel.ts";
import { exchangeRounds, resultsText, type SliceStore } from "./exchange.ts";
import {
  sliceIterations,
  type SliceLoopShape,
  sliceWorkgroups,
  sliceWorkgroupText,
} from "./loop.ts";
import type { PatchTransform } from "./patch.ts";

/**
 * How a sliced product is cut for matrix units: every workgroup holds the same tile of all slices, each of which a subgroup
 * multiplies. Rows (M) x columns (N) x depth (K) of one slice.
 */
export interface UnitSlicePolicy {
  readonly rows: number;
  readonly columns: number;
  readonly depth: number;
  readonly unit: MatrixUnit;
  /** Threads of a subgroup. */
  readonly lanes: number;
  readonly slices: number;
  /** Matrices of sums of a subgroup along rows and columns. */
  readonly matrices: readonly [number, number];
  /** Steps that the loop's text holds; as many as a compiler writes out where absent. */
  readonly written: 1 | 2 | undefined;
}

/** Slices of a workgroup up to which the sums and what is transformed meanwhile fit registers. */
const MOST_SLICES = 8;
/** Matrices of sums of a subgroup along rows: with as many columns they take half of what registers there are. */
const MATRICES = 4;
/** Values of a vector of the tile, 16 bytes, and of sums, as many. */
const VALUES = 8;
const SUMS = 4;
const VECTOR_BYTES = 16;

/** Kernels that share so many slices. */
export function unitSets(slices: number): number {
  return Math.ceil(slices / MOST_SLICES);
}

/**
 * How many steps a loop's text holds for patches of up to α columns. Those of α = 16 take 24 KB each and of α = 8 less: of the eight that
 * a compiler writes out the instruction cache holds one and two.
 */
function stepsWritten(alpha: number): UnitSlicePolicy["written"] {
  return alpha <= 4 ? undefined : alpha <= 8 ? 2 : 1;
}

/** The policies for each set of α slices, one of each unit that multiplies halves, the largest first. */
export function unitSlicePolicies(
  alpha: number,
  { units, lanes }: MatrixUnits,
): UnitSlicePolicy[] {
  const slices = alpha / unitSets(alpha);
  const written = stepsWritten(alpha);
  const size = ({ m, n, k }: MatrixUnit) => m * n * k;
  return units
    .filter(({ component, result }) => component === "f16" && result === "f32")
    .sort((one, other) => size(other) - size(one))
    .map((unit): UnitSlicePolicy => {
      const matrices = [MATRICES, MATRICES * unit.m / unit.n] as const;
      const [rows, columns] = [matrices[0] * unit.m, matrices[1] * unit.n];
      return { rows, columns, depth: unit.k, unit, lanes, slices, matrices, written };
    })
    .filter(({ rows, columns }) => rows % VALUES === 0 && columns % VALUES === 0);
}

/** `64x64x16_mma16x16x16_4x4`, as it stands in kernel names. */
export function unitSliceName({ rows, columns, depth, unit, matrices }: UnitSlicePolicy): string {
  return `${rows}x${columns}x${depth}_mma${unitShape(unit)}_${matrices.join("x")}`;
}

/** Threads of a workgroup. */
export function unitSliceThreads({ slices, lanes }: UnitSlicePolicy): number {
  return slices * lanes;
}

/**
 * The tile: of each slice rows of A's places, then those of B's, a row for each value along the depth. A vector lies between
 * rows, against bank conflicts (46 % of the throughput in the paper, section 5.3).
 */
export function unitSliceTile({ rows, columns, depth, slices }: UnitSlicePolicy) {
  const strides = { a: rows / VALUES + 1, b: columns / VALUES + 1 };
  const firsts = { a: 0, b: depth * strides.a };
  const slice = depth * (strides.a + strides.b);
  return {
    /** Vectors from one row to the next. */
    strides,
    /** Vectors before the first row of an operand, of a slice. */
    firsts,
    /** Vectors of a slice. */
    slice,
    vectors: slices * slice,
    /** WGSL of the vector of an operand's place, all but the slice in WGSL. */
    at: (side: "a" | "b", of: number, depth: string, vector: string) =>
      `tile[${of * slice + firsts[side]}u + ${depth} * ${strides[side]}u + ${vector}]`,
  };
}

/** How sums pass on: a row of every subgroup's matrices at once, those of all slices side by side. */
export function unitSliceSums({ unit, slices, columns }: UnitSlicePolicy) {
  const width = columns / SUMS;
  const stride = width + 2;
  return {
    /** Vectors of a row, and from one row to the next and from one slice to the next. */
    width,
    stride,
    slice: unit.m * stride,
    vectors: slices * unit.m * stride,
  };
}

/** Vectors of workgroup memory: sums pass through what the tile takes. */
function unitSliceVectors(policy: UnitSlicePolicy): number {
  return Math.max(unitSliceTile(policy).vectors, unitSliceSums(policy).vectors);
}

/** Bytes of workgroup memory: of these, and of the loop's end, where its trip count is opaque. */
export function unitSliceBytes(policy: UnitSlicePolicy): number {
  return VECTOR_BYTES * unitSliceVectors(policy) + (policy.written === 1 ? END_BYTES : 0);
}

/** What of a sliced product is shared by threads that multiply themselves and by matrix units. */
export type UnitSliceShape = Omit<
  SliceLoopShape,
  "across" | "scalar" | "rotatedLoop" | "pipelineCut"
>;

/** How a loop is written whose text holds so many steps. Those beyond the end add nothing: all that their patches hold lies outside. */
function tripCount(written: UnitSlicePolicy["written"]): TripCount {
  if (written === undefined) return { form: "range" };
  return written === 1 ? { form: "opaque" } : { form: "unrolled", factor: written };
}

/** Calls `text` for each of a subgroup's matrices of sums. */
function eachSum<T>(
  { matrices: [rows, columns] }: UnitSlicePolicy,
  text: (name: string, row: number, column: number) => T,
): T[] {
  return range(rows * columns).map((i) => {
    const [row, column] = [Math.floor(i / columns), i % columns];
    return text(`sum${row}_${column}`, row, column);
  });
}

/** The text of a subgroup's products of a step. */
function unitSliceProducts(policy: UnitSlicePolicy, interval: string | undefined): StepProducts {
  const { unit, matrices: [rows, columns] } = policy;
  const tile = unitSliceTile(policy);
  const left = `subgroup_matrix_left<${unit.component}, ${unit.k}, ${unit.m}>`;
  const right = `subgroup_matrix_right<${unit.component}, ${unit.n}, ${unit.k}>`;
  const result = `subgroup_matrix_result<${unit.result}, ${unit.n}, ${unit.m}>`;
  // A matrix begins with an element of the tile: eight places.
  const load = (side: "a" | "b", index: number) =>
    `subgroupMatrixLoad<${
      side === "a" ? `${left}, col_major` : `${right}, row_major`
    }>(&tile, ${side}_first + ${index * (side === "a" ? unit.m : unit.n) / 8}u, ${
      tile.strides[side]
    }u)`;
  const multiply = [
    "    {",
    ...range(rows).map((i) => `      let a${i} = ${load("a", i)};`),
    ...range(columns).map((j) => [
      `      let b${j} = ${load("b", j)};`,
      ...range(rows).map((i) => {
        const sum = `sum${i}_${j}`;
        return `      ${sum} = subgroupMatrixMultiplyAccumulate(a${i}, b${j}, ${sum});`;
      }),
    ]).flat(),
    "    }",
  ].join("\n");
  return {
    declarations: [`var<workgroup> tile: array<vec4<u32>, ${unitSliceVectors(policy)}>;`],
    subgroups: matrixSubgroups(unit, policy.lanes),
    sums: eachSum(policy, (name) => `  var ${name} = ${result}();`).join("\n"),
    rows: [multiply],
    lastRows: undefined,
    fold: "",
    finish: [],
    flush: interval === undefined ? undefined : {
      interval,
      clear: eachSum(policy, (name) => `    ${name} = ${result}();`).join("\n"),
      stored: true,
    },
  };
}

/** Sums of all slices through workgroup memory, a row of matrices after the other, to threads that transform and store results. */
function unitSliceOutput(
  policy: UnitSlicePolicy,
  output: PatchTransform,
  store: SliceStore,
): Statement[] {
  const { unit, slices, matrices } = policy;
  const sums = unitSliceSums(policy);
  const rounds = range(matrices[0]).map((round) => ({
    stores: lines(eachSum(policy, (name, row, column) => {
      const to = `sums_first + ${column * unit.n / 4}u`;
      return row === round &&
        `    subgroupMatrixStore<row_major>(&tile, ${to}, ${name}, ${sums.stride}u);`;
    })),
    place: [
      `      let line = position / ${sums.width}u;`,
      `      let vector = position % ${sums.width}u;`,
      `      let at = line * ${sums.stride}u + vector;`,
      `      let row = first_row + ${round * unit.m}u + line;`,
      "      let column = first_column + vector * 4u;",
    ].join("\n"),
  }));
  const sum = (slice: number) => `bitcast<vec4f>(tile[${slice * sums.slice}u + at])`;
  const results = resultsText(slices, output, store, sum);
  // Sums lie where the last step's tile does.
  return [
    BARRIER,
    ...exchangeRounds(rounds, unit.m * sums.width, unitSliceThreads(policy), results),
  ];
}

/**
 * The mainloop of fused Winograd algorithms on matrix units: a slice's products by a subgroup, or by several; operands
 * transformed on their way into workgroup memory, results on their way out of it.
 *
 * @param loader Of both operands.
 */
export function unitSliceKernel(
  traits: string,
  suffix: string,
  module: ModuleBuilder,
  shape: UnitSliceShape,
  policy: UnitSlicePolicy,
  loader: OperandLoader,
  output: PatchTransform,
  store: SliceStore,
): SizedKernel {
  const threads = unitSliceThreads(policy);
  const { partial = 0 } = shape;
  const { rows, columns, matrices, unit, written } = policy;
  const tile = unitSliceTile(policy);
  const name = `${traits}_${unitSliceName(policy)}${partial === 0 ? "" : "_partial"}_${suffix}`;
  const interval = partial === 0 ? undefined : module.parameter("partial_steps", partial);
  const none: OperandLoader = { places: "", registers: "", fetch: "", store: "" };
  const wgsl = mainloopText({
    name,
    summary: `${policy.slices} slices of ${rows} x ${columns} results a workgroup, ${
      matrices.join(" x ")
    } matrices of ${unit.m} x ${unit.n} a subgroup, ${policy.depth} deep steps.`,
    declarations: [store.declarations],
    threads,
    ...sliceWorkgroupText(module, shape, policy),
    places: lines(
      // No subgroup beyond those that a device's own count may add loads from elsewhere.
      `  let unit_slice = min(subgroup, ${policy.slices - 1}u);`,
      `  let a_first = unit_slice * ${tile.slice}u;`,
      `  let b_first = unit_slice * ${tile.slice}u + ${tile.firsts.b}u;`,
      `  let sums_first = unit_slice * ${unitSliceSums(policy).slice}u;`,
    ),
    schedule: {
      buffers: 1,
      prefetch: true,
      tripCount: tripCount(written),
      steps: shape.steps,
    },
    loaders: [loader, none],
    products: unitSliceProducts(policy, interval),
    output: unitSliceOutput(policy, output, store),
  }, module);
  return sizedKernel(module, name, wgsl, {
    workgroups: sliceWorkgroups(shape, policy),
    threads,
    bytes: unitSliceBytes(policy),
    iterations: sliceIterations(shape, written),
    features: ["shader-f16", ...matrixFeatures(unit)],
  });
}
