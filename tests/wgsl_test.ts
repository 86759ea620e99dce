/** Every generated kernel passes Deno's naga; wgsl_dawn_test.ts is its neighbour, a file of its own so that both run at once. */
import { everyKernelIsValid } from "./wgsl_kernels/every.ts";

Deno.test("every kernel is valid WGSL to wgpu", () => everyKernelIsValid("wgpu"));
