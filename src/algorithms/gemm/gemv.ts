import { depthOfValue, type Elements, elementsOf, sumOf } from "../../elements/elements.ts";
import { scalarBytes } from "../../elements/scalar.ts";
import { NO_STEPS } from "../../kernels/epilogue.ts";
import { gemvKernel } from "../../kernels/gemv.ts";
import {
  gemvBlocks,
  gemvChains,
  gemvLoads,
  gemvMultiplications,
  type GemvShape,
  type GemvThreads,
  gemvTile,
  gemvWorkgroups,
} from "../../kernels/gemv_shape.ts";
import { canonicalName } from "../../kernels/kernel.ts";
import { GEMV } from "../../kernels/policy.ts";
import type { GemmProblem, GemmTensor } from "../../problem/gemm_problem.ts";
import type { PlanArithmetic } from "../../problem/plan_arithmetic.ts";
import { refuseBalance } from "../cut.ts";
import { FEWER_SPLITS } from "../cut_notes.ts";
import { deviceOf } from "../device/h200.ts";
import {
  copyTime,
  type DeviceModel,
  moveTime,
  occupancyRate,
  overlappedTime,
  productTime,
} from "../device/model.ts";
import { MOST_ITERATIONS, pass, reducePass, runnable } from "../passes.ts";
import type { DeviceLimits, Plan } from "../plan.ts";
import { type Planned, type Refusal, refusal } from "../refusal.ts";
import { gemmBuffers, gemmEpilogue, gemmReduction, type GemmRequest } from "./operands.ts";
import { variesLoop } from "../../kernels/variant.ts";

/** Vectors at most: the mainloop's tiles have rows or columns for more. */
const MOST_VECTORS = 16;
/** Splits at most: one pass sums what they leave. */
const MOST_SPLITS = 512;
/** Rounds of loads of a thread at most, on devices that stop long loops. */
const MOST_ROUNDS = MOST_ITERATIONS - 5_000;
/** Threads that every device runs in a workgroup, and the most that are of use. */
const THREADS = { least: 256, most: 1024 };
/** Threads that a multiprocessor has at once. */
const MOST_RESIDENT = 2048;
/** Threads of a workgroup on a CPU. */
const CPU_THREADS = 64;
/** Narrower tiles, which read shorter rows, and more splits, which need memory, are taken only for less than this share of the time. */
const CLEARLY_LESS = 0.95;
/** Fours of places in a tile of a matrix that lies across the depth, from the widest on. */
const WIDTHS = [16, 8, 4];
/** Bytes of a row that are read at less than memory's rate; shorter ones are not weighed. */
const SHORT_ROW = 64;

/** A product before it is dealt to threads. */
type GemvProduct = Omit<GemvShape, "splits" | "threads">;

/** A product that is dealt to threads, and what it should take. */
export interface Gemv {
  readonly shape: GemvShape;
  /** Microseconds. */
  readonly time: number;
}

/** The product as a matrix times the rows of A, or the columns of B, whichever are fewer. */
export function gemvProduct(
  { m, n, k, batch, transpose }: GemmProblem,
  types: Pick<Elements, "storage">,
): GemvProduct {
  // A single vector, or place, lies along the depth whatever is said of it.
  const lies = (count: number, along: boolean) => count === 1 || along ? "depth" : "place";
  const a = lies(m, transpose[0] === "n");
  const b = lies(n, transpose[1] === "t");
  const packed = depthOfValue(types);
  const word = a === "depth" && b === "depth" && k % packed === 0 ? packed : 1;
  const product = { depth: k / word, word, batches: batch };
  return m <= n
    ? { ...product, side: "rows", vectors: m, places: n, matrix: b, vector: a }
    : { ...product, side: "columns", vectors: n, places: m, matrix: a, vector: b };
}

/**
 * The product as a matrix times vectors, if that is asked for or should take less than the mainloop; undefined where it should not.
 *
 * @param mainloop Microseconds that the mainloop should take, asked for only where that decides.
 */
export function chooseGemv(
  request: GemmRequest,
  mainloop: () => number,
): Planned<Gemv | undefined> {
  const asked = request.schedule?.policy === GEMV;
  if (request.schedule?.policy !== undefined && !asked) return undefined;
  const { m, n, k, batch } = request.problem;
  if (m * n * k * batch === 0) return undefined;
  const refused = refuseGemv(request) ?? refuseBalance(request);
  if (refused !== undefined) return asked ? refused : undefined;
  const gemv = fastestGemv(request);
  return asked || gemv.time < mainloop() ? gemv : undefined;
}

/** Why a product is not multiplied as a matrix times vectors. */
function refuseGemv(
  { problem: { m, n }, accumulate, math, schedule = {} }: GemmRequest,
): Refusal | undefined {
  const why = Math.min(m, n) > MOST_VECTORS
    ? `is of products with up to ${MOST_VECTORS} rows or columns, these are ${m} x ${n}`
    : accumulate === "f16"
    ? "sums in f32, not in f16"
    : math === "f16x3"
    ? "multiplies f32 as it is, math f16x3 on matrix units"
    : variesLoop(schedule)
    ? "has no main loop, which variants are of"
    : schedule.balance === "stream-k"
    ? "has no tiles, which stream-k is of"
    : schedule.flush !== undefined
    ? "has no parts of sums, which flush is of"
    : undefined;
  return why === undefined ? undefined : refusal("problem", `policy ${GEMV} ${why}`);
}

/** The way to deal a product to threads, and to split its depth, that should take least. */
function fastestGemv(request: GemmRequest): Gemv {
  const types = elementsOf(request);
  const product = gemvProduct(request.problem, types);
  const device = deviceOf(request);
  return gemvThreads(product, types, request.limits, device)
    .flatMap((threads) =>
      gemvSplits(request, product, threads).map((splits) => {
        const shape = { ...product, threads, splits };
        return { shape, time: gemvTime(shape, types, device) };
      })
    )
    .reduce((best, one) => one.time < CLEARLY_LESS * best.time ? one : best);
}

function powerFrom(count: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(1, count)));
}

/**
 * Ways to deal a product to threads. Where the matrix lies along the depth one: few vectors want all of a workgroup on one place, more
 * of them several places for each load of theirs. Else tiles of several widths, the widest first; of a single vector as many threads as
 * there may be, so that enough is on its way without splits. On a CPU, which runs the threads of a workgroup
 * one after the other up to each barrier, none share a place if there are places for all.
 */
export function gemvThreads(
  product: GemvProduct,
  types: Pick<Elements, "storage" | "accumulate">,
  { maxComputeInvocationsPerWorkgroup: most }: DeviceLimits,
  { software }: Pick<DeviceModel, "software">,
): GemvThreads[] {
  const { vectors, depth } = product;
  const { block, width } = gemvLoads(product);
  const along = product.matrix === "depth";
  if (software) {
    const each = along ? 2 : 1;
    const groups = Math.min(CPU_THREADS, powerFrom(product.places / width / each));
    return [{ lanes: CPU_THREADS / groups, groups, each, ahead: along ? 1 : 2 }];
  }
  const bytes = valueBytes(product, types);
  const single = vectors === 1;
  // Of a single vector values of two bytes and less come twice as many at once.
  const loads = (single && bytes <= 2 ? 16 : 8) / block;
  const lanesOf = (lanes: number, ahead: number) =>
    Math.min(lanes, powerFrom(depth / block / ahead));
  if (along) {
    const apart = product.vector === "place" && vectors > 4;
    const each = single ? 1 : apart ? 4 : 2;
    const ahead = Math.max(1, vectors === 2 || vectors > 8 || apart ? loads / 2 : loads);
    const lanes = lanesOf(vectors <= 2 ? THREADS.least : 32, ahead);
    return [{ lanes, groups: THREADS.least / lanes, each, ahead }];
  }
  const share = vectors > 2 || types.accumulate === "f64" ? 4 : vectors;
  // Lanes are added up by halves.
  const allowed = 2 ** Math.floor(Math.log2(most));
  const threads = Math.max(THREADS.least, Math.min(allowed, THREADS.most / share));
  return WIDTHS.filter((fours) => fours === WIDTHS[0] || single && 4 * fours * bytes >= SHORT_ROW)
    .map((fours) => {
      const groups = 4 * fours / width;
      const lanes = lanesOf(threads / groups, loads);
      return { lanes, groups: Math.max(groups, THREADS.least / lanes), each: 1, ahead: loads };
    });
}

function valueBytes(
  { word }: Pick<GemvProduct, "word">,
  { storage }: Pick<Elements, "storage">,
): number {
  return storage === "u32" && word === 1 ? 1 : scalarBytes(storage);
}

/** Splits that are asked for, or that are weighed. */
function gemvSplits(
  request: GemmRequest,
  product: GemvProduct,
  { lanes, ahead }: GemvThreads,
): number[] {
  const { limits, problem: { m, n, batch }, schedule: { splits, balance } = {} } = request;
  const { blocks } = gemvBlocks({ ...product, splits: 1 });
  const bytes = Math.min(limits.maxBufferSize, limits.maxStorageBufferBindingSize);
  const partial = scalarBytes(sumOf(elementsOf(request))) * batch * m * n;
  const most = Math.max(1, Math.min(MOST_SPLITS, blocks, Math.floor(bytes / partial)));
  // As many as leave no split without blocks.
  const whole = (some: number) => Math.ceil(blocks / Math.ceil(blocks / Math.min(some, most)));
  if (splits !== undefined) return [whole(splits)];
  const rounds = Math.ceil(blocks / (lanes * ahead));
  const needed = deviceOf(request).software ? Math.ceil(rounds / MOST_ROUNDS) : 1;
  const least = Math.max(needed, balance === "split-k" ? 2 : 1);
  const tried = [whole(least)];
  if (balance === "none") return tried;
  for (let some = 2 * least; some <= most && some < 2 * rounds; some *= 2) tried.push(whole(some));
  return tried;
}

/**
 * Microseconds that a product should take: its matrix moves once, at the rate of memory if enough of it is on its way, while vectors
 * and products keep the multiprocessors busy that have a workgroup.
 */
export function gemvTime(shape: GemvShape, types: Elements, device: DeviceModel): number {
  const { vectors, places, depth, word, batches, splits, threads: dealt } = shape;
  const { multiprocessors, rates, times, shares: { gemv } } = device;
  const { block, width } = gemvLoads(shape);
  const workgroups = gemvWorkgroups(shape);
  const threads = dealt.lanes * dealt.groups;
  const value = valueBytes(shape, types);
  const matrix = value * batches * depth * places;
  const atOnce = Math.min(workgroups * threads, MOST_RESIDENT * multiprocessors) *
    (dealt.each * dealt.ahead * block * width * value);
  const taken = Math.min(workgroups, multiprocessors);
  const busy = taken / multiprocessors;
  const short = shape.matrix === "place" && dealt.groups * width * value <= SHORT_ROW;
  const stream = rates.stream * Math.min(1, gemv.draw * busy) * (short ? gemv.short : 1);
  const results = batches * vectors * places;
  const others = value * batches * depth * vectors + scalarBytes(types.result) * results;
  const moved = moveTime(matrix, stream) + moveTime(others, rates.stream) +
    Math.ceil(matrix / atOnce) * times.loads;
  const apart = shape.matrix === "depth" && shape.vector === "place"
    ? Math.max(1, vectors * gemv.apart)
    : 1;
  const used = busy * occupancyRate(device, workgroups * threads / 32 / taken);
  const rate = (word === 4 ? rates.dot4 : rates.packed) * gemv.products * used / apart;
  const time = overlappedTime(productTime(gemvMultiplications(shape), rate), moved) +
    times.dispatch;
  if (splits === 1) return time;
  const partials = scalarBytes(sumOf(types)) * results * splits;
  return time + copyTime(2 * partials, rates.stream, device);
}

/**
 * How its sums are rounded. A thread has a chain for each product of a block, or one; these and the lanes' are added by a tree, as many
 * additions as of two levels one after the other, each of the root of their number.
 */
export function gemvArithmetic(
  shape: GemvShape,
  { accumulate }: Pick<Elements, "accumulate">,
): PlanArithmetic {
  const { lanes } = shape.threads;
  const { block } = gemvLoads(shape);
  const { perSplit } = gemvBlocks(shape);
  const chain = Math.ceil(perSplit / lanes) * (block / gemvChains(shape)) * shape.word;
  const chains = Math.ceil(perSplit * block * shape.word / chain);
  return { sums: accumulate, chain, segment: Math.ceil(Math.sqrt(chains)) * chain };
}

/** Refuses a matrix of more loads than 32 bits count: of single int8, of which a buffer's words hold four times as many. */
function refuseLoads(shape: GemvShape): Refusal | undefined {
  const { block, width } = gemvLoads(shape);
  const { batches, places, vectors, depth, matrix } = shape;
  const loads = batches * depth *
    Math.max(places / (matrix === "depth" ? block : width), vectors / block);
  return loads < 2 ** 32
    ? undefined
    : refusal("problem", `an operand of ${loads} loads, kernels count up to 2^32`);
}

/** Plans a matrix times a few vectors, dealt to threads as it is said. */
export function planGemv(request: GemmRequest, shape: GemvShape): Planned<Plan> {
  const { problem, limits, sizes: mode = "constant" } = request;
  const types = elementsOf(request);
  const { m, n, batch } = problem;
  const elements = batch * m * n;
  const { splits: count } = shape;
  const { buffers, place } = gemmBuffers(problem, types, limits, mode);
  buffers.refuse(refuseLoads(shape));
  const { a, b, output: result } = place as Record<GemmTensor, number>;
  const epilogue = gemmEpilogue(problem, types, buffers, place);
  const partials = count === 1
    ? undefined
    : buffers.workspace("partial results", count * elements, sumOf(types));
  const target = partials ?? result;
  const module = buffers.module({ a, b, result: target });
  const ending = partials === undefined ? epilogue : NO_STEPS;
  const kernel = gemvKernel(module, shape, types, ending);
  const multiplications = gemvMultiplications(shape);
  const bound = { ...place, result: target };
  const passes = [pass(kernel, buffers, bound, multiplications)];
  if (partials !== undefined) {
    const places = { ...place, partials, result };
    const reduce = gemmReduction(problem, count);
    passes.push(reducePass(reduce, epilogue, buffers, places, types.result));
  }
  const plan = buffers.plan({
    kernel: canonicalName(kernel.kernel),
    algorithm: "gemm",
    passes,
    multiplications,
    arithmetic: gemvArithmetic(shape, types),
    schedule: { ...request.schedule, policy: GEMV, splits: count },
    notes: gemvNotes(shape, request),
  });
  return runnable(plan, request);
}

/** How a matrix times vectors is dealt to threads, for a plan's notes, and whether its depth has fewer splits than were asked for. */
function gemvNotes(
  shape: GemvShape,
  { schedule: { splits: asked = 1 } = {} }: Pick<GemmRequest, "schedule">,
): string[] {
  const { side, vectors, matrix, splits, threads } = shape;
  const { lanes, groups } = threads;
  const { width } = gemvLoads(shape);
  const places = gemvTile(threads) * width;
  const several = vectors > 1 ? "s" : "";
  const [vector, place] = side === "rows" ? ["row", "column"] : ["column", "row"];
  return [
    `policy gemv: ${vectors} ${vector}${several} times a matrix that lies ${
      matrix === "depth" ? "along" : "across"
    } the depth, ${gemvWorkgroups(shape)} workgroups of ${
      lanes * groups
    } threads and ${places} ${place}${places > 1 ? "s" : ""}, ${lanes} threads each; ${
      splits === 1 ? "no split of the depth" : `the depth split in ${splits}`
    }`,
    ...(splits >= asked ? [] : [
      `${FEWER_SPLITS}: ${splits} of ${asked}, the depth has no more or the workspace no room`,
    ]),
  ];
}
