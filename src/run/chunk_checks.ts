/** What the checks of a batch's chunks say together. */
import type { AccuracyRecord, ProjectionRecord, Verdict } from "../report/record.ts";
import type { Checked } from "./check.ts";

interface CheckedChunk {
  readonly checked: Checked;
  readonly first: number;
  readonly images: number;
}

/** What is said of a batch that was checked in chunks. */
interface ChunkChecks {
  add(chunk: CheckedChunk): void;
  readonly count: number;
  done(): Omit<Checked, "accuracy"> & { accuracy?: AccuracyRecord } | {
    readonly verdict: Verdict;
  };
}

/** Chunks whose reasons are said; the others are counted. */
const MOST_REASONS = 3;

/**
 * Puts the checks of chunks together, in the order they come.
 *
 * @param total Outputs of the whole result.
 * @param along Whether images are entries of the result's first canonical axis.
 */
export function chunkChecks(total: number, along: boolean): ChunkChecks {
  let accuracy: AccuracyRecord | undefined;
  let projection: ProjectionRecord | undefined;
  let count = 0;
  let failed = 0, passed = 0, unknown = 0;
  const said: string[] = [];
  return {
    add({ checked, first, images }) {
      count++;
      const where = images === 1 ? `image ${first}` : `images ${first} to ${first + images - 1}`;
      accuracy = joinAccuracy(accuracy, placed(checked.accuracy, where, along ? first : 0), total);
      if (checked.projection) projection = joinProjection(projection, checked.projection);
      if (checked.verdict === "fail") failed++;
      if (checked.verdict === "pass") passed++;
      // Outputs that are all NaN are nothing to compare; others have no verdict because no bound is known.
      if (checked.verdict === "none" && checked.accuracy.nan < checked.accuracy.checked) unknown++;
      if (checked.message === undefined) return;
      if (said.length < MOST_REASONS) said.push(`${where}: ${checked.message}`);
      else if (said.length === MOST_REASONS) said.push("and more");
    },
    get count() {
      return count;
    },
    done() {
      if (accuracy === undefined) return { verdict: "none" };
      // Each chunk checks what is added up.
      const checked = Math.min(total, accuracy.checked);
      return {
        accuracy: { ...accuracy, checked },
        ...(projection === undefined ? {} : { projection }),
        verdict: failed > 0 ? "fail" : passed > 0 && unknown === 0 ? "pass" : "none",
        ...(said.length === 0 ? {} : { message: said.join("; ") }),
      };
    },
  };
}

function placed(accuracy: AccuracyRecord, where: string, first: number): AccuracyRecord {
  const { worst, worst_group } = accuracy;
  return {
    ...accuracy,
    worst: worst.map((one) => ({ ...one, index: one.index.with(0, one.index[0]! + first) })),
    worst_group: worst_group === null ? null : `${worst_group} of ${where}`,
  };
}

function joinAccuracy(
  sum: AccuracyRecord | undefined,
  one: AccuracyRecord,
  total: number,
): AccuracyRecord {
  if (sum === undefined) return { ...one, total };
  const nearest = one.of_limit > sum.of_limit || Number.isNaN(one.of_limit) ? one : sum;
  const weigh = (of: AccuracyRecord) => of.checked - of.zero_ref;
  return {
    ...nearest,
    mare: mean(sum.mare, weigh(sum), one.mare, weigh(one)),
    mean_signed: mean(sum.mean_signed, sum.checked, one.mean_signed, one.checked) ?? 0,
    max_rel: most(sum.max_rel, one.max_rel),
    max_ulp: most(sum.max_ulp, one.max_ulp),
    nan: sum.nan + one.nan,
    inf: sum.inf + one.inf,
    mismatched: sum.mismatched + one.mismatched,
    zero_ref: sum.zero_ref + one.zero_ref,
    checked: sum.checked + one.checked,
    total,
  };
}

function joinProjection(
  sum: ProjectionRecord | undefined,
  one: ProjectionRecord,
): ProjectionRecord {
  if (sum === undefined) return one;
  // Whole numbers have no limit but 0.
  const share = ({ max_ratio, limit, patch_rms, patch_limit }: ProjectionRecord) =>
    limit === 0 ? max_ratio : Math.max(max_ratio / limit, patch_rms / patch_limit);
  const add = (a: number | undefined, b: number | undefined) => (a ?? 0) + (b ?? 0);
  return {
    ...(share(one) <= share(sum) ? sum : one),
    places: sum.places + one.places,
    size: Math.max(sum.size, one.size),
    masked: sum.masked + one.masked,
    masked_checked: sum.masked_checked + one.masked_checked,
    ...(one.activated === undefined ? {} : { activated: add(sum.activated, one.activated) }),
    reference_seconds: sum.reference_seconds + one.reference_seconds,
    seconds: sum.seconds + one.seconds,
    read_seconds: add(sum.read_seconds, one.read_seconds),
  };
}

function most(a: number | null, b: number | null): number | null {
  return a === null ? b : b === null ? a : Math.max(a, b);
}

function mean(a: number | null, of: number, b: number | null, others: number): number | null {
  if (a === null || of === 0) return b;
  if (b === null || others === 0) return a;
  return (a * of + b * others) / (of + others);
}
