import { scalarBytes } from "../elements/scalar.ts";
import {
  dealsRows,
  loadedTile,
  policyVector,
  shareInRow,
  sharesLines,
  tapRingOf,
  tapRowOf,
  VECTOR_BYTES,
  vectorSide,
} from "../kernels/loader.ts";
import { productBytes } from "../kernels/product_kernel.ts";
import { unitScalar } from "../kernels/matrix_units.ts";
import { type MatrixTile, policyThreads, type TilePolicy } from "../kernels/policy.ts";
import { unitSchedule } from "../kernels/tile_scheduler.ts";
import {
  type DeviceModel,
  policyDevice,
  policyShare,
  policyWarps,
  residentPolicies,
  waveTime,
} from "./device/model.ts";
import type { OperandAccess, Product } from "./product.ts";

/** CPUs of fewer cores run tiles one after the other. */
const FEW_CORES = 16;

/** Whether a device is a CPU of few cores. A GPU of as few multiprocessors is cut as others are. */
export function isSmallCpu({ software, multiprocessors }: DeviceModel): boolean {
  return software && multiprocessors < FEW_CORES;
}

/** Cost of a tile there, beside its steps. */
const SMALL_DEVICE = { fill: 2, store: 0, storeAgain: 0, unitStore: 0 };

/** Share of f16's rate that f32 in halves has where nothing is measured: three products for one, with as many sums to move. */
const SPLIT_SHARE = 0.6;

/** What products in halves have on tiles that were not measured, over what f16 has there: a little less than those that were. */
const SPLIT_TILE = 0.8;

/** What storing a tile of halves takes over storing one of f16, whose results are half as many bytes (an H100). */
const SPLIT_ENDS = 2;

/** Share of the best rate that a policy's mainloop reaches on these operands. */
function efficiencyOf(device: DeviceModel, policy: TilePolicy, { a, b }: Product): number {
  const { shares } = device;
  const threads = policyThreads(policy);
  const side = (access: OperandAccess, extent: number) => {
    if (access.packing?.(policy) !== undefined) return 1;
    const [row, ring] = [tapRowOf(access), tapRingOf(access)];
    const across = row !== undefined
      ? (shares.tapRows[policy.name] ?? 1) * (1 + LONGER_ROW * Math.max(0, row.taps - 3))
      : ring !== undefined
      ? (shares.tapRings[policy.name] ?? 1) / shareInRow(ring)
      : vectorSide(access) === "depth"
      ? depthShare(shares, policy, extent, access.runs) *
        (access.gathered ? gatheredShare(shares, policy, access) : 1)
      : 1;
    const plain = access.gathered && row === undefined && isHalves(policy);
    const met = plain ? across * (shares.gathered[policy.name] ?? 1) : across;
    const loader = { ...access, vector: access.vector ?? 1 };
    const [places, deep] = loadedTile(loader, extent, policy.depth);
    if (dealsRows(loader, places, deep, threads)) return met;
    // Gathered loads compute an address each anyway; matrix units load eight elements at a time.
    const loads = places * deep / (8 * threads);
    if (policy.matrix !== undefined && access.gathered && Number.isInteger(loads)) return met;
    return met * shares[policy.matrix === undefined ? "dealtUnevenly" : "dealtUnevenlyOnUnits"];
  };
  const split = (shares.f16x3 || SPLIT_SHARE) *
    (shares.halves[policy.name] ?? SPLIT_TILE);
  const rate = policyShare(device, policy) * (policy.matrix?.split ? split : 1);
  return rate * side(a, policy.rows) * side(b, policy.columns);
}

/** Whether a policy multiplies f16 on matrix units. */
function isHalves({ matrix }: TilePolicy): boolean {
  return matrix?.unit.component === "f16" && !matrix.split;
}

/** Gain of each tap beyond three in a row of taps, whose loads serve more products. */
const LONGER_ROW = 0.08;

/** Share of the rate that is left where a side of a tile is read along its depth, which lies in so many runs. */
export function depthShare(
  { storedAcross, depthRows }: DeviceModel["shares"],
  policy: TilePolicy,
  extent: number,
  runs = 1,
): number {
  const { matrix, rows, columns } = policy;
  if (matrix === undefined) return extent >= 128 ? storedAcross : 1;
  // Tiles of matrix units lie as their operands do: the more of a tile has short rows, the more it takes.
  const share = depthRows[rowBytes(policy, matrix) / runs] ?? 1;
  return share ** (2 * extent / (rows + columns));
}

/** Share that is left where rows of so many bytes are stored in order, with bank conflicts in workgroup memory. */
const IN_ORDER: Readonly<Record<number, number>> = { 64: 0.93, 32: 0.98 };

/** Share that is left where an operand of matrix units is gathered in short rows: loads are not coalesced. */
function gatheredShare(
  { gatheredRows }: DeviceModel["shares"],
  policy: TilePolicy,
  { vector: least = 1, steps = [], ...access }: OperandAccess,
): number {
  const { matrix } = policy;
  if (matrix === undefined) return 1;
  const vector = policyVector(policy, least === 8 ? 4 : least, steps);
  const whole = vector * scalarBytes(unitScalar(matrix.unit)) === VECTOR_BYTES;
  const inOrder = !whole || sharesLines({ ...access, vector });
  const bytes = rowBytes(policy, matrix);
  return (gatheredRows[bytes] ?? 1) * (inOrder ? IN_ORDER[bytes] ?? 1 : 1);
}

function rowBytes({ depth }: TilePolicy, { unit }: MatrixTile): number {
  return depth * scalarBytes(unitScalar(unit));
}

/** Most results of a thread whose second accumulators a driver still keeps in registers. */
const FLUSHED_RESULTS = 64;

/** How a policy flushes the sums of so many steps of a tile. */
function flushOf(policy: TilePolicy, { matrix, b }: Product, steps: number) {
  const row = tapRingOf(b)?.row?.steps;
  return unitSchedule(policy, matrix?.chain, { steps: Math.ceil(steps), row }).flush;
}

/** Share of its rate that a policy keeps where sums of so many steps are flushed from matrix units to registers. */
function flushedShare(
  { shares }: DeviceModel,
  policy: TilePolicy,
  product: Product,
  steps: number,
): number {
  const flush = flushOf(policy, product, steps);
  if (flush?.totals !== "registers") return 1;
  const results = policy.rows * policy.columns / policyThreads(policy);
  if (results > FLUSHED_RESULTS) return shares.flushed.spilled;
  return shares.flushed[product.matrix!.split ? "halves" : "kept"];
}

/** Workgroups of a product that a multiprocessor runs side by side. */
export function residentTiles(device: DeviceModel, policy: TilePolicy, { a, b }: Product): number {
  const resident = residentPolicies(device, policy);
  if (policy.matrix === undefined || resident === 1) return resident;
  const bytes = productBytes(policy, tileSide(policy, a), tileSide(policy, b));
  return Math.max(1, Math.min(resident, Math.floor(device.sharedBytes / bytes)));
}

/** How a side of a tile lies. */
function tileSide(
  policy: TilePolicy,
  { packing, packedAlong, vector = 1, steps = [], ...access }: OperandAccess,
): OperandAccess {
  if (packing?.(policy) !== undefined) {
    return { along: packedAlong?.(policy) ?? "place", vector: policyVector(policy, 4, []) };
  }
  return { ...access, vector: vector === 8 ? vector : policyVector(policy, vector, steps) };
}

/** Workgroups of at most so many steps each. */
interface LoopPart {
  readonly workgroups: number;
  readonly steps: number;
}

/**
 * Cost, in multiply-adds of a fully used device, of workgroups that follow each other in one dispatch, and of filling and storing
 * their tiles.
 */
export function loopCost(
  device: DeviceModel,
  product: Product,
  policy: TilePolicy,
): (parts: readonly LoopPart[]) => number {
  const { multiprocessors } = device;
  const { share = 1, resultBytes = 4 } = product;
  const few = isSmallCpu(device);
  const { fill, store, storeAgain, unitStore } = few ? SMALL_DEVICE : device.costs;
  const tile = policy.rows * policy.columns;
  const onUnits = policy.matrix !== undefined && !few;
  const bytes = policy.matrix?.split ? SPLIT_ENDS : 1;
  // Share of a rate of multiply-adds that threads reach on words of int8; matrix units have one of their own for them.
  const { dot4, gathered } = device.rates;
  const words = policy.matrix === undefined && product.a.value === "u32" ? dot4 / 4 / gathered : 1;
  // Of products alone: what else a tile takes is no product of words.
  const depth = policy.depth / words;
  const one = (steps: number) => {
    const flush = flushOf(policy, product, steps);
    // Times that sums are stored and read again on their way.
    const again = flush?.totals === "result" ? Math.ceil(steps / flush.interval) - 1 : 0;
    return tile *
      (depth * steps + (onUnits ? 0 : store * resultBytes / 4) + again * storeAgain * bytes);
  };
  const filling = onUnits ? 0 : tile * depth * fill;
  const ends = onUnits ? tile * unitStore * bytes : 0;
  const sumOf = (parts: readonly LoopPart[], cost: (part: LoopPart) => number) =>
    parts.reduce((sum, part) => sum + cost(part), 0);
  if (few) {
    const wave = multiprocessors / policyShare(device, policy);
    return (parts) =>
      sumOf(
        parts,
        ({ workgroups, steps }) =>
          wave * (one(steps * share) + filling) * Math.ceil(workgroups / multiprocessors),
      );
  }
  const warps = policyWarps(policy);
  const met = policyDevice(device, policy);
  const resident = residentTiles(device, policy, product);
  const time = (count: number) => waveTime(met, count, resident, warps);
  const efficiency = efficiencyOf(device, policy, product);
  return (parts) => {
    // Tiles of the first wave fill at once; those of later ones while their neighbours multiply.
    const all = sumOf(parts, ({ workgroups }) => workgroups);
    const first = filling * time(Math.min(all, resident * multiprocessors));
    // Of uneven tiles none is done before the deepest is.
    const work = first +
      sumOf(
        parts,
        ({ workgroups, steps }) =>
          Math.max(
            one(steps * share) * time(workgroups),
            one(steps) * time(Math.min(workgroups, 1)),
          ),
      );
    const stored = sumOf(parts, ({ workgroups }) => ends * time(workgroups));
    // Sums of all parts move as often: they are of one kernel.
    const longest = Math.max(...parts.map(({ steps }) => steps));
    return multiprocessors *
      (work / efficiency / flushedShare(device, policy, product, longest) + stored);
  };
}
