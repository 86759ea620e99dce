import type { Command } from "#cli-types";
import { CLAIM_HELP } from "../verify/claims.ts";
import { addFuzzOptions, FUZZ_NOTES } from "./fuzz_options.ts";
import { GROUPS, OPTION } from "./shared_options.ts";
import { matrixCommand } from "./gemm_options.ts";
import { operandCommand } from "./problem_options.ts";

const EXAMPLES = `
The result in --output is compared in FP64, and its errors with those that the arithmetic typically makes.
  f32       f32 sums. f32-any: Winograd up to F(6x6,3x3), too
  tf32      operands rounded or cut off to TF32, f32 sums
  f16-f32   operands in f16, f32 sums; so bf16-f32. The file's type says how results are stored
  f16       f16 results, sums in f32 or f16; bf16: bf16 results, f32 sums. f16-f32-f16 says all three
  auto      finds the finest arithmetic that explains the result, and says which it is
Files are as wgconv conv takes them, their shapes, layouts and types; wgconv verify gemm takes products. Only
--kernel uses a GPU.
${FUZZ_NOTES}

Examples:
  wgconv verify --input x.npy --filter w.npy --padding 1 --output y.npy --arithmetic f32
  wgconv verify --op bwd-filter --input x.npz:x --grad-output x.npz:dy --output x.npz:dw --arithmetic tf32
  wgconv verify gemm --a a.npy --b b.npy --output y.npy --arithmetic bf16
  wgconv verify --manifest dump/manifest.json
  wgconv verify --worker 'python3 numpy_worker.py' --random 300 --junit verify.xml
  wgconv verify --run './conv {input} {filter} {output} {problem}' --ranges 'axes=2 groups=1'

Exit 1: the result failed, or nothing could be said of it. 2: bad input, or no problem is supported.`;

const GEMM_EXAMPLES = `
Examples:
  wgconv verify gemm --a a.npy --b b.npy --output y.npy --arithmetic f16-f32
  wgconv verify gemm --a x.npy --b w.npy --transpose nt --bias b.npy --output y.npy`;

/** `wgconv verify` and its options. */
export function verifyOptions() {
  const command = claimOptions(operandCommand("verify"))
    .optionsGroup(GROUPS.files)
    .option("--manifest <file>", "check every layer of a model that wgconv layers --dump wrote")
    .description("Check the accuracy of a result that another program computed.")
    .addHelpText("after", EXAMPLES);
  addFuzzOptions(command);
  return command;
}

/** `wgconv verify gemm` and its options. */
export function verifyGemmOptions() {
  const command = claimOptions(matrixCommand("gemm"))
    .description("Check the accuracy of a matrix product that another program computed.")
    .addHelpText("after", GEMM_EXAMPLES);
  addFuzzOptions(command);
  return command;
}

/** Adds what verifying takes beside operands. */
function claimOptions<
  Args extends unknown[],
  Opts extends Record<string, unknown>,
  Globals extends Record<string, unknown>,
>(
  command: Command<Args, Opts, Globals>,
) {
  return command
    .optionsGroup(GROUPS.common)
    .option("--output <file>", "the result to check")
    .option("--arithmetic <claim>", `what it is computed in: ${CLAIM_HELP}`, "auto")
    .option(...OPTION.json)
    .optionsGroup(GROUPS.table)
    .option("--provider <tag>", "name of the kernel in records and reports", "other")
    .option("--save-failures <folder>", "save the smallest part that is wrong, as .npz")
    .option("--jsonl <file>", "append a record to this file");
}

/** What {@linkcode claimOptions} adds. */
export interface ClaimOptions {
  readonly output?: string | undefined;
  readonly arithmetic: string;
  readonly json?: boolean | undefined;
  readonly provider: string;
  readonly jsonl?: string | undefined;
  readonly saveFailures?: string | undefined;
  readonly seed: number;
  readonly as?: "bf16" | undefined;
}
