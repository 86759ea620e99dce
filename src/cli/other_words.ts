import { suggestion } from "../problem/closest.ts";

/** What other programs call things, and what they are called here. */
const OTHER_WORDS: Readonly<Record<string, string>> = {
  // Element types.
  float: "f32",
  float32: "f32",
  fp32: "f32",
  half: "f16",
  float16: "f16",
  fp16: "f16",
  double: "f64",
  float64: "f64",
  fp64: "f64",
  int8: "i8",
  uint8: "u8",
  int32: "i32",
  int64: "i64",
  // Operations.
  forward: "fwd",
  "backward-data": "bwd-data",
  "backward-input": "bwd-data",
  dgrad: "bwd-data",
  backward: "bwd-data",
  "backward-filter": "bwd-filter",
  "backward-weights": "bwd-filter",
  wgrad: "bwd-filter",
  // Layouts.
  channels_last: "nhwc",
  channels_first: "nchw",
  oihw: "kcrs",
  ohwi: "krsc",
  hwio: "crsk",
  // Algorithms.
  winograd: "winograd2d",
  gemm: "implicit-gemm",
  igemm: "implicit-gemm",
  // Fills.
  gauss: "normal",
  gaussian: "normal",
  randn: "normal",
  rand: "uniform01",
  uniform: "uniform01",
  ones: "constant",
  randint: "integer",
  // Devices and backends.
  cuda: "gpu",
  vulkan: "wgpu",
  metal: "wgpu",
  d3d12: "wgpu",
  dx12: "wgpu",
  // Activations and transposes of the same name elsewhere.
  swish: "silu",
  leakyrelu: "leaky-relu",
  relu6: "relu",
  // Formats.
  md: "markdown",
  text: "table",
  txt: "table",
  // Commands.
  convolve: "conv",
  matmul: "gemm",
  mm: "gemm",
  test: "check",
  verify: "check",
  diff: "tensor diff",
  make: "tensor make",
  info: "tensor info",
  convert: "tensor convert",
  show: "tensor show",
  explain: "plan",
};

/** `, did you mean "x"?`: what a word is called here, or the choice that is spelt most like it; else empty. */
export function meant(word: string, choices: readonly string[]): string {
  const lower = word.toLowerCase();
  const other = Object.hasOwn(OTHER_WORDS, lower) ? OTHER_WORDS[lower]! : undefined;
  const [command] = other?.split(" ") ?? [];
  if (other !== undefined && choices.includes(command!)) return `, did you mean "${other}"?`;
  return suggestion(lower, choices);
}
