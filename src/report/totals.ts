import { occurrences } from "../problem/occurrences.ts";
import type { ReadCase, ReadTime } from "./record_schema.ts";
import { formatGflops, formatMilliseconds } from "./format.ts";

/** What totals are made of. */
export type TotalledCase =
  & Pick<ReadCase, "problem" | "op" | "layout" | "algorithm" | "requested" | "policy" | "tile">
  & Pick<ReadCase, "cache" | "flops">
  & { readonly time_ms: Pick<ReadTime, "median"> | null };

/**
 * Where names say how often a network has a layer (`res2a*3`): the whole network's time and rate, a line for each
 * way it was run. None where no name says so.
 */
export function networkTotals(records: readonly TotalledCase[]): string[] {
  const timed = records.filter(({ time_ms, op }) => time_ms !== null && op !== "gemm");
  if (!timed.some((record) => times(record) > 1)) return [];
  const ways = Map.groupBy(timed, (record) => {
    const { op, layout, requested, algorithm, policy = "", tile = "", cache = "" } = record;
    return [op, layout, requested ?? algorithm, policy, tile, cache].filter(Boolean).join(" ");
  });
  return [...ways].map(([way, cases]) => {
    const sum = (figure: (record: TotalledCase) => number) =>
      cases.reduce((total, record) => total + times(record) * figure(record), 0);
    const ms = sum(({ time_ms }) => time_ms!.median);
    const rate = formatGflops(sum(({ flops }) => flops ?? 0) / ms / 1e6);
    return `total ${way}: ${formatMilliseconds(ms)} for ${sum(() => 1)} layers, ${rate}`;
  });
}

function times({ problem }: TotalledCase): number {
  return occurrences(/n"([^"]*)"$/.exec(problem)?.[1]);
}
