/**
 * Programs that plan and compile in several workers and time in one after the other. A worker is the same program with `--shard` and
 * `--until`; it appends a line of JSON a case to `part1.jsonl` and so on in a folder.
 */
import { join } from "node:path";
import { oneOf, someOf, wholeNumber } from "../src/cli/values.ts";
import { readProblems } from "../src/bench/suite_files.ts";
import { BACKENDS } from "../src/gpu/provider.ts";
import { type ConvProblem, OPERATIONS } from "../src/problem/conv_problem.ts";
import { type Layout, LAYOUTS } from "../src/tensor/layout.ts";
import { RandomWords } from "../src/tensor/random.ts";

const text = { type: "string" } as const;

/** Options of such a program, for `parseArgs()`. */
export const WORKER_OPTIONS = {
  ...{ out: text, summary: text, layers: text, shard: text, until: text },
  suite: { ...text, default: "networks,more_networks" },
  op: { ...text, default: OPERATIONS.join() },
};

/** Which cases are asked for. */
export interface CaseOptions {
  readonly op: string;
  readonly layout: string;
  readonly layers?: string | undefined;
}

/** Workers that do not end by themselves are ended so long after the time is over. */
const GRACE_MS = 10_000;

/** Runs this program as workers, a part of the cases each. */
export async function runWorkers(
  folder: string,
  { workers, seconds }: { readonly workers: string; readonly seconds: string },
): Promise<void> {
  Deno.mkdirSync(folder, { recursive: true });
  const count = wholeNumber(1)(workers);
  const until = Date.now() + 1000 * wholeNumber(1)(seconds);
  const children = Array.from({ length: count }, (_, index) =>
    new Deno.Command(Deno.execPath(), {
      args: [
        ...["run", "-A", "--no-check", Deno.mainModule, ...Deno.args],
        ...[`--shard=${index + 1}/${count}`, `--until=${until}`],
      ],
      stdout: "inherit",
      stderr: "inherit",
    }).spawn());
  const end = setTimeout(
    () => children.forEach((child) => child.kill("SIGKILL")),
    until + GRACE_MS - Date.now(),
  );
  const ended = await Promise.all(children.map(({ status }) => status));
  clearTimeout(end);
  const failed = ended.filter(({ success }) => !success).length;
  if (failed > 0) console.error(`${failed} workers failed, or were ended`);
}

/** A backend by its name. */
export const backendOf = oneOf(BACKENDS);

/** The problems of suites by their names or files. */
export function problemsOf(suites: string): ConvProblem[] {
  return suites.split(",").flatMap(readProblems);
}

/** Problems by operation and layout, in an order that is drawn: any part of them stands for the others. */
export function drawnCases<Case>(
  problems: readonly ConvProblem[],
  { op, layout, layers }: CaseOptions,
  caseOf: (problem: ConvProblem, layout: Layout) => Case,
  isAsked: (one: Case) => boolean = () => true,
): Case[] {
  const some = problems.slice(0, layers === undefined ? undefined : wholeNumber(1)(layers));
  const cases = some.flatMap((problem) =>
    someOf(OPERATIONS)(op).flatMap((op) =>
      someOf(LAYOUTS)(layout).map((layout) => caseOf({ ...problem, op }, layout))
    )
  ).filter(isAsked);
  const words = new Uint32Array(cases.length);
  new RandomWords(1).fill(words);
  return [...cases.keys()].sort((a, b) => words[a]! - words[b]!).map((at) => cases[at]!);
}

/** Appends a worker's line. */
export function appendLine(folder: string, worker: number, line: unknown): void {
  Deno.writeTextFileSync(join(folder, `part${worker}.jsonl`), `${JSON.stringify(line)}\n`, {
    append: true,
  });
}

/** The lines of all workers. */
export function readLines<Line>(folder: string): Line[] {
  return [...Deno.readDirSync(folder)].filter(({ name }) => /^part\d+\.jsonl$/.test(name))
    .flatMap(({ name }) => Deno.readTextFileSync(join(folder, name)).trim().split("\n"))
    .filter(Boolean).map((line): Line => JSON.parse(line));
}
