import type { GemmPlan } from "./gemm_plan.ts";
import type { HostArray } from "./geometry.ts";

/**
 * Lines of one group of a `pixels` plan with one row: positions along the batch, at one place after the other, or
 * along the last spatial axis.
 */
export interface ProjectionJob {
  readonly plan: number;
  readonly group: number;
  readonly alongBatch: boolean;
  readonly lineStart: number;
  readonly lineEnd: number;
}

/**
 * Computes lines of a convolution with one filter a group, and of the squares of both.
 *
 * @param dense The filter, its channels neighbours, and behind it the second one.
 * @param values Σ a·b of each position.
 * @param squares Σ (a·b₂)², b₂ of the second filter.
 */
export type Project = (
  plan: GemmPlan,
  job: ProjectionJob,
  gathered: HostArray,
  dense: HostArray,
  values: Float64Array,
  squares: Float64Array,
) => void;

/**
 * Makes {@linkcode Project}. With a single row there is nothing to pack for: elements are read where they lie,
 * along the channels where these are neighbours, else four channels at a time along a line. Self-contained.
 */
export function makeProject(): Project {
  let sums = new Float64Array(0);
  let moreSums = new Float64Array(0);

  // Adds `count` elements from `i` on, times the weights of one channel.
  function addOne(
    x: HostArray,
    i: number,
    step: number,
    a: number,
    b: number,
    to: number,
    end: number,
    sum: Float64Array,
    more: Float64Array,
  ): void {
    for (; to < end; to++, i += step) {
      const v = x[i]!;
      sum[to]! += a * v;
      const u = b * v;
      more[to]! += u * u;
    }
  }

  // The same of four channels, `pitch` apart: a sum is loaded and stored once for four products.
  function addFour(
    x: HostArray,
    i: number,
    pitch: number,
    step: number,
    w: HostArray,
    at: number,
    second: number,
    to: number,
    end: number,
    sum: Float64Array,
    more: Float64Array,
  ): void {
    const a0 = w[at]!, a1 = w[at + 1]!, a2 = w[at + 2]!, a3 = w[at + 3]!;
    const b0 = w[at + second]!, b1 = w[at + second + 1]!;
    const b2 = w[at + second + 2]!, b3 = w[at + second + 3]!;
    let i1 = i + pitch, i2 = i1 + pitch, i3 = i2 + pitch;
    for (; to < end; to++) {
      const v0 = x[i]!, v1 = x[i1]!, v2 = x[i2]!, v3 = x[i3]!;
      sum[to]! += (a0 * v0 + a1 * v1) + (a2 * v2 + a3 * v3);
      const u0 = b0 * v0, u1 = b1 * v1, u2 = b2 * v2, u3 = b3 * v3;
      more[to]! += (u0 * u0 + u1 * u1) + (u2 * u2 + u3 * u3);
      i += step, i1 += step, i2 += step, i3 += step;
    }
  }

  // Dot products with the channels, which are neighbours.
  function dotOne(
    x: HostArray,
    i: number,
    w: HostArray,
    at: number,
    second: number,
    count: number,
    to: number,
    sum: Float64Array,
    more: Float64Array,
  ): void {
    let s = 0, q = 0;
    for (const end = at + count; at < end; at++, i++) {
      const v = x[i]!, u = w[at + second]! * v;
      s += w[at]! * v;
      q += u * u;
    }
    sum[to]! += s;
    more[to]! += q;
  }

  // The same of four positions, `step` apart: a weight is loaded once for four products.
  function dotFour(
    x: HostArray,
    i: number,
    step: number,
    w: HostArray,
    at: number,
    second: number,
    count: number,
    to: number,
    sum: Float64Array,
    more: Float64Array,
  ): void {
    let s0 = 0, s1 = 0, s2 = 0, s3 = 0, q0 = 0, q1 = 0, q2 = 0, q3 = 0;
    let i1 = i + step, i2 = i1 + step, i3 = i2 + step;
    for (const end = at + count; at < end; at++) {
      const a = w[at]!, b = w[at + second]!;
      const v0 = x[i]!, v1 = x[i1]!, v2 = x[i2]!, v3 = x[i3]!;
      const u0 = b * v0, u1 = b * v1, u2 = b * v2, u3 = b * v3;
      s0 += a * v0, s1 += a * v1, s2 += a * v2, s3 += a * v3;
      q0 += u0 * u0, q1 += u1 * u1, q2 += u2 * u2, q3 += u3 * u3;
      i++, i1++, i2++, i3++;
    }
    sum[to]! += s0, sum[to + 1]! += s1, sum[to + 2]! += s2, sum[to + 3]! += s3;
    more[to]! += q0, more[to + 1]! += q1, more[to + 2]! += q2, more[to + 3]! += q3;
  }

  return (plan, job, gathered, dense, values, squares) => {
    const [g0, g1, g2] = plan.grid;
    const [sn = 0, sc = 0, s0 = 0, s1 = 0, s2 = 0] = plan.gatherStrides;
    const [rn = 0, r0 = 0, r1 = 0, r2 = 0] = plan.resultPositions;
    const { channels } = plan;
    const taps = plan.taps.length / 3;
    const second = dense.length / 2;
    const { alongBatch } = job;
    const length = alongBatch ? plan.batch : g2;
    const step = alongBatch ? 1 : plan.step[2] * s2;
    if (sums.length < length) {
      sums = new Float64Array(length);
      moreSums = new Float64Array(length);
    }
    const sum = sums, more = moreSums;
    for (let line = job.lineStart; line < job.lineEnd; line++) {
      // The line's outer coordinates.
      const inner = alongBatch ? line % g2 : 0;
      const rest = alongBatch ? (line - inner) / g2 : line;
      const i1 = rest % g1;
      const outer = (rest - i1) / g1;
      const i0 = outer % g0;
      const batch = alongBatch ? 0 : (outer - i0) / g0;
      sum.fill(0, 0, length);
      more.fill(0, 0, length);
      for (let tap = 0; tap < taps; tap++) {
        const x0 = i0 * plan.step[0] + plan.taps[3 * tap]!;
        const x1 = i1 * plan.step[1] + plan.taps[3 * tap + 1]!;
        const t2 = plan.taps[3 * tap + 2]!;
        if (x0 < 0 || x0 >= plan.limit[0] || x1 < 0 || x1 >= plan.limit[1]) continue;
        let base = job.group * channels * sc + batch * sn + x0 * s0 + x1 * s1;
        let low = 0, high = length;
        if (alongBatch) {
          const x2 = inner * plan.step[2] + t2;
          if (x2 < 0 || x2 >= plan.limit[2]) continue;
          base += x2 * s2;
        } else {
          low = Math.max(0, Math.ceil(-t2 / plan.step[2]));
          high = Math.min(g2, Math.floor((plan.limit[2] - 1 - t2) / plan.step[2]) + 1);
          base += (low * plan.step[2] + t2) * s2;
        }
        const at = job.group * plan.denseGroup + plan.denseTaps[tap]!;
        if (sc === 1 && !alongBatch && channels > 2) {
          let to = low, i = base;
          for (; to + 4 <= high; to += 4, i += 4 * step) {
            dotFour(gathered, i, step, dense, at, second, channels, to, sum, more);
          }
          for (; to < high; to++, i += step) {
            dotOne(gathered, i, dense, at, second, channels, to, sum, more);
          }
          continue;
        }
        let c = 0;
        for (; c + 4 <= channels; c += 4) {
          addFour(
            gathered,
            base + c * sc,
            sc,
            step,
            dense,
            at + c,
            second,
            low,
            high,
            sum,
            more,
          );
        }
        for (; c < channels; c++) {
          const a = dense[at + c]!, b = dense[at + c + second]!;
          addOne(gathered, base + c * sc, step, a, b, low, high, sum, more);
        }
      }
      let to = plan.resultOrigin + job.group * plan.resultGroup + batch * rn + i0 * r0 +
        i1 * r1 + inner * r2;
      const stride = alongBatch ? rn : r2;
      for (let i = 0; i < length; i++, to += stride) {
        values[to] = sum[i]!;
        squares[to] = more[i]!;
      }
    }
  };
}
