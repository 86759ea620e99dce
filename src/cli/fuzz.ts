/** `wgconv verify --run` and `--worker`: kernels of others are fuzzed. */
import type { CommandUnknownOpts } from "#cli-types";
import { quoted } from "../bench/failures.ts";
import { EXIT } from "../errors.ts";
import { writeText } from "../npy/atomic_write.ts";
import { counted } from "../report/format.ts";
import type { CaseRecord } from "../report/record.ts";
import { type JUnitCase, junitXml } from "../report/junit.ts";
import { printDescriptor } from "../problem/descriptor.ts";
import { printGemm } from "../problem/gemm_suite.ts";
import { type ForeignKernel, killChildren } from "../verify/worker.ts";
import { type FuzzCase, isBad, runCase, shrink } from "../verify/fuzz.ts";
import { subjectOf } from "../verify/problems.ts";
import { caseProgress, onInterrupt, reporter, terminalColumns, verdictPainter } from "./output.ts";
import { commandWrites } from "./failure.ts";
import { expectCases, type FuzzOptions } from "./fuzz_options.ts";
import { ownProgram, programOf } from "./fuzz_program.ts";
import { proveOutputs } from "./outputs.ts";
import { sayFailedCase } from "./print_case.ts";
import { openRecords } from "./record_stream.ts";
import { caseRows, endEmptyPart, shardOf } from "./table_options.ts";
import type { ClaimOptions } from "./verify_options.ts";
import { refuseTogether } from "./refuse.ts";
import { printable } from "../printable.ts";
import { CPU_DEVICE, environmentRecord } from "../report/environment.ts";
import { makeTemporary } from "../temporary.ts";

/** Failures for which a smaller problem is looked for, with so many tries in so many milliseconds each. */
const SHRUNK = { failures: 3, tries: 40, ms: 20_000 };

/** What became of a case. */
interface Fuzzed {
  readonly one: FuzzCase;
  readonly record: CaseRecord;
  readonly seconds: number;
  /** A smaller problem that fails as well. */
  readonly smaller?: FuzzCase | undefined;
}

type Options = FuzzOptions & ClaimOptions;

/** Fuzzes the program that the options name. */
export async function fuzz(
  made: { readonly cases: readonly FuzzCase[]; readonly files: readonly string[] },
  options: Options,
  command: CommandUnknownOpts,
): Promise<void> {
  expectCases(made.cases);
  const { files } = made;
  const cases = shardOf(made.cases, options.shard);
  const { junit, force, json, seed, jobs } = options;
  refuseTogether("Cannot verify", { json, jsonl: options.jsonl });
  const jsonl = json ? "-" : options.jsonl;
  await proveOutputs([
    { option: "--junit", path: junit, kind: "file", endings: [".xml"] },
    { option: "--jsonl", path: jsonl, kind: "records" },
  ], { inputs: files, force });
  const roles = new Set(
    cases.flatMap((one) => subjectOf(one.asked, one.dtype).operands)
      .map(({ role }) => role === "output" ? "grad_output" : role),
  );
  using program = options.kernel === undefined
    ? await programOf(options, [...roles, "output"])
    : await ownProgram(options.kernel, options);
  const provider = command.getOptionValueSource("provider") === "cli"
    ? options.provider
    : program.name;
  const writes = commandWrites();
  using records = openRecords(jsonl, writes, { force });
  records.write(environmentRecord(program.device ?? CPU_DEVICE, seed));
  const stream = jsonl === "-" ? "stderr" : "stdout";
  const out = reporter(stream);
  const paint = verdictPainter(stream);
  const shown = caseProgress();
  const rows = fuzzRows(cases, out, stream);
  const folder = await makeTemporary("folder", { prefix: "wgconv-" });
  const results: Fuzzed[] = [];
  using _interrupt = onInterrupt(() =>
    `stopped after ${results.length} of ${cases.length} cases; --random runs fewer`
  );
  using _signals = onSignals(folder);
  try {
    const judging = { arithmetic: options.arithmetic, provider };
    const work = fuzzer(folder, judging);
    for await (const result of inOrder(cases, { jobs, open: program.open, work })) {
      results.push(result);
      shown.done();
      records.write(result.record);
      rows.add(result.record);
      sayFailedCase(result.record);
      repeatLines(result, options).forEach((line) => out.painted(paint(printable(line))));
      if (results.length < cases.length) {
        shown.begin(results.length + 1, cases.length, cases[results.length]!.data);
      }
    }
  } finally {
    shown.done();
    killChildren();
    await Deno.remove(folder, { recursive: true }).catch(() => {});
  }
  if (junit !== undefined) {
    const xml = junitXml("wgconv verify", results.map((one) => junitCase(one, options)));
    await writes.attempt(() => writeText(junit, xml));
  }
  out.line(summary(results, provider));
  endEmptyPart(options.shard, results.length);
  writes.conclude(exitCode(results));
}

function fuzzRows(
  cases: readonly FuzzCase[],
  out: ReturnType<typeof reporter>,
  stream: "stdout" | "stderr",
) {
  const coming = cases.map((one) => {
    const { traits } = subjectOf(one.asked, one.dtype);
    return {
      ...traits,
      out_dtype: undefined,
      accumulate: undefined,
      cache: undefined,
      algorithm: "other",
    };
  });
  const timed = ["time"] as const;
  const columns = [
    "problem",
    "op",
    "dtype",
    "layout",
    "data",
    ...timed,
    "l2",
    "bound",
    "verdict",
  ] as const;
  return caseRows(coming, { columns }, out, {
    paint: verdictPainter(stream),
    room: terminalColumns(stream),
  });
}

/** Runs a case, and looks for a smaller one where it fails. */
function fuzzer(folder: string, judging: Parameters<typeof runCase>[3]) {
  let left = SHRUNK.failures;
  return async (one: FuzzCase, kernel: ForeignKernel): Promise<Fuzzed> => {
    const start = performance.now();
    const record = await runCase(kernel, one, folder, judging);
    const seconds = (performance.now() - start) / 1000;
    if (!isBad(record) || left-- <= 0) return { one, record, seconds };
    const end = performance.now() + SHRUNK.ms;
    const smaller = await shrink(
      one,
      async (other) =>
        performance.now() < end && isBad(await runCase(kernel, other, folder, judging)),
      SHRUNK.tries,
    );
    return { one, record, seconds, ...(smaller === one ? {} : { smaller }) };
  };
}

/** Does work on several kernels at once, and gives what comes of it in the order of the cases. */
async function* inOrder<T, R>(
  cases: readonly T[],
  { jobs, open, work }: {
    readonly jobs: number;
    readonly open: () => ForeignKernel;
    readonly work: (one: T, kernel: ForeignKernel) => Promise<R>;
  },
): AsyncGenerator<R, void, undefined> {
  const results = cases.map(() => Promise.withResolvers<R>());
  results.forEach(({ promise }) => promise.catch(() => {}));
  let next = 0;
  const lane = async () => {
    const kernel = open();
    try {
      for (let index; (index = next++) < cases.length;) {
        try {
          results[index]!.resolve(await work(cases[index]!, kernel));
        } catch (error) {
          // Nothing after it is asked for.
          next = cases.length;
          results[index]!.reject(error);
        }
      }
    } finally {
      await kernel.close();
    }
  };
  const lanes = Promise.all(Array.from({ length: Math.min(jobs, cases.length) }, lane));
  try {
    for (const { promise } of results) yield await promise;
  } finally {
    next = cases.length;
    await lanes;
  }
}

/** How a case is run again. */
function repeatLine(one: FuzzCase, options: Options): string {
  const { run, worker, kernel, shell, arithmetic } = options;
  // What a kernel's file says needs no repeating.
  const free = kernel === undefined;
  const { asked, dtype, data, special, seed } = one;
  const conv = "conv" in asked ? asked.conv : undefined;
  const gemm = "gemm" in asked ? asked.gemm : undefined;
  const words = {
    run,
    worker,
    kernel,
    ...(conv && { problem: printDescriptor(conv.problem) }),
    ...(conv && free && { op: conv.problem.op, layout: conv.layout }),
    ...(conv?.epilogue?.bias && { ranges: "bias=1" }),
    ...(gemm && { size: printGemm(gemm) }),
    ...(gemm && gemm.alpha !== 1 && { alpha: gemm.alpha }),
    ...(gemm && gemm.beta !== 0 && { c: true, beta: gemm.beta }),
    ...(gemm && gemm.bias !== "none" && { bias: true, "bias-side": gemm.bias }),
    ...(gemm?.residual && { residual: true }),
    ...(free && { activation: conv?.epilogue?.activation ?? gemm?.activation, dtype }),
    data,
    seed,
    ...(special.length > 0 && { special: special.join() }),
    ...(arithmetic !== "auto" && { arithmetic }),
    ...(shell && { shell }),
  };
  const said = Object.entries(words).flatMap(([name, value]) =>
    value === undefined || value === "none"
      ? []
      : value === true
      ? [`--${name}`]
      : [`--${name} ${quoted(`${value}`)}`]
  );
  return `wgconv verify ${gemm ? "gemm " : ""}${said.join(" ")}`;
}

function repeatLines({ one, record, smaller }: Fuzzed, options: Options): string[] {
  if (!isBad(record)) return [];
  return [
    ...(record.diagnosis === undefined ? [] : [`  ${record.diagnosis}`]),
    `  repeat: ${repeatLine(one, options)}`,
    ...(smaller === undefined ? [] : [`  smaller: ${repeatLine(smaller, options)}`]),
  ];
}

function junitCase(result: Fuzzed, options: Options): JUnitCase {
  const { record, seconds } = result;
  const { op, layout, dtype, problem, fill, seed, verdict, message = "not said why" } = record;
  const named = {
    group: `wgconv.verify.${op}`,
    name: [layout, dtype, problem, fill, seed].join(" "),
    seconds,
  };
  const text = repeatLines(result, options).join("\n");
  if (isBad(record)) {
    const kind = verdict === "error" ? "error" : "failure";
    return { ...named, problem: { kind, message, text } };
  }
  return verdict === "none" ? { ...named, problem: { kind: "skipped", message } } : named;
}

function summary(results: readonly Fuzzed[], provider: string): string {
  const words = { pass: "passed", fail: "failed", error: "gave no result", none: "not checked" };
  const counts = Object.entries(words).flatMap(([verdict, said]) => {
    const count = results.filter(({ record }) => record.verdict === verdict).length;
    return count === 0 ? [] : [`${count} ${said}`];
  });
  return `${counted(results.length, "case")} of ${provider}: ${counts.join(", ")}`;
}

/** A run in which nothing passed is no success. */
function exitCode(results: readonly Fuzzed[]): number {
  if (results.some(({ record }) => isBad(record))) return EXIT.accuracy;
  return results.some(({ record }) => record.verdict === "pass") ? EXIT.ok : EXIT.usage;
}

/** Leaves no program and no file where a signal ends the command. */
function onSignals(folder: string): Disposable {
  const codes = Deno.build.os === "windows"
    ? { SIGINT: undefined }
    : { SIGHUP: 129, SIGINT: undefined, SIGTERM: 143 };
  const listeners = Object.entries(codes).map(([name, code]) => {
    const signal = name as Deno.Signal;
    const listener = () => {
      killChildren();
      try {
        Deno.removeSync(folder, { recursive: true });
      } catch {
        // It is gone.
      }
      // Another listener says how to go on after Ctrl-C.
      if (code !== undefined) Deno.exit(code);
    };
    Deno.addSignalListener(signal, listener);
    return () => Deno.removeSignalListener(signal, listener);
  });
  return { [Symbol.dispose]: () => listeners.forEach((remove) => remove()) };
}
