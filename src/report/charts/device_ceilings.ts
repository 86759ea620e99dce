/** What the device reaches at most, where that is known. */
export interface Ceilings {
  /** GFLOP/s */
  readonly peak?: number;
  /** GB/s */
  readonly bandwidth?: number;
}

/** What was measured: GFLOP/s of multiply-adds from registers alone by dtype, and GB/s of a copy. */
const DEVICES: ReadonlyMap<string, { bandwidth: number; peak: ReadonlyMap<string, number> }> =
  new Map([
    ["NVIDIA H200", {
      bandwidth: 4300,
      peak: new Map([["f64", 29_300], ["f32", 65_100], ["f16", 108_600], ["i8", 106_700]]),
    }],
  ]);

/** What a device reaches at most with values of a dtype, where it is known. */
export function deviceCeilings(device: string, dtype: string): Ceilings {
  const known = DEVICES.get(device);
  if (known === undefined) return {};
  const { bandwidth } = known;
  const peak = known.peak.get(dtype);
  return { bandwidth, ...(peak === undefined ? {} : { peak }) };
}
