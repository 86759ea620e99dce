import type { HostArray } from "./geometry.ts";
import type { GemmPlan } from "./gemm_plan.ts";
import type { Multiply } from "./micro_kernel.ts";

/** A block of one {@linkcode GemmPlan}'s result. */
export interface GemmJob {
  /** Which of the reference's plans. */
  readonly plan: number;
  readonly group: number;
  readonly rowStart: number;
  readonly rowEnd: number;
  readonly columnStart: number;
  readonly columnEnd: number;
  /**
   * `taps` plans: the columns (tap·channels + channel) in place of a range; the results go to
   * `target + (row − rowStart)·pitch + place in the list`.
   */
  readonly list?: { columns: Int32Array; target: number; pitch: number };
}

/** Computes one block; see {@linkcode makeGemm}. */
export type Gemm = (
  plan: GemmPlan,
  job: GemmJob,
  gathered: HostArray,
  dense: HostArray,
  values: Float64Array,
  magnitudes: Float64Array,
) => void;

/**
 * Makes the packed matrix product: blocks of both operands are copied to panels of doubles, 256 deep, and
 * multiplied there. Σ|a||b| is the same sum as long as nothing negative was met; from the first block
 * with a negative value on it is a second product, of the absolute values. Self-contained.
 */
export function makeGemm(multiply: Multiply): Gemm {
  const DEPTH = 256;
  let a = new Float64Array(0);
  let b = new Float64Array(0);
  let sums = new Float64Array(0);
  let absolutes = new Float64Array(0);
  let offsets = new Int32Array(0);

  const roundUp = (count: number) => (count + 3) & ~3;

  // Where gathered elements of positions start.. lie for a tap, in elements; -1 outside.
  function gatherOffsets(plan: GemmPlan, tap: number, start: number, count: number): void {
    const [g0, g1, g2] = plan.grid;
    const [n0 = 0, , s0 = 0, s1 = 0, s2 = 0] = plan.gatherStrides;
    const t0 = plan.taps[3 * tap]!, t1 = plan.taps[3 * tap + 1]!, t2 = plan.taps[3 * tap + 2]!;
    let i2 = start % g2;
    let rest = Math.floor(start / g2);
    for (let done = 0; done < count;) {
      const i1 = rest % g1;
      const outer = Math.floor(rest / g1);
      const batch = Math.floor(outer / g0);
      const x0 = (outer - batch * g0) * plan.step[0] + t0;
      const x1 = i1 * plan.step[1] + t1;
      const inside = x0 >= 0 && x0 < plan.limit[0] && x1 >= 0 && x1 < plan.limit[1];
      const base = batch * n0 + x0 * s0 + x1 * s1;
      const run = Math.min(count - done, g2 - i2);
      for (let i = 0; i < run; i++) {
        const x2 = (i2 + i) * plan.step[2] + t2;
        offsets[done + i] = inside && x2 >= 0 && x2 < plan.limit[2] ? base + x2 * s2 : -1;
      }
      done += run;
      i2 = 0;
      rest++;
    }
  }

  // Offsets of positions start.. for axes with plain strides.
  function positionOffsets(
    grid: readonly number[],
    strides: readonly number[],
    start: number,
    count: number,
    emit: (place: number, offset: number) => void,
  ): void {
    const [g0 = 1, g1 = 1, g2 = 1] = grid;
    const [n0 = 0, s0 = 0, s1 = 0, s2 = 0] = strides;
    for (let i = 0; i < count; i++) {
      const r2 = Math.floor((start + i) / g2);
      const r1 = Math.floor(r2 / g1);
      const r0 = Math.floor(r1 / g0);
      emit(
        i,
        r0 * n0 + (r1 - r0 * g0) * s0 + (r2 - r1 * g1) * s1 + (start + i - r2 * g2) * s2,
      );
    }
  }

  function packPixels(
    plan: GemmPlan,
    job: GemmJob,
    gathered: HostArray,
    dense: HostArray,
    from: number,
    depth: number,
  ): void {
    const rows = job.rowEnd - job.rowStart, columns = job.columnEnd - job.columnStart;
    const channelStride = plan.gatherStrides[1]!, denseChannel = plan.denseChannel;
    // Locals: the engine need not fear that a call changes them.
    const toA = a, toB = b, places = offsets;
    const gatherBase = job.group * plan.channels * channelStride;
    const denseBase = job.group * plan.denseGroup + job.rowStart * plan.denseRow;
    for (let k = 0; k < depth;) {
      const tap = Math.floor((from + k) / plan.channels);
      const channel = from + k - tap * plan.channels;
      const run = Math.min(depth - k, plan.channels - channel);
      gatherOffsets(plan, tap, job.columnStart, columns);
      for (let j = 0; j < columns; j++) {
        const offset = places[j]!;
        let to = (j & ~3) * depth + 4 * k + (j & 3);
        if (offset < 0) {
          for (let i = 0; i < run; i++, to += 4) toB[to] = 0;
          continue;
        }
        let at = gatherBase + offset + channel * channelStride;
        for (let i = 0; i < run; i++, to += 4, at += channelStride) toB[to] = gathered[at]!;
      }
      for (let row = 0; row < rows; row++) {
        let to = (row & ~3) * depth + 4 * k + (row & 3);
        let at = denseBase + row * plan.denseRow + plan.denseTaps[tap]! +
          channel * denseChannel;
        for (let i = 0; i < run; i++, to += 4, at += denseChannel) toA[to] = dense[at]!;
      }
      k += run;
    }
  }

  function packTaps(
    plan: GemmPlan,
    job: GemmJob,
    gathered: HostArray,
    dense: HostArray,
    from: number,
    depth: number,
  ): void {
    const list = job.list?.columns;
    const rows = job.rowEnd - job.rowStart;
    const columns = list?.length ?? job.columnEnd - job.columnStart;
    const gatherBase = job.group * plan.channels * plan.gatherStrides[1]!;
    const denseBase = job.group * plan.denseGroup + job.rowStart * plan.denseRow;
    const toA = a, toB = b, places = offsets;
    positionOffsets(plan.grid, plan.densePositions, from, depth, (k, offset) => {
      places[k] = offset;
    });
    for (let row = 0; row < rows; row++) {
      const base = denseBase + row * plan.denseRow;
      let to = (row & ~3) * depth + (row & 3);
      for (let k = 0; k < depth; k++, to += 4) toA[to] = dense[base + places[k]!]!;
    }
    let known = -1;
    for (let j = 0; j < columns; j++) {
      const column = list === undefined ? job.columnStart + j : list[j]!;
      const tap = Math.floor(column / plan.channels);
      if (tap !== known) gatherOffsets(plan, tap, from, depth);
      known = tap;
      const base = gatherBase + (column - tap * plan.channels) * plan.gatherStrides[1]!;
      let to = (j & ~3) * depth + (j & 3);
      for (let k = 0; k < depth; k++, to += 4) {
        const offset = places[k]!;
        toB[to] = offset < 0 ? 0 : gathered[base + offset]!;
      }
    }
  }

  function hasNegative(block: Float64Array, length: number): boolean {
    for (let i = 0; i < length; i++) if (block[i]! < 0) return true;
    return false;
  }

  function store(
    plan: GemmPlan,
    job: GemmJob,
    block: Float64Array,
    pitch: number,
    results: Float64Array,
  ): void {
    const rows = job.rowEnd - job.rowStart;
    const list = job.list;
    if (list !== undefined) {
      for (let row = 0; row < rows; row++) {
        for (let j = 0; j < list.columns.length; j++) {
          results[list.target + row * list.pitch + j] = block[row * pitch + j]!;
        }
      }
      return;
    }
    const columns = job.columnEnd - job.columnStart;
    const base = plan.resultOrigin + job.group * plan.resultGroup + job.rowStart * plan.resultRow;
    const put = (column: number, offset: number) => {
      for (let row = 0; row < rows; row++) {
        results[base + row * plan.resultRow + offset] = block[row * pitch + column]!;
      }
    };
    if (plan.columns === "pixels") {
      positionOffsets(plan.grid, plan.resultPositions, job.columnStart, columns, put);
    } else {
      for (let j = 0; j < columns; j++) {
        const tap = Math.floor((job.columnStart + j) / plan.channels);
        const channel = job.columnStart + j - tap * plan.channels;
        put(j, channel * plan.resultChannel + plan.resultTaps[tap]!);
      }
    }
  }

  return (plan, job, gathered, dense, values, magnitudes) => {
    const rows = roundUp(job.rowEnd - job.rowStart);
    const columns = roundUp(job.list?.columns.length ?? job.columnEnd - job.columnStart);
    const positions = plan.batch * plan.grid[0] * plan.grid[1] * plan.grid[2];
    const taps = plan.taps.length / 3;
    const total = plan.columns === "pixels" ? plan.channels * taps : positions;
    const block = Math.min(DEPTH, total);
    // Zeroed: the rows and columns that only round up to four are never packed.
    a = new Float64Array(rows * block);
    b = new Float64Array(columns * block);
    offsets = new Int32Array(Math.max(columns, block));
    sums = new Float64Array(rows * columns);
    let signed = false;
    for (let from = 0; from < total; from += block) {
      const depth = Math.min(block, total - from);
      if (depth < block) {
        a = new Float64Array(rows * depth);
        b = new Float64Array(columns * depth);
      }
      const pack = plan.columns === "pixels" ? packPixels : packTaps;
      pack(plan, job, gathered, dense, from, depth);
      if (!signed && (hasNegative(a, a.length) || hasNegative(b, b.length))) {
        signed = true;
        absolutes = sums.slice();
      }
      multiply(a, b, sums, rows, columns, depth);
      if (signed) {
        for (let i = 0; i < a.length; i++) a[i] = Math.abs(a[i]!);
        for (let i = 0; i < b.length; i++) b[i] = Math.abs(b[i]!);
        multiply(a, b, absolutes, rows, columns, depth);
      }
    }
    store(plan, job, sums, columns, values);
    store(plan, job, signed ? absolutes : sums, columns, magnitudes);
  };
}
