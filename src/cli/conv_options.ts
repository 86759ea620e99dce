import { CHECK_HELP, CHECKS } from "../run/coverage.ts";
import { BACKENDS } from "../gpu/provider.ts";
import { RUNS_HELP } from "./compute.ts";
import { FORCE_HELP } from "./outputs.ts";
import { LOSS_SCALE_HELP, problemCommand } from "./problem_options.ts";
import { TIMINGS_HELP } from "./timings.ts";
import { ADAPTER_HELP } from "./gpu_choice.ts";
import { oneOf, pathOr, positiveNumber, wholeNumber } from "./values.ts";

const DEVICES = ["gpu", "cpu"] as const;

const CHUNK_HELP =
  "read, compute and write so many images at a time; default all, in chunks that fit where files exceed 1 GiB";

const EXAMPLES = `
Shapes follow --layout: nchw takes X as N,C,H,W and W as K,C/g,R,S; nhwc N,H,W,C and K,R,S,C/g;
chwn C,H,W,N and C/g,R,S,K. One and three spatial axes work alike. Filters of TensorFlow and JAX, R,S,C/g,K,
are --filter-layout rsck. A single image needs no batch axis; a bias is [K], [1], or as NumPy broadcasts it. Any dtype is read and rounded
to --dtype; on the way to i8 it loses its fraction, and what does not fit is refused.
A path may be file.npz:member, or - for stdin and stdout. An archive that a result becomes a member of
keeps its others.

Examples:
  wgconv conv --input x.npy --filter w.npy --output y.npy --stride 2 --padding 1
  wgconv conv --input a.npz:x --filter a.npz:w --output a.npz:y
  wgconv conv --input x.npy --filter w.npy --bias b.npy --activation relu --layout nhwc
  wgconv conv --input x.npy --filter w.npy --layout nhwc --filter-layout rsck --stride 2 --padding same
  wgconv conv --input x.npy --filter w.npy --layout nhwc --dtype i8 --out-dtype i8 --scale 0.01
  wgconv conv --input u8.npy --filter w.npy --layout nhwc --dtype i8 --input-zero-point 128
  wgconv conv --op bwd-data --grad-output dy.npy --filter w.npy --stride 2 --input-size 32,32
  wgconv conv --op bwd-filter --input x.npy --grad-output dy.npy --output dw.npy
  wgconv conv --op bwd-filter --input x.npy --grad-output dy.npy --dtype f16 --loss-scale 0.01 --output dw.npy
  wgconv conv --problem mb8ic64ih56oc64kh3ph1 --check full --runs 20 --json
  wgconv conv --problem mb8ic64ih56oc64kh3ph1 --algorithm winograd2d --tile "F(2x2,3x3)" --check full
  wgconv conv --input x.npy --filter w.npy --device cpu --output -  | wgconv tensor info -
  wgconv conv --input 'frames/*.npy' --filter w.npy --output filtered

Exit 1 says that the accuracy check failed; the output is written nonetheless.`;

/** `wgconv conv` and its options. */
export function convOptions() {
  return problemCommand("conv")
    .description(
      "Convolve, or take a gradient: run it on the GPU, check it against FP64, time it, write it.",
    )
    .option("--output <file>", "where the result goes, in --layout; - is stdout")
    .option("--loss-scale <x>", LOSS_SCALE_HELP, positiveNumber)
    .option("--chunk <images>", CHUNK_HELP, wholeNumber(1))
    .option("--resume", "of many files: leave out those whose output is there")
    .option("--force", FORCE_HELP)
    .option("--check <how>", CHECK_HELP, oneOf(CHECKS), "auto" as const)
    .option("--runs <n>", `timed runs; ${RUNS_HELP}`, wholeNumber(1))
    .option("--timings", TIMINGS_HELP)
    .option(
      "--device <name>",
      "gpu, or cpu: the reference, no driver needed",
      oneOf(DEVICES),
      "gpu" as const,
    )
    .option(
      "--tuning <file>",
      "what wgconv tune measured, for auto; none for none (the user's own)",
      pathOr("none"),
    )
    .option("--backend <name>", "WebGPU of wgpu or dawn", oneOf(BACKENDS), "wgpu" as const)
    .option("--adapter <index|name>", ADAPTER_HELP)
    .addHelpText("after", EXAMPLES);
}

/** What they parse to. */
export type ConvOptions = ReturnType<ReturnType<typeof convOptions>["opts"]>;
