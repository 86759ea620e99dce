import assert from "#assert";
import type { Kernel } from "../../../src/kernels/kernel.ts";
import { coverPairs } from "./cover.ts";

Deno.test("coverPairs() keeps each pair of traits, in the shorter text", () => {
  const kernel = (name: string, length: number) => ({ name, wgsl: "x".repeat(length) }) as Kernel;
  const kept = coverPairs([
    kernel("gemm_f16_nt.1234", 9),
    kernel("gemm_f32_nn", 1),
    kernel("gemm_f32_nt", 2),
    kernel("gemm_f16_nn", 3),
    kernel("gemm_f32_nn.5678", 4),
  ]);
  assert.deepEqual(kept.map(({ name }) => name), [
    "gemm_f32_nn",
    "gemm_f32_nt",
    "gemm_f16_nn",
    "gemm_f16_nt.1234",
  ]);
});
