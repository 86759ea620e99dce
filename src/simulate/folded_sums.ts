import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";

/** Accumulators of `count` sums: chains are added to their segment's sum, and segments to the total. */
export function foldedSums(count: number, { chain, segment }: PlanArithmetic, round: Round) {
  const open = new Float64Array(count);
  const segments = new Float64Array(count);
  const totals = new Float64Array(count);
  let inChain = 0, inSegment = 0;
  const add = (from: Float64Array, to: Float64Array) => {
    for (let i = 0; i < count; i++) to[i] = round(to[i]! + from[i]!);
    from.fill(0);
  };
  const foldChain = () => {
    inChain = 0;
    add(open, segments);
  };
  const foldSegment = () => {
    if (inChain > 0) foldChain();
    inSegment = 0;
    add(segments, totals);
  };
  return {
    /** What products are added to. */
    open,
    /** To be called after every unit. */
    step() {
      inChain++;
      inSegment++;
      if (inChain === chain) foldChain();
      if (inSegment === segment) foldSegment();
    },
    totals() {
      if (inSegment > 0) foldSegment();
      return totals;
    },
  };
}

/** Rounds a sum to what it is kept in. */
export type Round = (value: number) => number;
