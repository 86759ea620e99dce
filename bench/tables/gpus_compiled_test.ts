import assert from "#assert";
import { compiledFamilies, compiledTable } from "./gpus_compiled.ts";

const line = (kernel: string, statistics: Record<string, number>) => ({
  kernel,
  device: "one",
  vendor: 1,
  captured: true,
  compile_ms: 1,
  executables: [{ name: "cs", subgroup: 32, statistics }],
});

Deno.test("a device's kernels become a row a family: registers, occupancy, spills", () => {
  const kernels = [
    { name: "gemm_f32_64x64x16_nn", auto: true },
    { name: "gemm_f32_128x64x16_nn.0123abcd", auto: true },
    { name: "gemm_f32_8x8x8_nn", auto: false },
    { name: "pack_f32", auto: true },
  ];
  const rows = compiledFamilies("m1", "dawn", kernels, [
    line("gemm_f32_64x64x16_nn", { GPRs: 100, Threads: 512, Spills: 0 }),
    line("gemm_f32_128x64x16_nn.0123abcd", { GPRs: 255, Threads: 384, Spills: 30 }),
    line("gemm_f32_8x8x8_nn", { GPRs: 8, Threads: 1024, Spills: 9 }),
    line("pack_f32", { GPRs: 9, Threads: 1024 }),
  ]);
  const common = { device: "m1", backend: "dawn" };
  assert.deepEqual(rows, [
    {
      ...common,
      family: "gemm",
      kernels: 2,
      registers: [255, 255],
      occupancy: [384, 512],
      spilling: 1,
      mostSpills: 30,
    },
    {
      ...common,
      family: "passes",
      kernels: 1,
      registers: [9, 9],
      occupancy: [1024, 1024],
      spilling: 0,
      mostSpills: 0,
    },
  ]);
  const table = compiledTable(rows);
  assert.match(table, /m1 \(Dawn\) +\| +255\/255, 384, 1 of 2 \(30\) \| +9\/9, 1024, 0 of 1/);
});
