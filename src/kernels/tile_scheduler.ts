import type { TripCount } from "./loop/mainloop.ts";
import type { UnitFlush } from "./loop/matrix_products.ts";
import type { UnitChain } from "./matrix_units.ts";
import type { ModuleBuilder } from "./module.ts";
import type { TilePolicy } from "./policy.ts";

/** A batched product C = A·B cut by a policy: what the mainloop iterates over. */
export interface ProductShape {
  readonly rows: number;
  readonly columns: number;
  /** Products that a result sums, all splits together; operands are zero from there to the end of a step. */
  readonly depth: number;
  /** Independent products: the groups of a convolution. */
  readonly batches: number;
  /** Workgroups that share the depth of one tile (split-K): of those of `split` where it is there, else of all. */
  readonly splits: number;
  /** Stream-K: the last tiles, whose depth is split; those before them run with their whole depth. */
  readonly split?: TileRange;
  /** Where some rows are less deep than `depth`: of which all tiles are where absent. */
  readonly uneven?: UnevenRows;
  /** A statement that returns where there is nothing to do for workgroup `id`. */
  readonly skip?: string;
}

/** Rows whose depth is their class's: a row tile is of one class. */
export interface UnevenRows {
  /** Mean steps of a tile over the most. */
  readonly share: number;
  /** Declares, by `first_row`, what loaders and store ask for. */
  readonly text: string;
  /** WGSL of the workgroup's steps, of all splits together. */
  readonly steps: string;
  /** Classes, each of as many row tiles. */
  readonly classes: number;
}

/** Tiles one after the other: down the rows, then along the columns, then to the next batch. */
export interface TileRange {
  readonly first: number;
  readonly count: number;
}

/**
 * Declares `row_tile`, `column_tile` and the batch of a tile: down the rows, or down a band of them, then along the columns.
 * Of uneven rows those of a class are one after the other, the deepest class first: what is left for last is short.
 *
 * @param classes Classes of uneven rows; 1 where all are alike.
 * @param raster Rows of tiles of a band; 0 for all.
 */
export function tilePlaceText(
  module: ModuleBuilder,
  [tile, batch]: readonly [tile: string, batch: string],
  tiles: {
    readonly rows: number;
    readonly columns: number;
    readonly classes: number;
    readonly raster: number;
  },
): string[] {
  const rows = module.size("row_tiles", tiles.rows);
  const columns = module.size("column_tiles", tiles.columns);
  const { raster } = tiles;
  if (tiles.classes === 1 && raster > 0) {
    return [
      `  let ${batch} = ${tile} / (${rows} * ${columns});`,
      `  let batch_tile = ${tile} % (${rows} * ${columns});`,
      ...bandText("batch_tile", rows, columns, raster),
      `  let row_tile = band_row;`,
    ];
  }
  if (tiles.classes === 1) {
    return [
      `  let row_tile = ${tile} % ${rows};`,
      `  let column_tile = (${tile} / ${rows}) % ${columns};`,
      `  let ${batch} = ${tile} / (${rows} * ${columns});`,
    ];
  }
  const each = module.size("class_row_tiles", tiles.rows / tiles.classes);
  return [
    `  let ${batch} = ${tile} / (${rows} * ${columns});`,
    `  let class_tile = ${tile} % (${rows} * ${columns});`,
    `  let class_of_tile = class_tile / (${each} * ${columns});`,
    `  let class_left = class_tile % (${each} * ${columns});`,
    ...(raster > 0
      ? [
        ...bandText("class_left", each, columns, raster),
        `  let row_tile = class_of_tile * ${each} + band_row;`,
      ]
      : [
        `  let row_tile = class_of_tile * ${each} + class_left % ${each};`,
        `  let column_tile = class_left / ${each};`,
      ]),
  ];
}

/** Declares `band_row` and `column_tile` of a tile: bands of so many rows one after the other, each down, then along. */
function bandText(tile: string, rows: string, columns: string, raster: number): string[] {
  return [
    `  let band = ${tile} / (${raster}u * ${columns});`,
    `  let band_rows = min(${raster}u, ${rows} - band * ${raster}u);`,
    `  let band_tile = ${tile} % (${raster}u * ${columns});`,
    `  let band_row = band * ${raster}u + band_tile % band_rows;`,
    `  let column_tile = band_tile / band_rows;`,
  ];
}

/** Declares the tile, batch and steps of workgroup `id`, in the order of {@linkcode tilePlaceText}. */
export function workgroupText(
  module: ModuleBuilder,
  shape: ProductShape,
  policy: TilePolicy,
  raster: number,
  unrollFactor?: number,
): string {
  const { split, splits, uneven } = shape;
  const tiles = {
    rows: Math.ceil(shape.rows / policy.rows),
    columns: Math.ceil(shape.columns / policy.columns),
    classes: uneven?.classes ?? 1,
    raster,
  };
  return [
    ...(split === undefined
      ? [
        ...tilePlaceText(module, ["id", "batch"], tiles),
        `  let group = batch / ${module.size("splits", splits)};`,
        `  let split = batch % ${module.size("splits", splits)};`,
      ]
      : [...splitTileText(module, split), ...tilePlaceText(module, ["tile", "group"], tiles)]),
    `  let first_row = row_tile * ${policy.rows}u;`,
    `  let first_column = column_tile * ${policy.columns}u;`,
    ...(uneven === undefined ? [] : [uneven.text, `  let all_steps = ${uneven.steps};`]),
    ...splitStepsText(module, shape, policy, unrollFactor),
    ...(shape.skip === undefined ? [] : [shape.skip]),
  ].join("\n");
}

/** Whether a loop of split depth counts its steps, of which a split has so many or one more. */
function countsSteps({ splits, split }: ProductShape, { matrix }: TilePolicy): boolean {
  return matrix !== undefined && splits > 1 && split === undefined;
}

/** How a workgroup's steps are counted, by what {@linkcode workgroupText} declares; undefined where they are not. */
export function countedSteps(
  { mode }: ModuleBuilder,
  shape: ProductShape,
  policy: TilePolicy,
): TripCount | undefined {
  if (!countsSteps(shape, policy)) return undefined;
  const even = Math.ceil(shape.depth / policy.depth) % shape.splits === 0;
  const alike = mode === "constant" && shape.uneven === undefined && even;
  return { form: "counted", steps: "split_steps", longer: alike ? undefined : "longer" };
}

/** Steps of a round, as a compiler writes them out in turn: even, so that which of two tiles a step fills stands in the text. */
const ROUNDS = [8, 6, 4] as const;
/** How much longer splits of longer rounds may be than those of shorter ones, or than those that count single steps. */
const LONGER_BY = 1.03;

/**
 * Steps of a round, where each workgroup on matrix units has whole rounds of a depth that it may share with others: one loop over rounds
 * then serves splits that differ by one, whole tiles beside split ones, and parts of sums. Undefined where rounds do not come out even.
 *
 * @param needed Whether any other loop takes more than splits of unequal length: where there are whole tiles too, or sums move on.
 * @param most Steps of a round at most.
 */
export function unrollFactorOf(
  steps: number,
  splits: number,
  { matrix }: Pick<TilePolicy, "matrix">,
  needed: boolean,
  most = Infinity,
): number | undefined {
  if (matrix === undefined) return undefined;
  const longest = (count: number) => stepsPerSplit(steps, splits, count);
  const whole = ROUNDS.filter((count) => count <= most && steps % count === 0);
  const least = needed ? Math.min(...whole.map(longest)) : Math.ceil(steps / splits);
  return whole.find((count) => longest(count) <= LONGER_BY * least);
}

/** So many steps and as few more as make whole rounds, of `most` steps at most; the steps alone where none are so short. */
export function fullRounds(steps: number, most: number): number {
  const full = ROUNDS.filter((count) => count <= most)
    .map((count) => Math.ceil(steps / count) * count);
  return full.find((all) => all <= LONGER_BY * steps) ?? full.at(-1) ?? steps;
}

/** Steps of the longest split, of a depth in rounds of so many steps. */
export function stepsPerSplit(steps: number, splits: number, unrollFactor = 1): number {
  return unrollFactor * Math.ceil(steps / unrollFactor / splits);
}

/** WGSL of the steps of a tile, of all splits together. */
function allSteps(
  module: ModuleBuilder,
  { depth, uneven }: ProductShape,
  policy: TilePolicy,
): string {
  return uneven === undefined ? module.size("steps", Math.ceil(depth / policy.depth)) : "all_steps";
}

/**
 * Declares `first_step` and `end_step` of a split. On matrix units the compiler makes more of a loop that counts to a number it
 * knows: 0.94 to 1.16 times as fast, 1.05 on the geomean of eight gradients of filters (f16 on an H200). In f32 it makes less of
 * it (0.95), so there all splits but the last ones have as many steps; so have split tiles beside whole ones.
 */
function splitStepsText(
  module: ModuleBuilder,
  shape: ProductShape,
  policy: TilePolicy,
  unrollFactor: number | undefined,
): string[] {
  const { splits, uneven } = shape;
  const steps = Math.ceil(shape.depth / policy.depth);
  const all = allSteps(module, shape, policy);
  if (unrollFactor !== undefined) {
    const count = module.size("splits", splits);
    const all = module.size("rounds", steps / unrollFactor);
    const first =
      `(split * (${all} / ${count}) + min(split, ${all} % ${count})) * ${unrollFactor}u`;
    const own =
      `(${all} / ${count} + select(0u, 1u, split < ${all} % ${count})) * ${unrollFactor}u`;
    return [
      `  let first_step = ${first};`,
      `  let end_step = first_step + ${
        shape.split === undefined ? own : `select(${own}, ${all} * ${unrollFactor}u, whole)`
      };`,
    ];
  }
  if (countsSteps(shape, policy)) {
    const count = module.size("splits", splits);
    return [
      `  let longer = split < ${all} % ${count};`,
      `  let split_steps = ${all} / ${count};`,
      `  let first_step = split * split_steps + min(split, ${all} % ${count});`,
      `  let end_step = first_step + split_steps + select(0u, 1u, longer);`,
    ];
  }
  const each = uneven === undefined
    ? module.size("steps_per_split", stepsPerSplit(steps, splits))
    : "split_steps";
  return [
    ...(uneven === undefined ? [] : [
      `  let split_steps = (all_steps + ${module.size("splits", splits)} - 1u) / ` +
      `${module.size("splits", splits)};`,
    ]),
    `  let first_step = split * ${each};`,
    `  let end_step = min(first_step + ${
      shape.split === undefined ? each : `select(${each}, ${all}, whole)`
    }, ${all});`,
  ];
}

/**
 * Declares `split` of workgroup `id`, its tile by that name, and whether it is a `whole` one: all of these come first, since they take
 * longest.
 */
export function splitTileText(
  module: ModuleBuilder,
  { first, count }: TileRange,
  tile = "tile",
): string[] {
  const [before, tail] = [module.size("first_tile", first), module.size("tile_count", count)];
  return [
    `  let whole = id < ${before};`,
    `  let after = id - ${before};`,
    `  let ${tile} = select(${before} + after % ${tail}, id, whole);`,
    `  let split = select(after / ${tail}, 0u, whole);`,
  ];
}

/** How workgroups on matrix units go over their steps. */
export interface UnitSchedule {
  /** Steps of the longest one. */
  readonly longest: number;
  /** Steps of a round, of which all workgroups, and all parts of their sums, have whole ones; undefined where the loop has no rounds. */
  readonly unrollFactor: number | undefined;
  /** When their sums move on; undefined for at the end alone. */
  readonly flush: UnitFlush | undefined;
}

/** What of a policy decides how its steps are gone over. */
type UnitPolicy = Pick<TilePolicy, "depth" | "matrix">;

/** Most steps of a part. */
function mostPartSteps({ depth }: UnitPolicy, { length }: UnitChain): number {
  return Math.max(1, Math.floor(length / depth));
}

/** When the sums of so many steps leave matrix units; undefined for at the end alone. */
function unitFlush(
  policy: UnitPolicy,
  chain: UnitChain | undefined,
  steps: number,
  unrollFactor: number | undefined,
): UnitFlush | undefined {
  const { matrix } = policy;
  if (chain === undefined || matrix === undefined) return undefined;
  const { totals } = chain;
  const most = mostPartSteps(policy, chain);
  if (most >= steps) return undefined;
  const whole = totals === "result" || unrollFactor !== undefined;
  return { interval: whole ? flushInterval(steps, most, unrollFactor) : most, totals };
}

/** Steps of a part, `most` at most: parts of about equal length, of whole rounds. */
function flushInterval(steps: number, most: number, unrollFactor = 1): number {
  const [all, each] = [Math.ceil(steps / unrollFactor), Math.floor(most / unrollFactor)];
  return unrollFactor * Math.ceil(all / Math.ceil(all / each));
}

/** Steps of a tile, and who goes over them. */
export interface TileSteps {
  readonly steps: number;
  /** Workgroups that share them; 1 where absent. */
  readonly splits?: number;
  /** Whether some workgroups have all of the steps. */
  readonly streamed?: boolean;
  /** Steps of a row, of which every workgroup has whole ones, in no longer parts than {@linkcode fitsPart}; any where absent. */
  readonly row?: number | undefined;
}

/** Whether the parts in which a policy sums may be of so many steps. */
export function fitsPart(policy: UnitPolicy, chain: UnitChain | undefined, steps: number): boolean {
  return chain === undefined || steps <= mostPartSteps(policy, chain);
}

/** How workgroups go over a tile's steps. */
export function unitSchedule(
  policy: UnitPolicy,
  chain: UnitChain | undefined,
  { steps, splits = 1, streamed = false, row }: TileSteps,
): UnitSchedule {
  const schedule = (unrollFactor?: number): UnitSchedule => {
    const longest = streamed ? steps : stepsPerSplit(steps, splits, unrollFactor);
    return { longest, unrollFactor, flush: unitFlush(policy, chain, longest, unrollFactor) };
  };
  if (row !== undefined) return schedule(row);
  const single = schedule();
  const { flush } = single;
  if (flush === undefined) {
    const shared = splits === 1
      ? single
      : schedule(unrollFactorOf(steps, splits, policy, streamed));
    // Rounds are not to make parts of what needs none.
    return shared.flush === undefined ? shared : single;
  }
  // Sums that move to registers leave none for the matrices of a step ahead.
  return schedule(
    flush.totals === "result"
      ? unrollFactorOf(steps, splits, policy, true, mostPartSteps(policy, chain!))
      : undefined,
  );
}

/**
 * Steps of a product whose operands may be padded with zeros: where its sums are stored on their way whole rounds, of a loop over
 * anything else compilers make a sixth of its speed.
 */
export function paddedSteps(
  policy: UnitPolicy,
  chain: UnitChain | undefined,
  steps: number,
): number {
  const { flush, unrollFactor } = unitSchedule(policy, chain, { steps });
  if (flush?.totals !== "result" || unrollFactor !== undefined) return steps;
  return fullRounds(steps, mostPartSteps(policy, chain!));
}
