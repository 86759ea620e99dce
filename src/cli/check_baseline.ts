import { type Baseline, baselineDiff, parseBaseline, printBaseline } from "../bench/baseline.ts";
import { type CheckPlan, type CheckResult, updatedBaseline } from "../bench/check_suite.ts";
import { InputTypeError } from "../errors.ts";
import { readText } from "../read_text.ts";
import { defaultFill } from "../run/operands.ts";
import { VERSION } from "../version.ts";
import baselineText from "../../fixtures/baseline.json" with { type: "text" };
import type { FillKind } from "../tensor/fill.ts";
import { mergeFile } from "./merge_file.ts";

interface BaselineOptions {
  readonly baseline?: string | undefined;
  readonly suite?: readonly string[] | undefined;
  readonly update?: boolean | undefined;
  readonly fill?: FillKind | undefined;
  readonly seed: number;
  readonly force?: boolean | undefined;
}

/** The baseline to hold results against: the one that is named, or the one of the suite that is built in. */
export function readBaseline(options: BaselineOptions): Baseline | undefined {
  const { baseline: path, suite, update, fill = defaultFill("f32"), seed } = options;
  if (update && (path === undefined || path === "none")) {
    throw new InputTypeError("Cannot update the baseline: --baseline says which file");
  }
  if (path === "none") return undefined;
  if (path === undefined) {
    const own = suite === undefined && fill === "uniform01" && seed === 1;
    return own ? parseBaseline(baselineText, "baseline.json") : undefined;
  }
  let text: string;
  try {
    text = readText(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    if (update) return undefined;
    error.message += ", --update writes it";
    throw error;
  }
  return update && text === "" ? undefined : baselineOf(text, path, options);
}

/**
 * A baseline that the data of a check can be held against, or that may be updated from it.
 *
 * @throws {TypeError} where it is of other data.
 */
function baselineOf(text: string, path: string, options: BaselineOptions): Baseline | undefined {
  const { update, fill = defaultFill("f32"), seed, force } = options;
  const baseline = parseBaseline(text, path);
  if (baseline.fill === fill && baseline.seed === seed) return baseline;
  if (update && force) return undefined;
  throw new InputTypeError(
    `Cannot check: the baseline ${path} was made with ${baseline.fill} data and seed ${baseline.seed}, ` +
      `not with ${fill} data and seed ${seed}${update ? ", --force replaces it" : ""}`,
  );
}

/** Merges what was found into the baseline as it is now: another check may have updated it since. */
export async function updateBaseline(
  options: BaselineOptions,
  plan: CheckPlan,
  results: readonly CheckResult[],
  adapter: string,
  line: (text: string) => void,
): Promise<void> {
  const path = options.baseline!;
  let said: string[] = [];
  await mergeFile(path, (text) => {
    const before = text === "" ? undefined : baselineOf(text, path, options);
    const after = updatedBaseline(plan, before, results, { version: VERSION, adapter });
    const changes = baselineDiff(before, after);
    const count = Object.keys(after.cases).length;
    said = [...changes, `${path}: ${count} cases, ${changes.length} changed`];
    return printBaseline(after);
  });
  said.forEach(line);
}
