import type { Accumulation } from "../elements/elements.ts";
import { sumScalar } from "../elements/scalar.ts";
import type { TileLoader } from "./loader.ts";
import { F16_CHAIN } from "./loop/accumulate.ts";
import { fragments, innerProduct, type ProductOrder, type SumName } from "./loop/inner_product.ts";
import { matrixMemory, type MatrixTilePolicy } from "./loop/matrix_memory.ts";
import { matrixOutput, matrixPlaces, matrixProducts } from "./loop/matrix_products.ts";
import type { StepProducts, StepSchedule } from "./loop/step_loop.ts";
import { type Rotation, threadProducts } from "./loop/thread_products.ts";
import { fragmentPlaces, type ThreadGrid, threadPlace } from "./loop/threads.ts";
import { type FilledTile, workgroupTile } from "./loop/workgroup_tile.ts";
import type { FullMainLoopVariant } from "./main_loop_variant.ts";
import type { OutputStore } from "./output.ts";
import type { TilePolicy } from "./policy.ts";
import type { UnitSchedule } from "./unit_schedule.ts";

/** Whether subgroups multiply on matrix units. */
export function isMatrixPolicy(policy: TilePolicy): policy is TilePolicy & MatrixTilePolicy {
  return policy.matrix !== undefined;
}

/** What of the kernel depends on what multiplies: threads by themselves, or subgroups. */
export interface LoopBody {
  /** Enters the name behind the tile. */
  readonly trait: string;
  /** Whose results the tile's are. */
  readonly summary: string;
  readonly tiles: readonly [FilledTile, FilledTile];
  readonly buffers: StepSchedule["buffers"];
  readonly places: string;
  readonly products: StepProducts;
  output(store: OutputStore): string;
}

/**
 * Every thread multiplies a tile of its own.
 *
 * @param last Products of the last step where it is a text of its own.
 * @param rotation Where the loop ends, where it is rotated.
 * @param chain Products in f32 that one sum adds up before they move to a second one; all where absent.
 */
export function threadBody(
  policy: TilePolicy,
  a: TileLoader,
  b: TileLoader,
  last: number | undefined,
  variant: FullMainLoopVariant,
  accumulation: Accumulation,
  order: ProductOrder,
  rotation: Rotation | undefined,
  chain?: number,
): LoopBody {
  const inner = innerProduct(accumulation);
  const sumIndex: SumName = (row, fragment) => `${row}_${fragment}`;
  const grid: ThreadGrid = {
    rows: policy.rows / policy.threadRows,
    columns: policy.columns / policy.threadColumns,
    warp: policy.warp,
    paired: true,
  };
  const [rowFragments, columnFragments] = [
    fragments(policy.threadRows),
    fragments(policy.threadColumns),
  ];
  const tiles = [
    workgroupTile("a", policy.rows, policy.depth, a, variant),
    workgroupTile("b", policy.columns, policy.depth, b, variant),
  ] as const;
  return {
    trait: "",
    summary: `${policy.threadRows} x ${policy.threadColumns} a thread`,
    tiles,
    buffers: variant.doubleBuffer ? "alternate" : "one",
    places: `${threadPlace(grid, "t", "t")}\n${
      fragmentPlaces(grid, rowFragments, columnFragments)
    }`,
    products: threadProducts({
      tiles: [tiles],
      depth: policy.depth,
      unroll: variant.unroll,
      order,
      rotation,
      last,
      inner,
      threadTile: policy,
      accumulate: {
        into: "registers",
        every: accumulation === "f16"
          ? Math.max(1, Math.floor(F16_CHAIN / policy.depth))
          : chain === undefined
          ? 0
          : Math.max(1, Math.floor(chain / policy.depth)),
      },
      sumIndex,
    }),
    output: (store) =>
      store.text({
        fragmentRows: rowFragments,
        fragmentColumns: columnFragments,
        fragmentHeight: policy.threadRows === 1 ? 1 : 4,
        sum: sumScalar(inner.sum),
        row: (i) => policy.threadRows === 1 ? `first_row + ay${i}` : `first_row + ay${i} * 4u`,
        column: (j) => `first_column + bx${j} * 4u`,
      }),
  };
}

/** Every subgroup multiplies on matrix units, going over its steps as the text does, of which `whole` says whether all parts have as many. */
export function matrixBody(
  policy: TilePolicy & MatrixTilePolicy,
  a: TileLoader,
  b: TileLoader,
  last: number | undefined,
  { parts, rounds, whole }: Pick<UnitSchedule, "parts" | "rounds"> & { readonly whole: boolean },
  variant: FullMainLoopVariant,
): LoopBody {
  const { unit, matrices } = policy.matrix;
  const memory = matrixMemory(policy, [a, b], variant, parts !== undefined && rounds === undefined);
  return {
    trait: parts === undefined
      ? ""
      : `_${parts.totals === "result" ? "stored" : "flush"}${parts.steps}`,
    summary: `${matrices[0]} x ${matrices[1]} matrices of ${unit.m} x ${unit.n} a subgroup`,
    tiles: memory.tiles,
    buffers: memory.buffers,
    places: matrixPlaces(policy, memory),
    products: matrixProducts({ policy, memory, last, parts, whole }),
    output: (store) => matrixOutput(policy, memory, store, parts),
  };
}
