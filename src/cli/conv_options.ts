import { RUNS_HELP } from "./compute.ts";
import { KERNEL_HELP } from "./own_kernel.ts";
import { PROBLEM, problemCommand } from "./problem_options.ts";
import { BUDGET_HELP, CONV_BUDGET_HELP } from "./learn.ts";
import { GROUPS, OPTION } from "./shared_options.ts";
import { leastNumber, wholeNumber } from "./values.ts";
import { TUNING_OPTION } from "./tuning_options.ts";
import { TIMINGS_OPTION } from "./print_case.ts";

const CHUNK_HELP = "images per chunk; default all, fewer where files exceed 1 GiB";

const EXAMPLES = `
The axes of the tensors, by --layout:
  nchw   X is N,C,H,W   W is K,C/g,R,S   (PyTorch)
  nhwc   X is N,H,W,C   W is K,R,S,C/g   (PyTorch's channels_last; TensorFlow with --filter-layout rsck)
  chwn   X is C,H,W,N   W is C/g,R,S,K
One and three spatial axes work alike. A single image needs no batch axis. A bias is [K], [1], or any shape
that NumPy broadcasts to the result. Any number type is read and rounded to --dtype.
A path may be file.npz:member, file.safetensors:tensor, or - for stdin and stdout.
A pattern in quotes, such as 'frames/*.npy', convolves many files into the folder --output.

Examples:
  wgconv conv --input x.npy --filter w.npy --output y.npy --stride 2 --padding 1
  wgconv conv --input x.npy --filter w.npy --bias b.npy --activation relu --layout nhwc
  wgconv conv --op bwd-data --grad-output dy.npy --filter w.npy --stride 2 --input-size 32,32 --output dx.npy
  wgconv conv --op bwd-filter --input x.npy --grad-output dy.npy --output dw.npy
  wgconv conv --problem mb8ic64ih56oc64kh3ph1 --check full --runs 20 --json
  wgconv conv --input u8.npy --filter w.npy --layout nhwc --dtype i8 --input-zero-point 128
  wgconv conv --input 'frames/*.npy' --filter w.npy --output filtered

Exit 1: the accuracy check failed. The output is still written.`;

/** `wgconv conv` and its options. */
export function convOptions() {
  return problemCommand("conv")
    .description("Convolve .npy tensors, or compute a gradient; check the result and time it.")
    .optionsGroup(GROUPS.common)
    .option("--output <file>", "where the result goes, in --layout; - is stdout")
    .optionsGroup(GROUPS.types)
    .option(...PROBLEM.lossScale)
    .optionsGroup(GROUPS.measure)
    .option(...PROBLEM.check)
    .option("--runs <n>", `timed runs; ${RUNS_HELP}`, wholeNumber(1))
    .option(...TIMINGS_OPTION)
    .optionsGroup(GROUPS.files)
    .option(...OPTION.force)
    .option("--manifest <file>", "compute every layer that wgconv layers --dump wrote")
    .option("--chunk <images>", CHUNK_HELP, wholeNumber(1))
    .option("--resume", "with a pattern of many files: skip those that have a result")
    .optionsGroup(GROUPS.device)
    .option(...OPTION.device)
    .option(...OPTION.anyBackend)
    .option(...OPTION.adapter)
    .optionsGroup(GROUPS.kernel)
    .option("--kernel <file>", KERNEL_HELP)
    .option(...TUNING_OPTION)
    .option("--tune-budget <seconds>", `${BUDGET_HELP}; ${CONV_BUDGET_HELP}`, leastNumber(0))
    .addHelpText("after", EXAMPLES);
}

export type ConvOptions = ReturnType<ReturnType<typeof convOptions>["opts"]>;
