/** Every generated kernel passes Dawn's Tint, on its null device. */
import { everyKernelIsValid } from "./wgsl_kernels/every.ts";

Deno.test("every kernel is valid WGSL to dawn", () => everyKernelIsValid("dawn"));
