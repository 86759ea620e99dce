import { OWN_SUITES, suiteSubject } from "../bench/own_suites.ts";
import { parseSuite, type SuiteProblem } from "../bench/suite.ts";
import { readSuite } from "../bench/suite_files.ts";
import type { CommandUnknownOpts } from "#cli-types";
import { InputTypeError } from "../errors.ts";
import { parseGemmSuite } from "../problem/gemm_suite.ts";
import { textTable } from "../report/table.ts";
import { printer, reporter } from "./output.ts";

export const SUITE_HELP =
  "file of problems in benchdnn's grammar, or a built-in suite (bench --list-suites); repeatable";

export interface ReadSuites {
  readonly problems: readonly SuiteProblem[];
  readonly files: readonly string[];
  /** A line that counts what has no effect here; empty where all has. */
  readonly ignored: string;
}

/**
 * Reads the suites that `--suite` names.
 *
 * @param command Its --op, --dtype (or --out-dtype) and --layout take the place of the suites' where the user gives them.
 */
export function readSuites(
  paths: readonly string[] | undefined,
  command: Pick<CommandUnknownOpts, "getOptionValueSource">,
): ReadSuites {
  const given = (...names: readonly string[]) =>
    names.some((name) => command.getOptionValueSource(name) === "cli");
  const [op, dtype, layout] = [given("op"), given("dtype", "outDtype"), given("layout")];
  const files: string[] = [];
  const skips: string[] = [];
  const hooks = {
    onFile: (file: string) => void files.push(file),
    onSkip: (what: string) => void skips.push(what),
  };
  const all: SuiteProblem[] = (paths ?? []).flatMap((path) => readSuite(path, hooks))
    .map(({ run, ...problem }) =>
      run === undefined ? problem : {
        ...problem,
        run: {
          ...(op ? {} : { ops: run.ops }),
          ...(dtype ? {} : { types: run.types }),
          ...(layout ? {} : { layouts: run.layouts }),
        },
      }
    );
  const problems = all.filter(({ run }) => run?.types?.length !== 0);
  return { problems, files, ignored: ignoredLine(skips, all.length - problems.length) };
}

/** {@linkcode ReadSuites.ignored} as the end of a sentence. */
export function ignoredClause({ ignored }: Pick<ReadSuites, "ignored">): string {
  return ignored === "" ? "" : `; ${ignored}`;
}

/** Counts what suites say without an effect here. */
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

/** Prints {@linkcode ReadSuites.ignored} to stderr. */
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

/** Prints the built-in suites: a line each, or JSON. */
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
  const rows = suites.map(({ name, command, problems, about }) => [
    name,
    command,
    `${problems}`,
    about,
  ]);
  const columns = [
    { title: "suite" },
    { title: "command" },
    { title: "problems", align: "right" as const },
    { title: "what" },
  ];
  for (const line of textTable(columns, rows).split("\n")) out.line(line.trimEnd());
}
