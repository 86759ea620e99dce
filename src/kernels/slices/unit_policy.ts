import { END_BYTES } from "../loop/step_loop.ts";
import { type MatrixUnit, type MatrixUnits, unitShape } from "../matrix_units.ts";

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
export function unitSliceVectors(policy: UnitSlicePolicy): number {
  return Math.max(unitSliceTile(policy).vectors, unitSliceSums(policy).vectors);
}

/** Bytes of workgroup memory: of these, and of where the loop ends where each step asks for it. */
export function unitSliceBytes(policy: UnitSlicePolicy): number {
  return VECTOR_BYTES * unitSliceVectors(policy) + (policy.written === 1 ? END_BYTES : 0);
}
