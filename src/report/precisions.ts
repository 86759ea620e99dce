import { byFacetOf, distinct, type Point } from "./charts/points.ts";
import { canonicalProblem, dtypeText } from "./case_key.ts";
import type { ReadCase } from "./record_schema.ts";
import { geometricMean, median } from "./stats.ts";

/** How fast, in GFLOP/s, and how wrong, by the relative L2 error. */
export interface SpeedAndError {
  readonly gflops: number;
  readonly error: number;
}

/** What one provider computes in one precision. */
interface PrecisionSeries {
  /** `cudnn tf32`. */
  readonly name: string;
  readonly provider: string;
  readonly precision: string;
  readonly cases: ReadonlyMap<string, SpeedAndError>;
  /** Of them the geometric mean of the rates and the median error. */
  readonly usual: SpeedAndError;
}

/** Precisions side by side, of one kind of problem and data. */
export interface Precisions {
  readonly facet: string;
  readonly labels: ReadonlyMap<string, string>;
  /** Whether all series have all cases; where no case is common to all, each has its own. */
  readonly shared: boolean;
  /** Cases that were left out, as some series do not have them. */
  readonly others: number;
  /** From the most exact on. */
  readonly series: readonly PrecisionSeries[];
  /** Names of series that were timed, but whose errors are not known. */
  readonly unchecked: readonly string[];
}

/**
 * Speed beside error, case by case: a series a provider and precision. None where fewer than two precisions have
 * errors. Errors depend on the data, so that every kind of it stands by itself.
 */
export function precisionsOf(points: readonly Point[]): Precisions[] {
  const right = points.filter((point) => point.right && point.gflops !== null);
  return byFacetOf(right, facetOf).flatMap(([facet, own]) => {
    const groups = [...Map.groupBy(own, seriesName)];
    const found = groups.flatMap(([name, all]) => {
      const cases = checkedCases(all);
      const { provider } = all[0]!.record;
      const precision = precisionOf(all[0]!.record);
      return cases.size === 0 ? [] : [{ name, provider, precision, cases }];
    });
    if (distinct(found.map(({ precision }) => precision)).length < 2) return [];
    const all = distinct(found.flatMap(({ cases }) => [...cases.keys()]));
    const common = all.filter((key) => found.every(({ cases }) => cases.has(key)));
    const shown = common.length > 0 ? common : all;
    const labels = new Map(own.map((point) => [keyOf(point), labelOf(point)]));
    const series = found.map((one) => {
      const cases = new Map(shown.flatMap((key) => {
        const figures = one.cases.get(key);
        return figures === undefined ? [] : [[key, figures] as const];
      }));
      return { ...one, cases, usual: usualOf([...cases.values()]) };
    }).sort((a, b) => a.usual.error - b.usual.error);
    return [{
      facet,
      labels: new Map(shown.map((key) => [key, labels.get(key)!])),
      shared: common.length > 0,
      others: all.length - shown.length,
      series,
      unchecked: groups.map(([name]) => name)
        .filter((name) => !found.some((one) => one.name === name)),
    }];
  });
}

/** What operands are and how they are multiplied: `f16`, `tf32`, `f16x3`, `f16 summed in f16`. */
function precisionOf(record: ReadCase): string {
  const { dtype, math, accumulate } = record;
  if (math !== undefined) return dtype === "f32" ? math : `${dtypeText(record)} by ${math}`;
  return dtypeText(record) + (accumulate === undefined ? "" : ` summed in ${accumulate}`);
}

function seriesName({ record }: Point): string {
  const cold = record.cache === "cold" ? " cold" : "";
  return `${record.provider} ${precisionOf(record)}${cold}`;
}

function facetOf({ record, device }: Point): string {
  const kind = record.op === "gemm" ? "products" : "convolutions";
  const data = record.fill === undefined ? "" : `${record.fill} data`;
  return [kind, device, data].filter((word) => word !== "").join(", ");
}

function errorOf({ record }: Point): number | null {
  return record.accuracy?.rel_l2 ?? null;
}

function keyOf({ record }: Point): string {
  return [canonicalProblem(record), record.op, record.epilogue ?? ""].join("|");
}

function labelOf({ label, record: { op } }: Point): string {
  return op === "gemm" ? label : `${label} ${op}`;
}

function checkedCases(points: readonly Point[]): Map<string, SpeedAndError> {
  const fastest = new Map<string, SpeedAndError>();
  for (const point of points) {
    const [key, gflops, error] = [keyOf(point), point.gflops!, errorOf(point)];
    if (error !== null && gflops > (fastest.get(key)?.gflops ?? 0)) {
      fastest.set(key, { gflops, error });
    }
  }
  return fastest;
}

function usualOf(cases: readonly SpeedAndError[]): SpeedAndError {
  return {
    gflops: geometricMean(cases.map(({ gflops }) => gflops))!,
    error: median(cases.map(({ error }) => error)),
  };
}

/** Which cases a table of precisions is of. */
export function precisionNote({ labels, shared, others, unchecked }: Precisions): string {
  const cases = labels.size === 1 ? "the one case" : `the ${labels.size} cases`;
  return [
    shared
      ? `Over ${cases} that every series has${others > 0 ? `, ${others} more left out` : ""}.`
      : "No case is common to all series: each shows its own cases.",
    ...(unchecked.length === 0
      ? []
      : [`Not shown, their records have no errors: ${unchecked.join(", ")}.`]),
  ].join(" ");
}
