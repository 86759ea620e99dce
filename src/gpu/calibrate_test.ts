import assert from "#assert";
import { nsPerTick } from "./calibrate.ts";
import type { GpuDevice } from "./device.ts";

/** A device of which only that is known, and which fails where it is asked for the time. */
function described(info: { backend: string; vendor: string; adapter: string }): GpuDevice {
  return {
    timestamps: true,
    info,
    exclusive: <T>(work: () => T) => work(),
  } as unknown as GpuDevice;
}

Deno.test("nsPerTick() asks no device whose tick is known", async () => {
  const known = [
    { backend: "wgpu", vendor: "4318", adapter: "NVIDIA H200" },
    { backend: "wgpu", vendor: "4318", adapter: "NVIDIA H100 80GB HBM3" },
    { backend: "wgpu", vendor: "65541", adapter: "llvmpipe" },
    { backend: "dawn", vendor: "nvidia", adapter: "any" },
  ];
  for (const info of known) assert.equal(await nsPerTick(described(info)), 1, info.adapter);
  const others = ["NVIDIA A100", "NVIDIA H2000", "AMD H200"];
  for (const adapter of others) {
    await assert.rejects(nsPerTick(described({ backend: "wgpu", vendor: "4318", adapter })));
  }
});
