import type { Algorithm } from "./algorithm.ts";
import { direct } from "./direct/algorithm.ts";
import { im2col } from "./im2col/algorithm.ts";
import { im2win, im2winFused } from "./im2win/algorithm.ts";
import { implicitGemm } from "./implicit_gemm/algorithm.ts";
import type { AlgorithmName } from "./names.ts";
import { winogradNonfused } from "./winograd_nonfused/algorithm.ts";
import { winograd1d, winograd2d } from "./winograd_fused/algorithm.ts";
import { winrs } from "./winrs/algorithm.ts";

/** Every algorithm, in the order of lists; of equal candidates `auto` takes the first. */
export const REGISTRY: readonly Algorithm[] = [
  direct,
  implicitGemm,
  im2col,
  im2win,
  im2winFused,
  winogradNonfused,
  winograd2d,
  winograd1d,
  winrs,
];

/** The algorithm of a name. */
export function algorithmOf(name: AlgorithmName): Algorithm {
  return REGISTRY.find((one) => one.name === name)!;
}
