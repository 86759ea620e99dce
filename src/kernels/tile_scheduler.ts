import type { TripCount } from "./loop/mainloop.ts";
import type { UnitFlush } from "./loop/matrix_products.ts";
import type { UnitChain } from "./matrix_units.ts";
import type { ModuleBuilder } from "./module.ts";
import type { TilePolicy } from "./policy.ts";

/** A batched product C = A·B as the mainloop iterates over it. */
export interface ProductShape {
  readonly rows: number;
  readonly columns: number;
  /** K: products of a result, over all splits. Operands are zero from there to the end of the last k-tile. */
  readonly depth: number;
  /** Independent products: the groups of a convolution. */
  readonly batches: number;
  /** Split-K: workgroups that share the depth of a tile; only tiles of `split` where it is given. */
  readonly splits: number;
  /** Stream-K: the last tiles, whose depth is split. Those before them are full tiles, with their whole depth. */
  readonly split?: TileRange;
  /** Rows whose depth differs; all have `depth` where absent. */
  readonly uneven?: UnevenRows;
  /** A statement that returns where there is nothing to do for workgroup `id`. */
  readonly skip?: string;
}

/** Rows whose depth is their class's. A row tile belongs to one class. */
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

/** Consecutive tiles: down the rows, then along the columns, then the next batch. */
export interface TileRange {
  readonly first: number;
  readonly count: number;
}

/**
 * Declares `row_tile`, `column_tile` and the batch of a tile: down the rows, or down a band of them (swizzle), then along the columns.
 * Uneven rows come class by class, the deepest first, so that the last workgroups are short.
 *
 * @param tiles Their counts; `classes` of uneven rows, 1 where all are alike; `raster`, the rows of a band, 0 for all.
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

/** Declares `band_row` and `column_tile` of a tile: bands of `raster` rows, each down, then along. */
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

/** Whether a split's loop counts its steps: all splits have as many, or one more. */
function countsSteps({ splits, split }: ProductShape, { matrix }: TilePolicy): boolean {
  return matrix !== undefined && splits > 1 && split === undefined;
}

/** The counted form of a split's loop, over what {@linkcode workgroupText} declares; undefined for other loops. */
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

/** Unroll factors. They are even, so that the compiler knows which of two tiles a step fills. */
const ROUNDS = [8, 6, 4] as const;
/** How much longer a split may get so that its steps fill rounds. */
const LONGER_BY = 1.03;

/**
 * The factor by which workgroups on matrix units unroll their loop, so that each has whole rounds. One loop then serves splits of
 * different length, full tiles beside split ones, and sums that are flushed. Undefined where the depth makes no whole rounds.
 *
 * @param needed Whether a loop of single steps costs more than longer splits: beside full tiles, or where sums are flushed.
 * @param most Largest factor.
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

/** The steps padded to whole rounds of at most `most` steps; unpadded where no round is so short. */
function fullRounds(steps: number, most: number): number {
  const full = ROUNDS.filter((count) => count <= most)
    .map((count) => Math.ceil(steps / count) * count);
  return full.find((all) => all <= LONGER_BY * steps) ?? full.at(-1) ?? steps;
}

/** Steps of the longest split of a depth that is unrolled by a factor. */
export function stepsPerSplit(steps: number, splits: number, unrollFactor = 1): number {
  return unrollFactor * Math.ceil(steps / unrollFactor / splits);
}

/** WGSL of a tile's steps, over all splits. */
function allSteps(
  module: ModuleBuilder,
  { depth, uneven }: ProductShape,
  policy: TilePolicy,
): string {
  return uneven === undefined ? module.size("steps", Math.ceil(depth / policy.depth)) : "all_steps";
}

/**
 * Declares `first_step` and `end_step` of a split. On matrix units loops with a known trip count are faster: 0.94 to 1.16 times, 1.05
 * on the geomean of eight gradients of filters (f16 on an H200). In f32 they are slower (0.95), so there all splits but the last ones
 * have as many steps; the same holds for split tiles beside full ones.
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
 * Declares `split` of workgroup `id`, its tile by that name, and whether it is a full tile (`whole`). Full tiles take longest and come
 * first.
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

/** How workgroups on matrix units loop over their steps. */
export interface UnitSchedule {
  /** Steps of the longest one. */
  readonly longest: number;
  /** Steps of a round, of which all workgroups, and all parts of their sums, have whole ones; undefined where the loop has no rounds. */
  readonly unrollFactor: number | undefined;
  /** When their sums move on; undefined for at the end alone. */
  readonly flush: UnitFlush | undefined;
}

/** What of a policy decides that. */
type UnitPolicy = Pick<TilePolicy, "depth" | "matrix">;

/** Most steps between two flushes. */
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

/** Steps between two flushes, `most` at most: about equally many each time, in whole rounds. */
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

/** Whether a policy may flush its sums every so many steps. */
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
    // Unrolling must not add a flush where none is needed.
    return shared.flush === undefined ? shared : single;
  }
  // Sums that are flushed to registers leave none for fragments of the next step.
  return schedule(
    flush.totals === "result"
      ? unrollFactorOf(steps, splits, policy, true, mostPartSteps(policy, chain!))
      : undefined,
  );
}

/**
 * Steps of a product whose operands may be padded with zeros. Where sums are flushed to the result they fill whole rounds: with any
 * other loop the kernel has a sixth of its speed.
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
