import { tapRingOf } from "../kernels/loader.ts";
import { deviceOf } from "./device/h200.ts";
import type { DeviceModel } from "./device/model.ts";
import { isSmallCpu, loopCost, residentTiles } from "./loop_cost.ts";
import { MOST_ITERATIONS } from "./passes.ts";
import type { Product } from "./product.ts";
import { isRefusal, type Planned, type Refusal, refusal } from "./refusal.ts";
import type { Balance, Schedule } from "./schedule.ts";
import type { PlanRequest } from "./request.ts";
import { tileCandidates, type TileRequest } from "./tile_candidates.ts";
import { doubleBuffersRegisters } from "../kernels/loop/matrix_tile.ts";
import { productWorkgroups, stepIterations } from "../kernels/product_kernel.ts";
import type { UnitChain } from "../kernels/matrix_units.ts";
import { TILE_POLICIES, type TilePolicy } from "../kernels/policy.ts";
import { stepsPerSplit, unitSchedule } from "../kernels/tile_scheduler.ts";
import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";

export interface Cut {
  readonly policy: TilePolicy;
  /** Workgroups that share the depth of a tile: of those after `head` where it is there, else of all. */
  readonly splits: number;
  /** Tiles that run with their whole depth, in whole waves (stream-K); all tiles are alike where absent. */
  readonly head?: number;
  /** Predicted cost, in multiply-adds of a fully used device. */
  readonly cost: number;
  /** Stream-K whose kernel would have more bindings than the device, and so none. */
  readonly unbound?: true;
}

/**
 * How a cut product of `steps` steps is summed; beside full tiles, how these are. All splits count as the longest: on matrix units
 * some are one step or round shorter.
 *
 * @param chain How far matrix units add up, where it runs on them.
 * @param row Steps of a row, of which all workgroups have whole ones; any where absent.
 */
export function cutArithmetic(
  { policy, splits, head }: Cut,
  steps: number,
  chain?: UnitChain,
  row?: number,
): PlanArithmetic {
  const whole = splits === 1 || head !== undefined;
  const streamed = head !== undefined;
  const { flush, longest } = unitSchedule(policy, chain, { steps, splits, streamed, row });
  const unit = policy.matrix?.unit.result !== "f32" ? {} : {
    unit: policy.matrix.unit.k,
    ...(policy.matrix.split ? { math: "f16x3" as const } : {}),
  };
  if (whole) {
    return { ...unit, ...(flush === undefined ? {} : { chain: flush.interval * policy.depth }) };
  }
  const segment = longest * policy.depth;
  return { ...unit, chain: flush === undefined ? segment : flush.interval * policy.depth, segment };
}

/** A request's schedule with the tile and the splits that were chosen. */
export function cutSchedule(cut: Cut, { schedule }: Pick<PlanRequest, "schedule">): Schedule {
  const { policy: { name }, splits } = cut;
  return { ...schedule, policy: name, splits, balance: balanceOf(cut) };
}

export function balanceOf({ head, splits }: Cut): Exclude<Balance, "auto"> {
  return head !== undefined ? "stream-k" : splits > 1 ? "split-k" : "none";
}

/** Iterations of a loop over steps; what a kernel's end takes must fit beside it. */
const MOST_STEP_ITERATIONS = MOST_ITERATIONS - 5_000;
const MOST_SPLITS = 512;
/**
 * What whole and split tiles in one kernel take of policies that double-buffer registers, over what fuller waves should leave, where their
 * steps make no rounds (on an H200 whole ones alone take 1.03 to 1.1 times less where waves should gain 1 to 3 %).
 */
const STREAMED_DOUBLE_BUFFERED = 1.08;
/**
 * The same where sums are stored on their way, which then go two ways: f16 to f32, 8192³ takes 1.015 times as long where 0.981 was
 * predicted, 5000³ 0.943 for 0.877.
 */
const STREAMED_STORED = 1.035;
/** The same of f16 convolutions on matrix units: 123 plans on an H200 take 1.05 times what is predicted, by the median, beside whole tiles. */
const STREAMED_HALVES = 1.04;
/**
 * What splits that go by no rounds take of policies that double-buffer registers, over those that do: from as long (three splits of 65 steps,
 * backward-filter of Conv5 at batch 64) to 1.25 times as long (three of 98, batch 96; five of whole sixes are 102 us on an H200, those
 * three 128 on an H100), by what a compiler writes out of their number. Between the two.
 */
const COUNTED_DOUBLE_BUFFERED = 1.05;
/** `auto` takes stream-K only where it is predicted to take less than this share of the next best's time. */
const CLEARLY_LESS = 0.99;
/**
 * More splits of threads are taken only where they are predicted to save more than this share of the split tiles' time, since fewer
 * need less memory: on an H200 stream-K of 2048³ takes 376.9 us with two splits and 382.6 with three, where 378 and 377 are predicted,
 * and 256 x 256 x 65536 194.3 with 33 splits and 198.1 with 49, for 195 and 192.
 */
const WORTH_MORE_SPLITS = 0.02;

export type CutRequest =
  & TileRequest
  & Pick<PlanRequest, "schedule" | "sizes" | "maxWorkspaceBytes">;

function mostSteps(policy: TilePolicy, { schedule }: CutRequest): number {
  return Math.floor(MOST_STEP_ITERATIONS / (1 + stepIterations(policy, schedule)));
}

/**
 * The cheapest cut of a product: time of the busiest multiprocessor, waste of padding included, plus
 * what split depth writes and reads again. A balance that the product is too small for is none, and where
 * no policy's tiles make a whole wave and more, stream-K is what is cheapest without it. Undefined where no policy is a candidate.
 */
export function chooseCut(
  product: Product,
  asked: CutRequest,
  candidates: readonly TilePolicy[] = TILE_POLICIES,
): Cut | undefined {
  const { schedule: { splits, balance = "auto" } = {} } = asked;
  const device = deviceOf(asked);
  const roomy = policiesWithinWorkspace(product, candidates, asked);
  const cheapest = (cuts: Iterable<Cut>, suits: (cut: Cut) => boolean = () => true) => {
    let best: Cut | undefined;
    for (const cut of cuts) {
      if ((best === undefined || cut.cost < best.cost) && suits(cut)) best = cut;
    }
    return best;
  };
  const short = ({ policy, splits }: Cut) =>
    Math.ceil(product.steps(policy) / splits) <= mostSteps(policy, asked);
  const each = function* (cutsOf: typeof evenCuts) {
    for (const policy of roomy) yield* cutsOf(product, policy, asked);
  };
  // Loops that are too long are cut short: forced splits go with a policy of fewer steps, if there is one.
  const even = (device.software ? cheapest(each(evenCuts), short) : undefined) ??
    cheapest(each(evenCuts));
  if (even === undefined) return undefined;
  const tried = balance === "stream-k" ||
    balance === "auto" && splits === undefined && !isSmallCpu(device);
  const streamed = tried && product.streams ? cheapest(each(streamedCuts)) : undefined;
  const pays = ({ cost }: Cut) => balance === "stream-k" || cost < CLEARLY_LESS * even.cost;
  if (streamed === undefined || !pays(streamed)) {
    return fewestSplits(even, 1, evenCuts(product, even.policy, asked));
  }
  const tiles = productWorkgroups({ ...product, splits: 1 }, streamed.policy);
  const share = 1 - streamed.head! / tiles;
  return fewestSplits(streamed, share, streamedCuts(product, streamed.policy, asked), pays);
}

/**
 * Of the cuts of a policy that differ from the cheapest in nothing but fewer splits, and take hardly longer, that of fewest; a depth
 * that is split stays so.
 *
 * @param share Of the tiles that are split, of all.
 * @param suits Whether a cut is to be taken at all.
 */
function fewestSplits(
  cheapest: Cut,
  share: number,
  cuts: Iterable<Cut>,
  suits: (cut: Cut) => boolean = () => true,
): Cut {
  const { policy, splits, head, cost } = cheapest;
  if (policy.matrix !== undefined) return cheapest;
  for (const cut of cuts) {
    const fewer = cut.head === head && cut.splits > 1 && cut.splits < splits;
    if (fewer && cost > (1 - WORTH_MORE_SPLITS * share) * cut.cost && suits(cut)) return cut;
  }
  return cheapest;
}

/** Split-K: every number of splits, the same for all tiles. */
function* evenCuts(product: Product, policy: TilePolicy, asked: CutRequest): Generator<Cut> {
  const steps = product.steps(policy);
  const tiles = productWorkgroups({ ...product, splits: 1 }, policy);
  const row = tapRingOf(product.b)?.row?.steps;
  const room = mostSplits(product, policy, asked, product.elements);
  const most = Math.max(1, Math.min(steps / (row ?? 1), room));
  const needed = asked.schedule?.balance === "split-k" ? 2 : 1;
  const least = Math.min(most, Math.max(needed, Math.ceil(steps / mostSteps(policy, asked))));
  const forced = asked.schedule?.splits === undefined
    ? asked.schedule?.balance === "none" ? least : undefined
    : Math.min(most, asked.schedule?.splits);
  const device = deviceOf(asked);
  const loopOf = loopCost(device, product, policy);
  const filling = Array.from(
    { length: residentTiles(device, policy, product) },
    (_, i) => Math.floor((i + 1) * device.multiprocessors / tiles),
  );
  for (const splits of splitsBetween(forced ?? least, forced ?? most, filling)) {
    // A split without steps would be pure waste.
    const perSplit = stepsPerSplit(steps, splits, row);
    if (splits > 1 && perSplit * (splits - 1) >= steps && forced === undefined) continue;
    const multiplied = splits === 1 ? product.wholeSteps?.(policy) ?? steps : perSplit;
    const { unrollFactor, flush } = unitSchedule(policy, product.matrix?.chain, {
      steps,
      splits,
      row,
    });
    // Where sums are flushed to registers these are not double-buffered.
    const counted = splits > 1 && doubleBuffersRegisters(policy) && unrollFactor === undefined &&
      flush?.totals !== "registers";
    const loop = (counted ? COUNTED_DOUBLE_BUFFERED : 1) *
      loopOf([{ workgroups: tiles * splits, steps: multiplied }]);
    const reduce = splits === 1 && !product.finishedApart
      ? 0
      : reduceCost(device, splits, product.elements);
    yield { policy, splits, cost: loop + reduce + packingCost(product, policy) };
  }
}

/**
 * Stream-K: as many tiles as make whole waves are full tiles; the others are split so that they fill waves too, in the same dispatch.
 * With one wave less of full tiles the depth has fewer and longer splits.
 */
function* streamedCuts(product: Product, policy: TilePolicy, asked: CutRequest): Generator<Cut> {
  const device = deviceOf(asked);
  const steps = product.steps(policy);
  if (steps > mostSteps(policy, asked)) return;
  const tiles = productWorkgroups({ ...product, splits: 1 }, policy);
  const resident = residentTiles(device, policy, product);
  const loopOf = loopCost(device, product, policy);
  const slots = resident * device.multiprocessors;
  const whole = Math.floor(tiles / slots) * slots;
  // Of threads it has been timed on products of 0.3 ms and more; on smaller ones it must gain a dispatch's time.
  const margin = policy.matrix === undefined ? device.costs.dispatch : 0;
  for (const head of [whole, whole - slots]) {
    const tail = tiles - head;
    if (head <= 0 || tail === 0) continue;
    const elements = tail * policy.rows * policy.columns;
    const most = Math.min(steps, mostSplits(product, policy, asked, elements));
    const forced = asked.schedule?.splits === undefined
      ? undefined
      : Math.min(most, asked.schedule?.splits);
    for (const splits of splitsBetween(Math.max(2, forced ?? 2), forced ?? most)) {
      const schedule = unitSchedule(policy, product.matrix?.chain, {
        steps,
        splits,
        streamed: true,
      });
      const unrollFactor = product.share === undefined && asked.sizes !== "uniform"
        ? schedule.unrollFactor
        : undefined;
      const perSplit = stepsPerSplit(steps, splits, unrollFactor);
      if (perSplit * (splits - 1) >= steps && forced === undefined) continue;
      const loop = loopOf([
        { workgroups: head, steps },
        { workgroups: tail * splits, steps: perSplit },
      ]);
      const stored = schedule.flush?.totals === "result" ? STREAMED_STORED : 1;
      const twoLoops = unrollFactor === undefined && schedule.flush === undefined;
      const loops = doubleBuffersRegisters(policy) && twoLoops ? STREAMED_DOUBLE_BUFFERED : 1;
      const halves = policy.matrix !== undefined && product.resultBytes === 2 ? STREAMED_HALVES : 1;
      const cost = stored * loops * halves * loop + margin +
        reduceCost(device, splits, elements) + packingCost(product, policy);
      yield { policy, splits, head, cost };
    }
  }
}

/** Elements of the partial results of a cut product; 0 where no depth is split. */
export function partialResultElements(
  { policy, head, splits }: Cut,
  { rows, columns, batches, elements }: Pick<Product, "rows" | "columns" | "batches" | "elements">,
): number {
  if (splits === 1) return 0;
  if (head === undefined) return splits * elements;
  const tiles = productWorkgroups({ rows, columns, batches, splits: 1 }, policy);
  return splits * (tiles - head) * policy.rows * policy.columns;
}

function packingCost({ a, b }: Product, policy: TilePolicy): number {
  return (a.packing?.(policy) ?? 0) + (b.packing?.(policy) ?? 0);
}

/** The candidates whose workspace fits; where none does, those that need least. */
function policiesWithinWorkspace(
  product: Product,
  candidates: readonly TilePolicy[],
  { maxWorkspaceBytes = Infinity }: CutRequest,
): readonly TilePolicy[] {
  const bytes = (policy: TilePolicy) => product.workspaceBytes?.(policy) ?? 0;
  const allowed = Math.max(maxWorkspaceBytes, Math.min(...candidates.map(bytes)));
  return candidates.filter((policy) => bytes(policy) <= allowed);
}

/** Splits that partial results of `elements` elements have room for. */
function mostSplits(
  product: Product,
  policy: TilePolicy,
  { limits, maxWorkspaceBytes = Infinity }: CutRequest,
  elements: number,
): number {
  const { partialBytes = 4, workspaceBytes } = product;
  const bytes = Math.min(limits.maxBufferSize, limits.maxStorageBufferBindingSize);
  const allowed = maxWorkspaceBytes - (workspaceBytes?.(policy) ?? 0);
  return Math.min(
    MOST_SPLITS,
    Math.floor(Math.min(bytes, allowed) / (partialBytes * Math.max(1, elements))),
  );
}

/**
 * Numbers of splits to try: all up to 32, then every 16th, and others that are named.
 *
 * @param filling Such as fill a wave.
 */
function splitsBetween(least: number, most: number, filling: readonly number[] = []): number[] {
  const found: number[] = [];
  for (let splits = least; splits <= most; splits += splits < 32 ? 1 : 16) found.push(splits);
  const others = filling.filter((splits) => splits > 32 && splits >= least && splits <= most);
  return [...found, ...others].toSorted((one, other) => one - other);
}

/** Cost of partial results: written, read, and their sums written in a pass of its own. */
function reduceCost({ costs }: DeviceModel, splits: number, elements: number): number {
  return (2 * splits + 1) * elements * costs.element + costs.dispatch;
}

/** Most rows of a band of tiles: products of it and of columns stay below 2³². */
const MOST_BAND_ROWS = 99_999;

/** Refuses numbers of splits, of products between flushes, or of rows of a band of tiles, that are none. */
export function refuseCounts(
  { schedule: { splits = 1, flush = 0, raster = 0 } = {} }: Pick<PlanRequest, "schedule">,
): Refusal | undefined {
  if (!Number.isSafeInteger(splits) || splits < 1) {
    return refusal("problem", `${splits} splits are no whole number from 1 on`);
  }
  if (!Number.isSafeInteger(flush) || flush < 0) {
    return refusal("problem", `${flush} products between flushes are no whole number from 0 on`);
  }
  return Number.isSafeInteger(raster) && raster >= 0 && raster <= MOST_BAND_ROWS
    ? undefined
    : refusal(
      "problem",
      `a raster of ${raster} rows is no whole number from 0 to ${MOST_BAND_ROWS}`,
    );
}

export function refuseBalance(
  { schedule: { splits, balance = "auto" } = {} }: Pick<CutRequest, "schedule">,
): Refusal | undefined {
  if (splits === undefined || balance === "auto") return undefined;
  return (balance === "none" ? splits > 1 : splits < 2)
    ? refusal("problem", `balance ${balance} contradicts ${splits} splits`)
    : undefined;
}

/**
 * The user's policy and splits, or the cheapest that the device can run. Refused if the policy is unknown or does not fit
 * the device, or splits contradict the balance.
 */
export function cutProduct(request: CutRequest, product: Product): Planned<Cut> {
  const candidates = tileCandidates(request, product);
  if (isRefusal(candidates)) return candidates;
  const refused = refuseBalance(request);
  if (refused !== undefined) return refused;
  return chooseCut(product, request, candidates) ??
    refusal("limit", "no tile policy fits the device");
}
