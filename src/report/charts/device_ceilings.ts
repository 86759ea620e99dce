import type { Ceilings } from "./roofline.ts";

/** What data sheets say, without tensor cores: GFLOP/s by dtype, and GB/s. */
const DEVICES: Readonly<Record<string, { bandwidth: number; peak: Record<string, number> }>> = {
  "NVIDIA H200": { bandwidth: 4800, peak: { f64: 33_500, f32: 66_900, f16: 133_800 } },
};

/** What a device reaches at most with values of a dtype, where it is known. */
export function deviceCeilings(device: string, dtype: string): Ceilings {
  const known = DEVICES[device];
  if (known === undefined) return {};
  const { bandwidth, peak: { [dtype]: peak } } = known;
  return { bandwidth, ...(peak === undefined ? {} : { peak }) };
}
