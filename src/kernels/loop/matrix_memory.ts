import { scalarBytes, typeName } from "../../elements/scalar.ts";
import type { FullMainLoopVariant } from "../main_loop_variant.ts";
import { unitDepth } from "../matrix_units.ts";
import type { MatrixTile, TilePolicy } from "../policy.ts";
import type { StepSchedule } from "./step_loop.ts";
import {
  type MatrixLoader,
  type MatrixOperandTile,
  matrixTile,
  type MatrixTileShape,
  matrixTileShape,
} from "./matrix_tile.ts";

/** A policy whose products run on matrix units. */
export type MatrixTilePolicy = Pick<TilePolicy, "rows" | "columns" | "depth"> & {
  readonly matrix: MatrixTile;
};

/** What of workgroup memory a product on matrix units takes. */
export interface MatrixMemory {
  /** Its variables. */
  readonly declarations: readonly string[];
  readonly bytes: number;
  readonly buffers: StepSchedule["buffers"];
  readonly tiles: readonly [MatrixOperandTile, MatrixOperandTile];
  /** The array through which sums pass, vectors of four, and how they are read by their place. */
  readonly stage: StageShape & { readonly array: string; read(place: string): string };
}

/** Bytes of a vector of four sums, in which they pass. */
const STAGED_BYTES = 16;

/** How sums lie in the memory through which they pass: in lines of vectors of four, rows or columns, of each subgroup apart. */
export interface StageShape {
  /** Columns, of which threads read four rows at once; else rows. */
  readonly byColumns: boolean;
  /** Vectors from one line to the next. */
  readonly stride: number;
  /** Vectors of a subgroup. */
  readonly size: number;
}

/**
 * Between lines lie so many vectors that neither what units store of four lines at once nor what threads read meets a bank of
 * workgroup memory twice. Between rows no more than one where the tiles do not share their memory and room is short, and where rows
 * are so short that threads read two of them at once, which then meet none twice; what units store there does.
 */
function stageShape(
  { unit, stage, byColumns = false }: MatrixTile,
  shared: boolean,
): StageShape {
  const sides = [stage[0] * unit.m, stage[1] * unit.n] as const;
  const [lines, length] = byColumns ? [sides[1], sides[0]] : sides;
  const stride = length / 4 + (byColumns || length < 32 || !shared ? 1 : 2);
  return { byColumns, stride, size: lines * stride };
}

/** Subgroups of a workgroup along the rows and columns of its tile. */
export function subgroupGrid({ rows, columns, matrix }: MatrixTilePolicy): [number, number] {
  const { unit, matrices } = matrix;
  return [rows / (matrices[0] * unit.m), columns / (matrices[1] * unit.n)];
}

/** Whether a policy's steps are of one matrix's depth, whose matrices can be collected while those of the step before are multiplied. */
export function collectsAhead({ depth, matrix }: Pick<TilePolicy, "depth" | "matrix">): boolean {
  return matrix !== undefined && depth === unitDepth(matrix.unit);
}

/**
 * Lays out workgroup memory. Sums pass through what the tiles take, where those are vectors of as many bytes and nothing of
 * them is needed meanwhile: two workgroups that take 24 KiB each run side by side on a multiprocessor of an H200, larger
 * ones do not.
 *
 * Steps of one matrix's depth, whose matrices are many to their barriers, collect the next ones ahead, in twice the tiles; not
 * where sums move on every few steps but by rounds, since registers then hold neither (28.9 ms for 0.9 at 4096³ on an H200).
 *
 * @param moved Whether sums move on every few steps, in a loop that does not go by rounds.
 */
export function matrixMemory(
  policy: MatrixTilePolicy,
  [a, b]: readonly [MatrixLoader, MatrixLoader],
  { doubleBuffer, prefetch }: Pick<FullMainLoopVariant, "doubleBuffer" | "prefetch">,
  moved: boolean,
): MatrixMemory {
  const { matrix, rows, columns, depth } = policy;
  const { unit } = matrix;
  const shapes = [
    matrixTileShape("a", unit, rows, depth, a, matrix.matrices[0]),
    matrixTileShape("b", unit, columns, depth, b, matrix.matrices[1]),
  ] as const;
  const [down, across] = subgroupGrid(policy);
  const ringed = shapes.some(({ ring }) => ring !== undefined);
  const shared = !doubleBuffer && shapes.every(({ vectorBytes }) => vectorBytes === STAGED_BYTES);
  const stage = stageShape(matrix, shared);
  const staged = down * across * stage.size;
  const buffers = doubleBuffer
    ? "alternate"
    : shared && prefetch && !moved && !ringed && collectsAhead(policy)
    ? "collected"
    : "one";
  const copies = buffers === "one" ? 1 : 2;
  const tileBytes = ({ size, vectorBytes }: MatrixTileShape) => copies * size * vectorBytes;
  const which = buffers === "alternate" ? "half" : "fill";
  const first = (size: number) => copies === 1 ? "" : `${which} * ${size}u + `;
  const result = typeName(unit.result, 4);
  if (!shared) {
    return {
      declarations: [
        ...shapes.map((shape) =>
          `var<workgroup> ${shape.operand}_tile: array<${shape.type}, ${copies * shape.size}>;`
        ),
        `var<workgroup> stage: array<${result}, ${staged}>;`,
      ],
      bytes: tileBytes(shapes[0]) + tileBytes(shapes[1]) +
        staged * 4 * scalarBytes(unit.result),
      buffers,
      tiles: [
        matrixTile(shapes[0], "a_tile", first(shapes[0].size)),
        matrixTile(shapes[1], "b_tile", first(shapes[1].size)),
      ],
      stage: { ...stage, array: "stage", read: (place) => `stage[${place}]` },
    };
  }
  const both = shapes[0].size + shapes[1].size;
  const vectors = Math.max(copies * both, staged);
  return {
    declarations: [`var<workgroup> tiles: array<${shapes[0].type}, ${vectors}>;`],
    bytes: STAGED_BYTES * vectors,
    buffers,
    tiles: [
      matrixTile(shapes[0], "tiles", first(both)),
      matrixTile(shapes[1], "tiles", `${first(both)}${shapes[0].size}u + `),
    ],
    stage: { ...stage, array: "tiles", read: (place) => `bitcast<${result}>(tiles[${place}])` },
  };
}
