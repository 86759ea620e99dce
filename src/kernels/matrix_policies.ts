import { type MatrixUnit, unitDepth } from "./matrix_units.ts";
import type { TilePolicy } from "./policy.ts";

/** How a product is cut for matrix units, in matrices of whatever shape the device's unit has. */
interface MatrixPolicy {
  readonly name: string;
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
 * Policies on matrix units, smallest tile first. Tiles of units of 16 x 16 x 16 halves: 64x64x32, 128x64x32, 128x128x32 of
 * four subgroups and of eight, 128x256x32. All fit 48 KiB of workgroup memory.
 */
const MATRIX_POLICIES: readonly MatrixPolicy[] = [
  policy("matrix-small", [2, 2], [2, 2], 2, [2, 2]),
  policy("matrix-tall", [2, 2], [4, 2], 2, [2, 2]),
  policy("matrix-square", [2, 2], [4, 4], 2, [1, 4]),
  policy("matrix-eight", [2, 4], [4, 2], 2, [1, 2]),
  policy("matrix-large", [2, 4], [4, 4], 2, [1, 2]),
];

/** Names of all policies on matrix units. */
export const MATRIX_POLICY_NAMES: readonly string[] = MATRIX_POLICIES.map(({ name }) => name);

/** The policies in elements of a unit. Of units of 16 x 8 twice as many matrices lie along the columns. */
export function matrixPolicies(unit: MatrixUnit, lanes: number): TilePolicy[] {
  const wide = unit.m / unit.n;
  return MATRIX_POLICIES.map(({ name, subgroups, matrices, depth, stage }) => {
    const across = matrices[1] * wide;
    const threads = subgroups[0] * subgroups[1] * lanes;
    const [rows, columns] = [
      subgroups[0] * matrices[0] * unit.m,
      subgroups[1] * across * unit.n,
    ];
    return {
      name,
      rows,
      columns,
      depth: depth * unitDepth(unit),
      // How many results a thread has: which they are is the unit's own.
      threadRows: 4,
      threadColumns: rows * columns / (4 * threads),
      warp: [1, lanes],
      matrix: {
        unit,
        lanes,
        matrices: [matrices[0], across],
        stage: [stage[0], stage[1] * wide],
      },
    };
  });
}
