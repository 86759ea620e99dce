import * as v from "valibot";
import { InputSyntaxError } from "../errors.ts";
import { parseJson, schemaFault } from "../json.ts";
import type { AccuracyRecord, CaseRecord } from "../report/record.ts";
import { finiteNumber } from "../report/record_schema.ts";

const figure = v.pipe(finiteNumber, v.minValue(0));

/** Fields that are not known here stay, for those who know them. */
const BaselineCaseSchema = v.looseObject({
  max_bound_ratio: figure,
  rel_l2: figure,
  mare: v.nullable(figure),
  checked: figure,
});

const BaselineSchema = v.looseObject({
  schema: v.literal(1),
  kind: v.literal("baseline"),
  version: v.string(),
  adapter: v.string(),
  fill: v.string(),
  seed: finiteNumber,
  cases: v.record(v.string(), BaselineCaseSchema),
});

/** Figures of one case that later ones are held against. */
export type BaselineCase = v.InferOutput<typeof BaselineCaseSchema>;

/** The accuracy that cases had, by {@linkcode baselineKey}. */
export type Baseline = v.InferOutput<typeof BaselineSchema>;

/**
 * Reads a baseline.
 *
 * @throws {SyntaxError} with file and line, where the text is no JSON or no baseline.
 */
export function parseBaseline(text: string, source: string): Baseline {
  const doing = `Cannot read the baseline: ${source}`;
  const value = parseJson(
    text,
    (what, line) => new InputSyntaxError(`${doing}:${line}: the line ${what}`),
  );
  const result = v.safeParse(BaselineSchema, value);
  if (result.success) return result.output;
  const issue = result.issues[0];
  // The innermost key that the text has tells the line.
  const keys = (issue.path ?? []).map(({ key }) => JSON.stringify(key));
  const offset = keys.reduce((from, key) => Math.max(from, text.indexOf(key, from)), 0);
  const line = text.slice(0, offset).split("\n").length;
  const { field, what } = schemaFault(issue, "the file");
  throw new InputSyntaxError(
    field === "schema" && issue.received !== "undefined"
      ? `${doing}:${line}: it is of version ${issue.received}, this wgconv reads 1`
      : `${doing}:${line}: ${what}`,
  );
}

/** A baseline as text: a case a line in the order of keys, so that changes show. */
export function printBaseline({ cases, ...head }: Baseline): string {
  const lines = Object.keys(cases).sort()
    .map((key) => `    ${JSON.stringify(key)}: ${JSON.stringify(cases[key])}`);
  const open = Object.entries(head).map(([key, value]) => `  "${key}": ${JSON.stringify(value)},`);
  return ["{", ...open, `  "cases": {`, lines.join(",\n"), "  }", "}", ""].join("\n");
}

/** What a case is called in a baseline: as it was asked for. */
export function baselineKey(record: CaseRecord): string {
  const { op, layout, dtype, requested, algorithm, policy, tile, problem } = record;
  return [op, layout, dtype, requested ?? algorithm, policy, tile, problem]
    .filter((part) => part !== undefined).join(" ");
}

/** What a baseline keeps of a case: four digits. */
export function baselineCase(accuracy: AccuracyRecord): BaselineCase {
  const short = (value: number) => Number(value.toPrecision(4));
  return {
    max_bound_ratio: short(accuracy.max_bound_ratio),
    rel_l2: short(accuracy.rel_l2),
    mare: accuracy.mare === null ? null : short(accuracy.mare),
    checked: accuracy.checked,
  };
}

/**
 * Drivers round differently: some fuse a multiplication with an addition, some do not. That changes the norm of all
 * errors by less than this, the largest of them by somewhat more.
 */
const NORM_FACTOR = 1.5;
const LARGEST_FACTOR = 2;
/** A norm or a maximum of few errors says little: the factors grow by this over the square root of their number. */
const FEW_ERRORS = 4;
/** Below these an error is a last place of the result: unit roundoff, and roundings of a product. */
const NOISE_L2 = 2 ** -24;
const NOISE_BOUND = 2;

/**
 * Why a case is less exact than it was, as clauses; none where it is not. A figure counts where it is both
 * beyond its factor and beyond noise. MARE is no such figure: single references near 0 carry it.
 */
export function regressions(
  now: Pick<BaselineCase, "max_bound_ratio" | "rel_l2" | "checked">,
  was: BaselineCase,
): string[] {
  const few = 1 + FEW_ERRORS / Math.sqrt(Math.max(1, Math.min(now.checked, was.checked)));
  const rules = [
    ["relative L2 error", now.rel_l2, was.rel_l2, NORM_FACTOR * few, NOISE_L2],
    ["bound ratio", now.max_bound_ratio, was.max_bound_ratio, LARGEST_FACTOR * few, NOISE_BOUND],
  ] as const;
  const digits = (value: number) => `${Number(value.toPrecision(3))}`;
  return rules.flatMap(([what, is, before, factor, noise]) => {
    const limit = Math.max(noise, before * factor);
    if (is <= limit) return [];
    return [
      `${what} ${digits(is)} was ${digits(before)} in the baseline, ${digits(limit)} allowed`,
    ];
  });
}

/** Lines that tell what changed from one baseline to the next. */
export function baselineDiff(before: Baseline | undefined, after: Baseline): string[] {
  const old = before?.cases ?? {};
  const keys = [...new Set([...Object.keys(old), ...Object.keys(after.cases)])].sort();
  return keys.flatMap((key) => {
    const [was, is] = [old[key], after.cases[key]];
    if (is === undefined) return [`- ${key}`];
    if (was === undefined) return [`+ ${key} ${JSON.stringify(is)}`];
    const changed = (["max_bound_ratio", "rel_l2", "mare", "checked"] as const)
      .filter((name) => was[name] !== is[name])
      .map((name) => `${name} ${was[name]} -> ${is[name]}`);
    return changed.length === 0 ? [] : [`~ ${key} ${changed.join(", ")}`];
  });
}
