import { runGemmSuite } from "../bench/run_gemm_suite.ts";
import { gemmSetup } from "../run/gemm_case.ts";
import { gemmFeatures } from "../run/gemm_operands.ts";
import { EXIT, InputTypeError } from "../errors.ts";
import { writeNpy } from "../npy/mod.ts";
import { gemmElement, type GemmProblem } from "../problem/gemm_problem.ts";
import { parseGemmSuite } from "../problem/gemm_suite.ts";
import { caseReport } from "../report/case_report.ts";
import { tensor } from "../tensor/tensor.ts";
import { commandWrites } from "./failure.ts";
import { choiceOf, fillOf, multiplyOnCpu, multiplyOnGpu } from "./gemm_compute.ts";
import { searchPolicies } from "./gemm_search.ts";
import { type GemmOptions, gemmOptions } from "./gemm_options.ts";
import { gemmFiles, openGemmSubject, withOptions } from "./gemm_subject.ts";
import { printer } from "./output.ts";
import { proveOutputs } from "./outputs.ts";
import { openRecords } from "./record_stream.ts";
import { readText } from "../read_text.ts";
import { reportSuite } from "./records.ts";

/** `wgconv gemm`: one matrix product, or a suite of them, checked and timed. */
export function gemmCommand() {
  return gemmOptions().action(async (options) => {
    if (options.suite !== undefined) return await runSuites(options);
    if (options.search) refuseBesideSearch(options);
    else if (options.jsonl !== undefined) {
      throw new InputTypeError(
        "Cannot multiply: --jsonl goes with --suite or --search, --json prints one",
      );
    }
    const writes = commandWrites();
    await proveOutputs([
      { option: "--output", path: options.output, kind: "npy" },
      { option: "--jsonl", path: options.jsonl, kind: "records" },
    ], { inputs: gemmFiles(options), force: options.force });
    using subject = await openGemmSubject(options);
    if (options.search) return await searchPolicies(subject, options, writes);
    const compute = options.device === "cpu" ? multiplyOnCpu : multiplyOnGpu;
    const { record, result } = await compute(subject, options);
    const out = printer(options.output === "-" ? "stderr" : "stdout");
    out.line(options.json ? JSON.stringify(record) : caseReport(record));
    const { output } = options;
    if (output !== undefined) {
      const dtype = gemmElement(options.dtype, "output");
      await writes.attempt(() => writeNpy(output, tensor(dtype, subject.shape, result)));
    }
    writes.conclude(record.verdict === "fail" ? EXIT.accuracy : EXIT.ok);
  });
}

/** @throws {TypeError} for options that a search would leave aside. */
function refuseBesideSearch({ output, policy, splits, balance, device }: GemmOptions): void {
  const extra = Object.entries({
    output: output !== undefined,
    policy: policy !== "auto",
    splits: splits !== undefined,
    balance: balance !== "auto",
  }).filter(([, given]) => given);
  if (extra.length > 0) {
    const names = extra.map(([name]) => `--${name}`).join(", ");
    throw new InputTypeError(
      `Cannot search: it tries every cut and keeps no result, ${names} must go`,
    );
  }
  if (device === "cpu") throw new InputTypeError("Cannot search: --search runs on the GPU");
}

/** Times and checks the products of suite files. */
async function runSuites(options: GemmOptions): Promise<void> {
  const { suite = [], output, size, a, b, device, search } = options;
  const file = (path: string | true | undefined) => typeof path === "string";
  const [c, bias, residual] = [file(options.c), file(options.bias), file(options.residual)];
  const extra = Object.entries({ a, b, c, bias, residual, size, output, search })
    .filter(([, value]) => value);
  if (extra.length > 0) {
    const names = extra.map(([name]) => `--${name}`).join(", ");
    throw new InputTypeError(`Cannot bench: --suite says what is multiplied, ${names} must go`);
  }
  if (device === "cpu") throw new InputTypeError("Cannot bench: --suite runs on the GPU");
  const problems: GemmProblem[] = [];
  for (const path of suite) {
    const parsed = parseGemmSuite(readText(path), path);
    problems.push(...parsed.map((problem) => withOptions(problem, options)));
  }
  if (problems.length === 0) throw new InputTypeError("Cannot bench: the suite has no product");
  await proveOutputs([{ option: "--jsonl", path: options.jsonl, kind: "records" }], {
    inputs: suite,
    force: options.force,
  });
  const { dtype, accumulate, check, seed, backend } = options;
  const protocol = { samples: options.runs ?? 15, fillMs: options.fillMs ?? 5 };
  const target = options.json ? "-" : options.jsonl;
  const writes = commandWrites();
  using records = openRecords(target, writes, { force: options.force });
  const coming = problems.map((problem) => gemmSetup(problem, options));
  await reportSuite(
    { records, writes, onStdout: target === "-", seed, coming },
    { backend, features: gemmFeatures(dtype) },
    (open, onCase) =>
      runGemmSuite(
        {
          problems,
          dtype,
          accumulate,
          ...choiceOf(options),
          check,
          fill: fillOf(options),
          seed,
          protocol,
        },
        open,
        onCase,
      ),
  );
}
