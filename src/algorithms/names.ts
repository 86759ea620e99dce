/** Names users give algorithms; `auto` lets the planner choose. */
export type AlgorithmName =
  | "direct"
  | "implicit-gemm"
  | "im2col"
  | "im2win"
  | "im2win-fused"
  | "winograd2d-nonfused"
  | "winograd2d"
  | "winograd1d"
  | "winrs";
export const ALGORITHM_NAMES: readonly AlgorithmName[] = [
  "direct",
  "implicit-gemm",
  "im2col",
  "im2win",
  "im2win-fused",
  "winograd2d-nonfused",
  "winograd2d",
  "winograd1d",
  "winrs",
];
