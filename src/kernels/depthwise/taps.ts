import { gcd } from "../divisor.ts";
import type { Axis } from "../axes.ts";
import { type DepthwiseShape, sourceWidth } from "./shape.ts";

/** Which taps of an axis a place meets: of backward-data every `step`-th, the first by the place's remainder. */
export function tapSteps({ stride, dilation }: Axis, op: DepthwiseShape["op"]) {
  if (op === "fwd") return { step: 1, shared: 1, back: dilation, inverse: 0 };
  const shared = gcd(stride, dilation);
  const step = stride / shared;
  const back = dilation / shared;
  return { step, shared, back, inverse: step === 1 ? 0 : inverseOf(back % step, step) };
}

/** Taps of an axis that a place meets at most. */
export function tapHits(axis: Axis, op: DepthwiseShape["op"]): number {
  return Math.ceil(axis.taps / tapSteps(axis, op).step);
}

/** What rounds follow from. */
type Rounds = Pick<
  DepthwiseShape,
  "op" | "axes" | "run" | "results" | "own" | "group" | "vector" | "sharing"
>;

/**
 * How often a thread runs over its run of results: for each of the source channels (vectors of them) that it sums, and each tap
 * of the other axes; and the multiply-adds of each time.
 */
export function depthwiseRounds(
  shape: Rounds,
): { readonly sources: number; readonly hits: number; readonly products: number } {
  const { op, axes, run, own } = shape;
  return {
    sources: Math.ceil(sourcesOf(shape) / shape.sharing),
    hits: axes.reduce((all, axis, d) => d === run ? all : all * tapHits(axis, op), 1),
    products: runProducts(shape).length * own * sourceWidth(shape),
  };
}

/** Source channels, or vectors of them, that a result sums. */
export function sourcesOf(
  shape: Pick<DepthwiseShape, "op" | "group" | "vector">,
): number {
  const { op, group } = shape;
  return (op === "bwd-data" ? group.outputs : group.inputs) / sourceWidth(shape);
}

/** Turns of a kernel's loop; 1 where there is none. */
export function loopTurns(shape: Rounds & Pick<DepthwiseShape, "loop">): number {
  const { sources, hits } = depthwiseRounds(shape);
  const { loop } = shape;
  return loop.over === "nothing"
    ? 1
    : loop.over === "rounds"
    ? sources * hits
    : sources / loop.together;
}

/** The number below `modulus` whose product with `value` leaves 1, by Euclid; the two share no factor. */
function inverseOf(value: number, modulus: number): number {
  let [low, high, a, b] = [value, modulus, 1, 0];
  while (low > 1) {
    const times = Math.floor(high / low);
    [low, high, a, b] = [high - times * low, low, b - times * a, a];
  }
  return (a % modulus + modulus) % modulus;
}

/** Which result of a run a source's place gives to, by which tap: places count from the run's first. */
export interface RunProduct {
  readonly place: number;
  readonly result: number;
  readonly tap: number;
}

/** The products of a run, by the source's places; of backward-data with a stride only those that are. */
export function runProducts(
  { op, axes, run, results }: Pick<DepthwiseShape, "op" | "axes" | "run" | "results">,
): RunProduct[] {
  const { stride, dilation, padding, taps } = axes[run]!;
  const all: RunProduct[] = [];
  for (let result = 0; result < results; result++) {
    for (let tap = 0; tap < taps; tap++) {
      if (op === "fwd") {
        all.push({ place: result * stride + tap * dilation, result, tap });
        continue;
      }
      const far = result + padding % stride - tap * dilation;
      if (far % stride === 0) all.push({ place: far / stride, result, tap });
    }
  }
  return all.sort((a, b) => a.place - b.place || a.tap - b.tap);
}

/** Every tap of the other axes (of backward-data every hit), of every channel that a result sums. */
export function roundIndices(others: readonly number[], hits: readonly number[], sums: number) {
  let all: { hit: string[]; which: string }[] = Array.from(
    { length: sums },
    (_, which) => ({ hit: [], which: `${which}u` }),
  );
  for (const d of others) {
    all = all.flatMap(({ hit, which }) =>
      Array.from({ length: hits[d]! }, (_, i) => {
        const next = [...hit];
        next[d] = `${i}u`;
        return { hit: next, which };
      })
    );
  }
  return all;
}
