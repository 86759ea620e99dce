/**
 * How the main loop cuts a product: the tile of a workgroup, the tile of a thread. Names after CUTLASS.
 * Tiles are rows (M) x columns (N) x depth (K).
 */
export interface TilePolicy {
  readonly name: string;
  readonly rows: number;
  readonly columns: number;
  readonly depth: number;
  /** Results of a thread; multiples of 4. */
  readonly threadRows: number;
  readonly threadColumns: number;
  /** Threads of a warp along rows x columns: a squarer warp reads less workgroup memory. */
  readonly warp: readonly [number, number];
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
 * of workgroup memory and 256 threads.
 */
export const TILE_POLICIES: readonly TilePolicy[] = [
  policy("tiny", [32, 32, 8], [4, 4]),
  // For results of a few rows or columns, of which larger tiles would be mostly empty.
  policy("sliver", [4, 512, 8], [4, 4], [1, 32]),
  policy("flat", [16, 256, 16], [8, 4], [2, 16]),
  policy("narrow", [256, 16, 16], [8, 4], [8, 4]),
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

/** The policy of that name. */
export function findPolicy(name: string): TilePolicy | undefined {
  return TILE_POLICIES.find((policy) => policy.name === name);
}

/** Threads of a workgroup. */
export function policyThreads(policy: TilePolicy): number {
  return (policy.rows / policy.threadRows) * (policy.columns / policy.threadColumns);
}

/** `128x128x16`, as it stands in kernel names. */
export function policyTile(policy: TilePolicy): string {
  return `${policy.rows}x${policy.columns}x${policy.depth}`;
}
