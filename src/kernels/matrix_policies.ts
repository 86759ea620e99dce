import { range } from "./lists.ts";
import { type MatrixUnit, unitDepth } from "./matrix_units.ts";
import type { TilePolicy } from "./policy.ts";

/** How a product is cut for matrix units, in matrices of whatever shape the device's unit has. */
interface MatrixPolicy {
  readonly name: string;
  readonly deeper?: string;
  /** Subgroups of a workgroup along rows and columns. */
  readonly subgroups: readonly [number, number];
  /** Matrices of sums of a subgroup along rows and columns. */
  readonly matrices: readonly [number, number];
  /** Matrices along the depth of a step. */
  readonly depth: number;
  /** Matrices of sums that a subgroup passes through workgroup memory at once. */
  readonly stage: readonly [number, number];
}

function policy(
  name: string,
  subgroups: readonly [number, number],
  matrices: readonly [number, number],
  depth: number,
  stage: readonly [number, number],
): MatrixPolicy {
  return { name, subgroups, matrices, depth, stage };
}

/**
 * Policies on matrix units. Tiles of units of 16 x 16 x 16 halves: 64x64x32, 128x64x32, 64x256x32, 64x192x32, 32x256x32, 16x256x32,
 * 32x64x32, 16x128x32, 128x16x32, 128x128x32, 128x96x32, 96x128x32 of four subgroups, as much 16 deep, of eight; 256x96x32, 96x256x32, 128x192x32, 192x128x32, 128x256x32, and 16 deep 256x128 and 128x256. All fit
 * 48 KiB of workgroup memory.
 */
const MATRIX_POLICIES: readonly MatrixPolicy[] = [
  policy("matrix-small", [2, 2], [2, 2], 2, [2, 2]),
  // 64x64x32 of sixteen subgroups of 16 threads with 16 results each, for units of 8 x 16: others leave these too few registers.
  policy("matrix-sixteen", [4, 4], [1, 1], 2, [1, 1]),
  policy("matrix-tall", [2, 2], [4, 2], 2, [2, 2]),
  // For results of 64 rows, of which higher tiles would be half empty.
  policy("matrix-wide", [1, 4], [4, 4], 2, [1, 4]),
  // Where `wide` takes more than 24 KiB, as of columns along their depth, and so runs alone.
  policy("matrix-192-wide", [1, 4], [4, 3], 2, [4, 1]),
  policy("matrix-square", [2, 2], [4, 4], 2, [1, 4]),
  // For results of 32 and of 16 rows.
  policy("matrix-short", [1, 4], [2, 4], 2, [1, 4]),
  policy("matrix-flat", [1, 4], [1, 4], 2, [1, 4]),
  // Half and a quarter of these, and of few columns: more run side by side where tiles wait for memory, and cut small results finer.
  policy("matrix-64-short", [2, 2], [1, 2], 2, [1, 2]),
  policy("matrix-128-flat", [1, 4], [1, 2], 2, [1, 2]),
  policy("matrix-narrow", [4, 1], [2, 1], 2, [2, 1]),
  // Where the results make fewer waves of them: as many run side by side as of `square`.
  policy("matrix-square-96-columns", [2, 2], [4, 3], 2, [4, 1]),
  policy("matrix-square-96-rows", [2, 2], [3, 4], 2, [1, 4]),
  // One matrix deep, as other `ahead` are: the next step's fragments are loaded while these are multiplied.
  policy("matrix-ahead", [2, 2], [4, 4], 1, [1, 4]),
  policy("matrix-eight", [2, 4], [4, 2], 2, [1, 2]),
  // Between these and the largest, for products whose tiles would make half a wave more.
  policy("matrix-96-columns", [4, 2], [4, 3], 2, [2, 1]),
  policy("matrix-96-rows", [2, 4], [3, 4], 2, [1, 2]),
  policy("matrix-192-columns", [2, 4], [4, 3], 2, [2, 1]),
  policy("matrix-192-rows", [4, 2], [3, 4], 2, [1, 2]),
  policy("matrix-large", [2, 4], [4, 4], 2, [1, 2]),
  policy("matrix-ahead-tall", [4, 2], [4, 4], 1, [1, 2]),
  policy("matrix-ahead-wide", [2, 4], [4, 4], 1, [1, 2]),
];

/** Names of those that `auto` weighs for f16 alone. */
export const HALF_POLICY_NAMES: readonly string[] = [
  "matrix-64-short",
  "matrix-128-flat",
  "matrix-narrow",
];

/** Names of all policies on matrix units. */
export const MATRIX_POLICY_NAMES: readonly string[] = MATRIX_POLICIES.map(({ name }) => name);

/**
 * Those of rows of taps, one matrix of each tap along the depth. Of eight subgroups a multiprocessor runs one workgroup whatever memory
 * it takes, and steps of two matrices have half as many barriers: 1.15 times the speed of `large` on an H100.
 */
function rowPolicies(taps: number): MatrixPolicy[] {
  const rows = MATRIX_POLICIES.filter(({ depth }) => depth > 1)
    .map((policy): MatrixPolicy => ({ ...policy, depth: taps }));
  return [
    ...rows,
    ...deeperPolicies(rows.filter(({ subgroups: [down, across] }) => down * across === 8)),
  ];
}

/** Twice as deep. */
function deeperPolicies(policies: readonly MatrixPolicy[]): MatrixPolicy[] {
  return policies.map((policy) => ({
    ...policy,
    name: `${policy.name}-deep`,
    deeper: policy.name,
    depth: 2 * policy.depth,
  }));
}

/**
 * How a product walks the taps of a convolution: so many that a step multiplies what it loads with along its depth, one matrix of each or
 * two (`-deep`), or that steps multiply along its columns.
 */
export interface TapWalk {
  readonly row?: number | undefined;
  readonly ring?: number | undefined;
  /** Whether it gathers an image of halves, channels innermost, tap by tap. */
  readonly gathered?: boolean | undefined;
}

/** Those that are twice as deep as well where images are gathered tap by tap: 128x192x64, and 128x128x64, where tiles or splits of it make a wave. */
const GATHERED_DEEPER: readonly string[] = ["matrix-192-columns", "matrix-eight"];

/** Names of those. */
export const GATHERED_POLICY_NAMES: readonly string[] = GATHERED_DEEPER.map((name) =>
  `${name}-deep`
);

/** Where images are gathered tap by tap some are twice as deep: half as many barriers, and half as much arithmetic of places. */
function plainPolicies(gathered: boolean): readonly MatrixPolicy[] {
  if (!gathered) return MATRIX_POLICIES;
  return [
    ...MATRIX_POLICIES,
    ...deeperPolicies(MATRIX_POLICIES.filter(({ name }) => GATHERED_DEEPER.includes(name))),
  ];
}

/**
 * Where taps are columns: of few rows 32x192x32 and 16x384x32 of four subgroups, and of five taps 128x160x32 of eight and 64x160x32 of
 * four.
 */
const RING_POLICIES: readonly MatrixPolicy[] = [
  policy("matrix-192-short", [1, 4], [2, 3], 2, [2, 1]),
  policy("matrix-384-flat", [1, 4], [1, 6], 2, [1, 2]),
  policy("matrix-160-columns", [4, 2], [2, 5], 2, [2, 1]),
  policy("matrix-160-wide", [2, 2], [2, 5], 2, [2, 1]),
];

/** Those whose subgroups have all taps' matrices of the same channels beside each other, of two matrices' depth, and deeper ones. */
function ringPolicies(taps: number): MatrixPolicy[] {
  const whole = [...MATRIX_POLICIES, ...RING_POLICIES].filter(({ depth, matrices }) =>
    depth > 1 && matrices[1] % taps === 0
  );
  return [...whole, ...deeperPolicies(whole)];
}

/** Names of policies that only convolutions have, by how they walk taps. */
export const TAP_POLICY_NAMES: readonly string[] = [
  ...new Set([...rowPolicies(1), ...ringPolicies(1)].map(({ name }) => name)),
].filter((name) => !MATRIX_POLICY_NAMES.includes(name));

/**
 * The policies in elements of a unit, those whose sums its subgroups can pass on. Of units of 16 x 8 twice as many matrices lie
 * along the columns, of 8 x 16 along the rows.
 *
 * @param split Of f32 operands in two halves, one matrix of each.
 */
export function matrixPolicies(
  unit: MatrixUnit,
  lanes: number,
  split = false,
  { row, ring, gathered = false }: TapWalk = {},
): TilePolicy[] {
  const [high, wide] = [Math.max(1, unit.n / unit.m), Math.max(1, unit.m / unit.n)];
  const own = row !== undefined
    ? rowPolicies(row)
    : ring !== undefined
    ? ringPolicies(ring)
    : plainPolicies(gathered).filter(({ depth }) => !split || depth % 2 === 0);
  return own.map((policy): MatrixPolicy => ({
    ...policy,
    matrices: [policy.matrices[0] * high, policy.matrices[1] * wide],
    stage: [policy.stage[0] * high, policy.stage[1] * wide],
  }))
    .filter(({ stage }) => dealsTo(lanes, stage[0] * unit.m, stage[1] * unit.n))
    .map((policy) => tilePolicy(policy, unit, lanes, split))
    .filter(({ depth }) => depth % (LOADED * (row ?? 1)) === 0);
}

/** Whether it names a policy on matrix units, or is the sizes of one. */
export function isMatrixPolicyName(text: string): boolean {
  return [...MATRIX_POLICY_NAMES, ...TAP_POLICY_NAMES].includes(text) || isMatrixTile(text);
}

/** Whether a policy's name has the sizes of {@linkcode parseMatrixPolicy}. */
export function isMatrixTile(text: string): boolean {
  return SIZES.test(text);
}

/** `128x256x32_64x64m`: rows x columns x depth of a workgroup, rows x columns of a subgroup. */
const SIZES = /^(\d+)x(\d+)x(\d+)_(\d+)x(\d+)m$/;
/** Values along a tile's depth, of rows along a tap's, that a load may take at once. */
export const LOADED = 4;
/** Sums that the registers of a thread may hold at all. */
const MOST_SUMS = 256;
/** Bytes of sums that a policy of given sizes passes through workgroup memory at once. */
const STAGE_BYTES = 16_384;

/**
 * The policy of given sizes, such as `128x256x32_64x64m`: rows x columns x depth of a workgroup, rows x columns of a subgroup.
 * One with a name where it is that. Undefined for other text, where the unit's matrices do not fill it, where a thread has more
 * than 256 results, or where subgroups cannot pass on its sums in 16 KiB.
 */
export function parseMatrixPolicy(
  text: string,
  unit: MatrixUnit,
  lanes: number,
  split = false,
  taps: TapWalk = {},
): TilePolicy | undefined {
  const sizes = SIZES.exec(text)?.slice(1).map(Number);
  if (sizes === undefined) return undefined;
  const [rows, columns, depth, high, wide] = sizes as [number, number, number, number, number];
  const subgroups = [rows / high, columns / wide] as const;
  const matrices = [high / unit.m, wide / unit.n] as const;
  const counts = [...subgroups, ...matrices, depth / unit.k];
  if (!counts.every((count) => Number.isInteger(count) && count > 0)) return undefined;
  if (split && depth / unit.k % 2 !== 0) return undefined;
  if (high * wide > MOST_SUMS * lanes || depth / unit.k * unitDepth(unit) % LOADED !== 0) {
    return undefined;
  }
  const bytes = 4 * unit.m * unit.n * subgroups[0] * subgroups[1];
  const stage = parts(matrices).find(([down, across]) =>
    bytes * down * across <= STAGE_BYTES && dealsTo(lanes, down * unit.m, across * unit.n)
  );
  if (stage === undefined) return undefined;
  const name = `${rows}x${columns}x${depth}_${high}x${wide}m`;
  const policy = tilePolicy(
    { name, subgroups, matrices, depth: depth / unit.k, stage },
    unit,
    lanes,
    split,
  );
  const same = (other: TilePolicy) =>
    (["rows", "columns", "depth", "threadColumns"] as const).every((key) =>
      other[key] === policy[key]
    ) && other.matrix!.matrices.join() === matrices.join();
  return matrixPolicies(unit, lanes, split, taps).find(same) ?? policy;
}

/** Whether 4 x 4 results each fall to so many threads, those of a row to neighbours. */
function dealsTo(lanes: number, rows: number, columns: number): boolean {
  return lanes % (columns / 4) === 0 && rows / 4 * (columns / 4) % lanes === 0;
}

/**
 * The policy as it passes its sums on to results that lie side by side along that side: of those along rows as many matrices above each
 * other as it passes on at once, so that neighbouring threads store neighbouring results (111 to 177 TFLOP/s on an H200).
 * Where there are several rounds of one row of matrices, the fewest beside each other: a column's results of a round are then those
 * of more threads.
 */
export function stagedAlong(policy: TilePolicy, side: "rows" | "columns"): TilePolicy {
  const { matrix } = policy;
  if (matrix === undefined || side === "columns") return policy;
  const { unit, lanes, matrices, stage: [down, across] } = matrix;
  const most = down * across;
  const high = parts(matrices)
    .filter(([down, across]) =>
      down * across <= most && dealsTo(lanes, down * unit.m, across * unit.n)
    )
    .reduce((best, part) => part[0] > best[0] ? part : best, [0, 0] as readonly [number, number]);
  const staged = (stage: readonly [number, number]): TilePolicy => ({
    ...policy,
    matrix: { ...matrix, stage, ...(stage[1] === 1 ? { byColumns: true } : {}) },
  });
  if (high[0] > 1 || matrices[0] * matrices[1] === most) {
    return staged(high[0] <= down ? matrix.stage : high);
  }
  const narrow = parts(matrices).findLast(([down, across]) =>
    down === 1 && across <= most && dealsTo(lanes, unit.m, across * unit.n)
  );
  return staged(narrow ?? matrix.stage);
}

/** Whole parts of a subgroup's matrices, the widest first, then the highest. */
function parts([rows, columns]: readonly [number, number]): (readonly [number, number])[] {
  const divisors = (count: number) =>
    range(count).map((i) => count - i).filter((one) => count % one === 0);
  return divisors(columns).flatMap((across) =>
    divisors(rows).map((down) => [down, across] as const)
  );
}

/** A policy in elements of a unit. */
function tilePolicy(
  { name, deeper, subgroups, matrices, depth, stage }: MatrixPolicy,
  unit: MatrixUnit,
  lanes: number,
  split: boolean,
): TilePolicy {
  const threads = subgroups[0] * subgroups[1] * lanes;
  const [rows, columns] = [
    subgroups[0] * matrices[0] * unit.m,
    subgroups[1] * matrices[1] * unit.n,
  ];
  return {
    name,
    ...(deeper === undefined ? {} : { deeper }),
    rows,
    columns,
    depth: depth * unitDepth(unit),
    // How many results a thread has: which they are is the unit's own.
    threadRows: 4,
    threadColumns: rows * columns / (4 * threads),
    warp: [1, lanes],
    matrix: { unit, lanes, matrices, stage, ...(split ? { split } : {}) },
  };
}
