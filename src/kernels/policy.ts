import { type MatrixUnit, unitShape } from "./matrix_units.ts";

/** A tile's sizes as its name has them. */
export interface TileSizes {
  /** Rows (M), columns (N) and depth (K) of a workgroup. */
  readonly rows: number;
  readonly columns: number;
  readonly depth: number;
  /** Results of a thread. */
  readonly threadRows: number;
  readonly threadColumns: number;
}

/**
 * Reads `64x32x8_8x4`; a thread has 8x8 results where that is left out. Undefined for
 * other text, and where a thread's results are no multiples of 4 that divide the workgroup's, or nothing is deep.
 */
export function parseTileSizes(text: string): TileSizes | undefined {
  const match = /^(\d+)x(\d+)x(\d+)(?:_(\d+)x(\d+))?$/.exec(text);
  if (match === null) return undefined;
  const [rows, columns, depth, threadRows, threadColumns] = match.slice(1, 6).map((part) =>
    part === undefined ? 8 : Number(part)
  ) as [number, number, number, number, number];
  const fits = (extent: number, thread: number) =>
    extent > 0 && thread > 0 && thread % 4 === 0 && extent % thread === 0;
  return depth > 0 && fits(rows, threadRows) && fits(columns, threadColumns)
    ? { rows, columns, depth, threadRows, threadColumns }
    : undefined;
}

/** `64x32x8_8x4`, as {@linkcode parseTileSizes} reads it. */
export function tileSizesText(
  { rows, columns, depth, threadRows, threadColumns }: TileSizes,
): string {
  return `${rows}x${columns}x${depth}_${threadRows}x${threadColumns}`;
}

/**
 * How the mainloop cuts a product: the tile of a workgroup, the tile of a thread. Names after CUTLASS.
 * Tiles are rows (M) x columns (N) x depth (K).
 */
export interface TilePolicy {
  /** One of {@linkcode TILE_POLICIES}, or its tile. */
  readonly name: string;
  /** The policy that it is a deeper version of: a device model's figures of that one hold for it, except `tapRows` and `tapRings`. */
  readonly deeper?: string;
  readonly rows: number;
  readonly columns: number;
  readonly depth: number;
  /** Results of a thread; multiples of 4. */
  readonly threadRows: number;
  readonly threadColumns: number;
  /** Threads of a warp along rows x columns: a squarer warp reads less workgroup memory. */
  readonly warp: readonly [number, number];
  /** Where subgroups multiply on matrix units. */
  readonly matrix?: MatrixTile;
}

/** The part of a tile that a subgroup multiplies on matrix units. */
export interface MatrixTile {
  readonly unit: MatrixUnit;
  /** Threads of a subgroup. */
  readonly lanes: number;
  /** Its matrices of sums along rows and columns. */
  readonly matrices: readonly [number, number];
  /** Those that it stages in workgroup memory at once. */
  readonly stage: readonly [number, number];
  /** Whether staged matrices lie by columns, for results along rows. */
  readonly byColumns?: boolean;
  /**
   * Whether operands are f32 in two halves: along the depth a matrix of high ones, then one of low ones
   * (`src/kernels/split_halves.ts`).
   */
  readonly split?: boolean;
}

function policy(
  name: string,
  [rows, columns, depth]: readonly [number, number, number],
  [threadRows, threadColumns]: readonly [number, number],
  warp: readonly [number, number] = [4, 8],
): TilePolicy {
  return { name, rows, columns, depth, threadRows, threadColumns, warp };
}

/**
 * Policies, smallest tile first. All but `sliver`, `flat` and `narrow` (17 KiB) fit every WebGPU device, that is 16 KiB
 * of workgroup memory and 256 threads. A device model's `shares.policies` say which of them `auto` weighs.
 */
export const TILE_POLICIES: readonly TilePolicy[] = [
  policy("tiny", [32, 32, 8], [4, 4]),
  // For results of a few rows or columns, of which larger tiles would be mostly empty.
  policy("sliver", [4, 512, 8], [4, 4], [1, 32]),
  policy("flat", [16, 256, 16], [8, 4], [2, 16]),
  policy("narrow", [256, 16, 16], [8, 4], [8, 4]),
  // For results of 32 rows or columns, or an odd number of times as many.
  policy("short", [32, 128, 16], [8, 4]),
  policy("slim", [128, 32, 16], [8, 4]),
  // For CPUs: 8x8 results a thread, as larger tiles have, with less to compile.
  policy("block", [64, 64, 8], [8, 8]),
  policy("small", [64, 64, 16], [8, 4]),
  policy("wide", [64, 128, 16], [8, 8]),
  policy("tall", [128, 64, 16], [8, 8]),
  // For 96 rows and their multiples, of which tiles of 128 leave a quarter empty.
  policy("broad", [96, 128, 16], [8, 8]),
  policy("large", [128, 128, 8], [8, 8]),
  policy("huge", [128, 128, 16], [8, 8]),
];

/** Policies of few rows or columns: bound by memory, with many loads a thread. */
export const THIN_POLICIES: readonly string[] = ["sliver", "flat", "narrow"];

/** `--policy gemv`: a matrix times few vectors, which has no tiles (`src/kernels/gemv.ts`). */
export const GEMV = "gemv";

/** The policy of that name, or the tile that it is ({@linkcode parseTilePolicy}). */
export function findPolicy(name: string): TilePolicy | undefined {
  return TILE_POLICIES.find((policy) => policy.name === name) ?? parseTilePolicy(name);
}

/** Warps that a grid of threads may be cut into, squarest first. */
const WARPS = [[4, 8], [8, 4], [2, 16], [16, 2], [1, 32], [32, 1]] as const;

/** Most accumulators of a thread: it has 255 registers. */
const MOST_SUMS = 256;

/**
 * Reads `128x32x8_8x4`, rows x columns x depth of a workgroup and rows x columns of a thread, 8x8 where that is left out: a named
 * policy where it is one. Undefined where kernels cannot use it: a thread has multiples of 4 rows and columns, which divide the
 * workgroup's, at most 256 in all, the depth is a multiple of 4, and threads fill whole warps.
 */
export function parseTilePolicy(text: string): TilePolicy | undefined {
  const tile = parseTileSizes(text);
  if (tile === undefined) return undefined;
  const { rows, columns, depth, threadRows, threadColumns } = tile;
  const whole = depth % 4 === 0 && threadRows * threadColumns <= MOST_SUMS;
  const warp = WARPS.find(([warpRows, warpColumns]) =>
    (rows / threadRows) % warpRows === 0 && (columns / threadColumns) % warpColumns === 0
  );
  if (!whole || warp === undefined) return undefined;
  const named = TILE_POLICIES.find((policy) =>
    Object.entries(tile).every(([key, value]) => policy[key as keyof typeof tile] === value)
  );
  const name = tileSizesText(tile);
  return named ?? { name, ...tile, warp };
}

/** Threads of a workgroup. */
export function policyThreads(policy: TilePolicy): number {
  return (policy.rows / policy.threadRows) * (policy.columns / policy.threadColumns);
}

/** `128x128x16`, as it stands in kernel names; with a thread's tile where the policy has no name of its own. */
export function policyTile(policy: TilePolicy): string {
  const { name, rows, columns, depth, threadRows, threadColumns, matrix } = policy;
  const tile = `${rows}x${columns}x${depth}`;
  if (matrix !== undefined) {
    const { unit, matrices, stage } = matrix;
    return `${tile}_mma${unitShape(unit)}_${matrices.join("x")}_stage${stage.join("x")}`;
  }
  const free = TILE_POLICIES.every((one) => one.name !== name);
  return free ? `${tile}_${threadRows}x${threadColumns}` : tile;
}
