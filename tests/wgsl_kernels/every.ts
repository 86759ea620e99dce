/** Every generated kernel, as compilers read it. */
import assert from "#assert";
import type { Backend } from "../../src/gpu/provider.ts";
import { openValidator } from "../../src/gpu/validate.ts";
import type { Kernel } from "../../src/kernels/kernel.ts";
import { biasGradientKernels } from "./bias_gradient.ts";
import { depthwiseKernels } from "./depthwise.ts";
import { gemmKernels, gemvKernels, implicitKernels, strideKernels } from "./products.ts";
import { fusedKernels, nonfusedKernels, winrsKernels } from "./winograd.ts";
import { windowKernels } from "./windows.ts";

/** Kernels of every algorithm, each once. */
function kernels(): Kernel[] {
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
  ].flatMap((family) => family());
  return [...new Map(all.map((kernel) => [kernel.name, kernel])).values()];
}

/** Fails where a backend's compiler finds an error in any of them. */
export async function everyKernelIsValid(backend: Backend): Promise<void> {
  using validator = await openValidator(backend, { robust: false });
  const all = kernels();
  assert.ok(all.length > 100, `${all.length} kernels`);
  for (const kernel of all) {
    const messages = await validator.validate(kernel);
    const errors = messages.filter(({ type }) => type === "error");
    assert.deepEqual(errors, [], kernel.name);
  }
}
