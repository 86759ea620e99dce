/** Every generated kernel passes both compilers: Deno's naga, and Dawn's Tint on its null device. */
import assert from "#assert";
import { openValidator } from "../src/gpu/validate.ts";
import { BACKENDS } from "../src/gpu/provider.ts";
import type { Kernel } from "../src/kernels/kernel.ts";
import { biasGradientKernels } from "./wgsl_kernels/bias_gradient.ts";
import { depthwiseKernels } from "./wgsl_kernels/depthwise.ts";
import {
  gemmKernels,
  gemvKernels,
  implicitKernels,
  strideKernels,
} from "./wgsl_kernels/products.ts";
import { fusedKernels, nonfusedKernels, winrsKernels } from "./wgsl_kernels/winograd.ts";
import { windowKernels } from "./wgsl_kernels/windows.ts";

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

for (const backend of BACKENDS) {
  Deno.test(`every kernel is valid WGSL to ${backend}`, async () => {
    using validator = await openValidator(backend, { robust: false });
    const all = kernels();
    assert.ok(all.length > 100, `${all.length} kernels`);
    for (const kernel of all) {
      const messages = await validator.validate(kernel);
      const errors = messages.filter(({ type }) => type === "error");
      assert.deepEqual(errors, [], kernel.name);
    }
  });
}
