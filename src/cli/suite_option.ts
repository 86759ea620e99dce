import { OWN_SUITES, suiteSubject } from "../bench/own_suites.ts";
import { parseSuite, type SuiteProblem } from "../bench/suite.ts";
import { readSuite } from "../bench/suite_files.ts";
import { InputTypeError } from "../errors.ts";
import { parseGemmSuite } from "../problem/gemm_suite.ts";
import { textTable } from "../report/table.ts";
import { printer, reporter } from "./output.ts";

/** What `--suite` says. */
export const SUITE_HELP =
  "descriptors: a file as benchdnn's, or a name of bench --list-suites; may be given several times";

/** What a command's options say of how problems are run; what is given there is not the suite's to say. */
export interface GivenRun {
  readonly op: boolean;
  readonly dtype: boolean;
  readonly layout: boolean;
}

/** What suites hold. */
export interface ReadSuites {
  readonly problems: readonly SuiteProblem[];
  /** Paths of the files that were read. */
  readonly files: readonly string[];
  /** What of them is ignored, in a line; empty where nothing is. */
  readonly ignored: string;
}

/** Reads the suites that `--suite` names. */
export function readSuites(paths: readonly string[], given: GivenRun): ReadSuites {
  const files: string[] = [];
  const skips: string[] = [];
  const hooks = {
    onFile: (file: string) => void files.push(file),
    onSkip: (what: string) => void skips.push(what),
  };
  const all = paths.flatMap((path) => readSuite(path, hooks))
    .map((problem) => withoutGiven(problem, given));
  const problems = all.filter(({ run }) => run?.types?.length !== 0);
  return { problems, files, ignored: ignoredLine(skips, all.length - problems.length) };
}

/** A problem with what its suite says and the command line does not. */
function withoutGiven(problem: SuiteProblem, { op, dtype, layout }: GivenRun): SuiteProblem {
  const { run, ...conv } = problem;
  if (run === undefined) return problem;
  const { ops, types, layouts } = run;
  return {
    ...conv,
    run: {
      ...(op ? {} : { ops }),
      ...(dtype ? {} : { types }),
      ...(layout ? {} : { layouts }),
    },
  };
}

/** What of suites is left aside, counted. */
function ignoredLine(skips: readonly string[], leftOut: number): string {
  const times = [...Map.groupBy(skips, (what) => what)]
    .map(([what, { length }]) => length === 1 ? what : `${what} (${length} times)`);
  return [
    ...(times.length === 0 ? [] : [`ignored in suites: ${times.join(", ")}`]),
    ...(leftOut === 0 ? [] : [
      `${leftOut} ${leftOut === 1 ? "problem" : "problems"} of unsupported types left out`,
    ]),
  ].join("; ");
}

/** Says {@linkcode ReadSuites.ignored} on stderr. */
export function noteIgnored({ ignored }: Pick<ReadSuites, "ignored">): void {
  if (ignored !== "") reporter("stderr").message(`wgconv: ${ignored}`);
}

/**
 * Refuses files and suites where descriptors stand.
 *
 * @throws {TypeError} that says what reads them.
 */
export function refuseFiles(doing: string, words: readonly string[]): void {
  for (const word of words) {
    if (/\.np[yz](:|$)/i.test(word)) {
      throw new InputTypeError(
        `${doing}: ${word} is a tensor, conv takes it as --input ${word}; ` +
          "here a descriptor such as mb1ic3ih32oc8kh3 says the sizes",
      );
    }
    const own = OWN_SUITES.some(({ name }) => name === word);
    if (own || /[/\\]|\.[a-z]+$/i.test(word)) {
      const kind = own ? "suite" : "file";
      throw new InputTypeError(`${doing}: ${word} is a ${kind}, did you mean --suite ${word}?`);
    }
  }
}

/** Prints the program's own suites: a line each, or JSON. */
export function printSuites(json: boolean): void {
  const suites = OWN_SUITES.map((suite) => {
    const { name, of, text } = suite;
    const products = of === "products";
    return {
      name,
      command: products ? "gemm" : "bench",
      problems: (products ? parseGemmSuite : parseSuite)(text, name).length,
      about: suiteSubject(suite),
    };
  });
  const out = printer("stdout");
  if (json) return out.line(JSON.stringify(suites));
  const rows = suites.map(({ name, command, problems, about }) => {
    return [name, command, `${problems}`, about];
  });
  const columns = [
    { title: "suite" },
    { title: "command" },
    { title: "problems", align: "right" as const },
    { title: "what" },
  ];
  for (const line of textTable(columns, rows).split("\n")) out.line(line.trimEnd());
}
