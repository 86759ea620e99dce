import assert from "#assert";
import { OPERATIONS } from "../../problem/conv_problem.ts";
import { DEFAULT_LIMITS } from "../plan.ts";
import { planConv } from "../planner.ts";
import { parseDescriptor } from "../../problem/descriptor.ts";
import { NO_EPILOGUE } from "../../problem/epilogue.ts";
import { filterLayoutFor } from "../../tensor/layout.ts";
import { H200 } from "./h200.ts";
import { slowlyCompiled, softwareDevice } from "./software.ts";
import { gpuModel, KNOWN_GPUS, modelOf, publishedModel } from "./known.ts";

Deno.test("gpuModel() knows a GPU by what wgpu, Dawn and Mesa call it", () => {
  const names = {
    "NVIDIA GeForce RTX 4090": "rtx4090",
    "NVIDIA GeForce RTX 4090 Laptop GPU": "rtx4090",
    "AMD Radeon RX 7900 XTX (RADV NAVI31)": "rx7900xtx",
    "AMD Radeon RX Vega (RADV VEGA10)": "vega64",
    "AMD Radeon Graphics (RADV GFX1201)": "rx9070xt",
    "Intel(R) Arc(tm) A770M Graphics (DG2)": "arc-a770",
    "Intel(R) Arc(TM) B580 Graphics (BMG G21)": "arc-b580",
    "Intel(R) Iris(R) Xe Graphics (TGL GT2)": "iris-xe",
    "Apple M1 (G13G A0)": "m1",
    "Apple M3 Max": "m3-max",
    "Apple M3": "m3",
    "Adreno (TM) 740": "adreno740",
    "nvidia-geforce-rtx-4090": "rtx4090",
    "intel-r-arc-tm-a770m-graphics-dg2-": "arc-a770",
    "intel-r-graphics-bmg-g21-": "arc-b580",
  };
  for (const [adapter, word] of Object.entries(names)) {
    const known = KNOWN_GPUS.find((gpu) => gpu.word === word)!;
    assert.deepEqual(gpuModel(adapter), publishedModel(known), adapter);
  }
});

Deno.test("gpuModel() has an H200's figures for an H100 and an H200 alone", () => {
  for (
    const adapter of [
      "NVIDIA H200",
      "NVIDIA H100 80GB HBM3",
      "nvidia-h200",
      "NVIDIA GH200 480GB",
      "nvidia hopper",
    ]
  ) {
    assert.equal(gpuModel(adapter), H200, adapter);
  }
  for (const adapter of ["", "unnamed adapter", "NVIDIA GeForce RTX 9999", "apple common-3"]) {
    assert.ok(gpuModel(adapter).multiprocessors < H200.multiprocessors, adapter);
  }
});

Deno.test("gpuModel() takes a middle one's figures of an unknown GPU's vendor", () => {
  const { name, multiprocessors, threadResults } = gpuModel("AMD Radeon RX 9999 (RADV NAVI99)");
  assert.equal(name, "unknown AMD GPU, by a middle one's figures");
  assert.deepEqual([multiprocessors, threadResults], [32, 64]);
  assert.equal(gpuModel("NVIDIA GeForce RTX 4090 (NVK AD102)").threadResults, 64);
  const least = Math.min(...KNOWN_GPUS.map((gpu) => gpu.threadResults));
  assert.equal(gpuModel("Some GPU").threadResults, least);
});

Deno.test("modelOf() goes by a device's name where nothing was measured, and by an H200's figures without one", () => {
  assert.equal(modelOf(undefined), H200);
  assert.deepEqual(modelOf(undefined, undefined, "Apple M3"), gpuModel("Apple M3"));
  assert.equal(modelOf(undefined, H200, "Apple M3"), H200);
  assert.deepEqual(modelOf(8), softwareDevice(8));
});

Deno.test("words of known GPUs differ, and none is another word's path", () => {
  const words = KNOWN_GPUS.map(({ word }) => word);
  assert.equal(new Set(words).size, words.length);
  for (const word of words) assert.match(word, /^[a-z][a-z0-9-]*$/);
});

Deno.test("auto takes no tile whose threads hold more results than a GPU's registers", () => {
  const tile = /_(\d+)x(\d+)x\d+_/;
  for (
    const descriptor of ["mb64ic64ih56oc64kh3ph1", "mb1ic512ih7oc512kh1", "mb8ic16ih40oc32kh5"]
  ) {
    for (const op of ["fwd", "bwd-data", "bwd-filter"] as const) {
      const plan = planConv({
        problem: parseDescriptor(descriptor, op),
        dtype: "f32",
        layout: "nhwc",
        filterLayout: filterLayoutFor("nhwc"),
        epilogue: NO_EPILOGUE,
        algorithm: "auto",
        limits: DEFAULT_LIMITS,
        device: gpuModel("Apple M3"),
      });
      for (const { kernel } of plan.passes) {
        const [, rows, columns] = tile.exec(kernel.name) ?? [];
        if (rows === undefined) continue;
        const threads = kernel.workgroupSize.reduce((a, b) => a * b);
        assert.ok(Number(rows) * Number(columns) / threads <= 32, kernel.name);
      }
    }
  }
});

Deno.test("where compilers are slow auto takes the shortest kernels alone", () => {
  const device = slowlyCompiled(gpuModel("NVIDIA GeForce GTX 470"));
  for (const op of OPERATIONS) {
    for (
      const text of ["mb32ic64ih56oc64kh3ph1", "mb1ic512ih7oc512kh3ph1", "mb8ic256ih14oc64kh1"]
    ) {
      const problem = parseDescriptor(text, op);
      const tensors = { dtype: "f32", layout: "nhwc", filterLayout: "krsc" } as const;
      const asked = {
        ...tensors,
        epilogue: NO_EPILOGUE,
        algorithm: "auto",
        limits: DEFAULT_LIMITS,
      };
      const { kernel } = planConv({ problem, ...asked, device });
      assert.match(kernel, /_(32x32x8|64x64x8)_/, kernel);
    }
  }
});
