import { suggestion } from "../problem/closest.ts";
import { FILE_FILTER_LAYOUTS, LAYOUTS } from "../tensor/layout.ts";

/** Words of other programs for values, and what each means here; a message names those meanings that the option takes. */
const WORDS: ReadonlyMap<string, readonly string[]> = new Map(
  ([
    // Element types.
    ["float float32 fp32", "f32"],
    ["half float16 fp16", "f16"],
    ["double float64 fp64", "f64"],
    ["bfloat16", "bf16"],
    ["int8 s8 qint8", "i8"],
    ["uint8 quint8", "u8"],
    ["int32 s32", "i32"],
    ["int64", "i64"],
    // Operations.
    ["forward fprop fwd-d fwd-b fwd-i forward-training forward-inference inference", "fwd"],
    ["bwd bprop backward gradient grad", "bwd-data", "bwd-filter"],
    ["dgrad bwd-d bwd-input backward-data backward-input backward-inputs grad-input", "bwd-data"],
    ["transpose transposed deconv deconvolution", "bwd-data"],
    ["wgrad bwd-w bwd-wb bwd-weight bwd-weights grad-weight grad-filter", "bwd-filter"],
    ["backward-filter backward-weight backward-weights backward-kernel", "bwd-filter"],
    // Layouts.
    ["channels-last channels-last-3d axb hwc", "nhwc"],
    ["channels-first abx chw", "nchw"],
    ["oihw oidhw", "kcrs"],
    ["ohwi odhwi", "krsc"],
    ["ihwo", "crsk"],
    ["hwio dhwio hwcn", "rsck"],
    // Paddings.
    ["same-upper", "same"],
    // Algorithms.
    ["wino winograd winograd-fused", "winograd2d"],
    ["winograd-nonfused", "winograd2d-nonfused"],
    ["gemm igemm implicit implicit-precomp-gemm", "implicit-gemm"],
    ["explicit-gemm", "im2col"],
    ["dw-conv", "depthwise"],
    ["naive", "direct"],
    // Fills.
    ["gauss gaussian randn", "normal"],
    ["rand uniform", "uniform01"],
    ["ones", "constant"],
    ["randint", "integer"],
    // Devices and backends.
    ["cuda", "gpu"],
    ["vulkan metal d3d12 dx12", "wgpu"],
    // Activations of the same function.
    ["swish", "silu"],
    ["leakyrelu lrelu", "leaky-relu"],
    ["linear identity", "none"],
    // Formats.
    ["md", "markdown"],
    ["text txt", "table"],
    // Shells.
    ["pwsh", "powershell"],
    // Commands.
    ["convolve conv2d", "conv"],
    ["matmul mm bmm", "gemm"],
    ["test verify", "check"],
    ["benchmark", "bench"],
    ["diff", "tensor diff"],
    ["make", "tensor make"],
    ["info", "tensor info"],
    ["convert", "tensor convert"],
    ["show", "tensor show"],
    ["explain", "plan"],
  ] as const).flatMap(([words, ...meanings]) =>
    words.split(" ").map((word) => [word, meanings] as const)
  ),
);

const OTHER_SHELL = "it has no completions";

/** What of other programs is not here, where no choice is called so: what to use. */
const NOT_HERE: Readonly<Record<string, string>> = {
  sh: OTHER_SHELL,
  csh: OTHER_SHELL,
  ksh: OTHER_SHELL,
  tcsh: OTHER_SHELL,
  dash: OTHER_SHELL,
  man: "wgconv help, and wgconv help conv of a command, say all of it",
  bf16: "bf16 is of operands and results, their sums are in f32",
  f64: "f64 is of wgconv gemm alone, checks are in FP64 whatever the type",
  tf32: "tf32 is not computed in, --math f16x3 multiplies f32 on matrix units",
  u8: "--dtype i8 takes files of u8 as they are",
  dawn: "--backend dawn chooses it",
  fft: "there is no FFT algorithm, auto takes the fastest there is",
  relu6: "relu6 is not computed here, and relu has no upper bound",
  elu: "elu is not computed here",
  selu: "selu is not computed here",
  hardswish: "hardswish is not computed here, and silu differs from it",
  mish: "mish is not computed here",
  softmax: "softmax is not computed here",
  "joined-rows": "it is gone, each row has tiles of its own",
  "register-buffer": "it is gone, compilers order loads from workgroup memory",
  "arrays-2d": "it is gone, tiles are arrays of arrays",
  "micro-kernel": "it is gone, threads have tiles of results",
  "vector-load": "it is gone, loads are as wide as tensors allow",
  "output-reference": "it is gone, sums lie as threads follow each other",
  "output-sts64": "it is gone, sums lie as threads follow each other",
  "output-sts64-compact": "it is gone, sums lie as threads follow each other",
  "half-transforms": "it is gone, transformed data stays in f32, which is faster",
};

const IN_PROBLEM = "the descriptor says it, as in --problem mb32ic64ih56oc64kh3ph1";

const PRINTS =
  "it prints, > file keeps that; wgconv report --format makes html, markdown and csv of records";

/** What other programs call options: those here, of which the first that a command has is meant, or what to do. */
const OPTIONS: readonly (readonly [names: string, meant: readonly string[], otherwise?: string])[] =
  [
    ["pad pads paddings p", ["padding"]],
    ["weight weights w wei kernel", ["filter", "b"]],
    ["x i src image images data", ["input", "a"]],
    ["y o out dst result output output-file", ["output", "jsonl"], PRINTS],
    ["dy grad grad-out diff-dst gradient", ["grad-output"]],
    ["dx grad-input diff-src", ["op bwd-data with --output"]],
    ["dw grad-weight grad-weights grad-filter diff-weights diff-wei", [
      "op bwd-filter with --output",
    ]],
    ["strides", ["stride"]],
    ["dilate dilates dilations rate atrous", ["dilation (1 for none)"]],
    ["group g num-groups", ["groups"]],
    ["dt cfg type data-type precision", ["dtype"]],
    ["fp16 half f16", ["dtype f16"]],
    ["int8 i8", ["dtype i8"]],
    ["dir direction prop prop-kind operation", ["op"]],
    ["backward bwd", ["op bwd-data or --op bwd-filter"]],
    ["dgrad deconv transposed", ["op bwd-data"]],
    ["wgrad", ["op bwd-filter"]],
    ["alg algo impl", ["algorithm"]],
    ["format", ["layout", "from-layout"], PRINTS],
    ["tag stag dtag memory-format data-format", ["layout", "from-layout"]],
    ["channels-last", ["layout nhwc"]],
    ["wtag weight-layout kernel-layout filter-format", ["filter-layout"]],
    [
      "kernel-size ksize kernel-shape filter-shape",
      ["filter-size"],
      "the filter's file or the descriptor says it",
    ],
    ["output-padding out-pad output-size", ["input-size"]],
    ["act post-ops attr-post-ops", ["activation"]],
    ["relu", ["activation relu"]],
    ["iters iterations reps repeat repeats", ["runs"]],
    ["gpu-id device-id", ["adapter"]],
    ["gpu cuda", ["device gpu"]],
    ["cpu", ["device cpu"]],
    ["ws workspace workspace-limit", ["max-workspace"]],
    ["trans trans-a trans-b ta tb", ["transpose"]],
    ["m n k", ["size"], IN_PROBLEM],
    ["shape sizes", ["size", "problem"]],
    ["problem descriptor", ["problem", "size", "suite (a file of descriptors)"]],
    ["csv", ["format csv"], PRINTS],
    ["html", ["format html"], PRINTS],
    ["markdown md", ["format markdown"], PRINTS],
    ["filter only", ["match", "only"]],
    [
      "tol tolerance rtol atol",
      ["max-rel-l2"],
      "the accuracy gate knows what each result may err, docs/accuracy.md says how",
    ],
    ["mb batch batch-size minibatch", ["batch"], IN_PROBLEM],
    ["ic oc ih iw kh kw sh sw ph pw dh dw in-channels out-channels channels", [], IN_PROBLEM],
  ];

/**
 * `, did you mean "x"?`: what a word is called here, or the choice that is spelt most like it; what to do where it is not
 * here; else empty.
 */
export function meant(word: string, choices: readonly string[]): string {
  const lower = word.trim().toLowerCase().replaceAll("_", "-");
  const other = WORDS.get(lower) ?? [lower];
  const here = other.filter((one) => choices.includes(one.split(" ")[0]!));
  if (here.length > 0 && here[0] !== lower) {
    return `, did you mean ${here.map((one) => `"${one}"`).join(" or ")}?`;
  }
  if (lower === "auto" && choices.includes("dawn")) {
    return "; conv, gemm, plan, bench and tune have auto, which chooses by types of numbers";
  }
  const missing = other.find((one) => Object.hasOwn(NOT_HERE, one));
  if (missing !== undefined) return `; ${NOT_HERE[missing]}`;
  return layoutElsewhere(other, choices) ?? suggestion(lower, choices);
}

/** What says the layout of filters where one of activations is chosen, and the other way round. */
function layoutElsewhere(
  words: readonly string[],
  choices: readonly string[],
): string | undefined {
  for (
    const [own, others, option] of [
      [LAYOUTS, FILE_FILTER_LAYOUTS, "filter-layout"],
      [FILE_FILTER_LAYOUTS, LAYOUTS, "layout"],
    ] as const
  ) {
    const found = others.find((layout) => words.includes(layout));
    if (found !== undefined && own.every((one: string) => choices.includes(one))) {
      return `, ${found} is a --${option}`;
    }
  }
  return undefined;
}

/** `, did you mean --x?`: what an option of other programs is called in a command that has `options`, or what to do; else undefined. */
export function meantOption(word: string, options: readonly string[]): string | undefined {
  const name = word.replace(/^--?/, "").replace(/=.*$/s, "").toLowerCase().replaceAll("_", "-");
  const found = OPTIONS.find(([names]) => names.split(" ").includes(name));
  if (found === undefined) return undefined;
  const [, choices, otherwise] = found;
  const here = choices.find((choice) => options.includes(`--${choice.split(" ")[0]}`));
  if (here !== undefined) return `, did you mean --${here}?`;
  return otherwise === undefined ? undefined : `; ${otherwise}`;
}
