/** Kernels of every family, as compilers read them. */
import type { Backend } from "../../../src/gpu/provider.ts";
import { openValidator } from "../../support/validate.ts";
import type { Kernel } from "../../../src/kernels/kernel.ts";
import { biasGradientKernels } from "./bias_gradient.ts";
import { coverPairs } from "./cover.ts";
import { depthwiseKernels } from "./depthwise.ts";
import { gemmKernels, gemvKernels, implicitKernels, strideKernels } from "./products.ts";
import { integerKernels } from "./integers.ts";
import { fusedKernels, nonfusedKernels, winrsKernels } from "./winograd.ts";
import { windowKernels } from "./windows.ts";

/** Kernels of every algorithm, each once. */
export function everyKernel(): Kernel[] {
  const all = [
    implicitKernels,
    gemmKernels,
    gemvKernels,
    nonfusedKernels,
    fusedKernels,
    winrsKernels,
    windowKernels,
    strideKernels,
    depthwiseKernels,
    biasGradientKernels,
    integerKernels,
  ].flatMap((family) => family());
  return [...new Map(all.map((kernel) => [kernel.name, kernel])).values()];
}

/** What a backend's compiler finds wrong in any of them, by kernel, and how many there are. */
export async function findErrors(
  backend: Backend,
): Promise<{ count: number; errors: [kernel: string, message: string][] }> {
  using validator = await openValidator(backend, { robust: false });
  // So many that each pair of traits occurs.
  const all = coverPairs(everyKernel());
  const errors: [string, string][] = [];
  for (const kernel of all) {
    for (const { type, message } of await validator.validate(kernel)) {
      if (type === "error") errors.push([kernel.name, message]);
    }
  }
  return { count: all.length, errors };
}
