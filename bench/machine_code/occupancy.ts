/**
 * How many warps of a kernel an NVIDIA multiprocessor holds: the rules of CUDA's cuda_occupancy.h with the largest share of
 * its memory for workgroups. Vulkan's driver chooses that share itself, so this is an upper bound.
 */

/** What a multiprocessor has. */
interface Multiprocessor {
  readonly warps: number;
  readonly workgroups: number;
  readonly registers: number;
  /** Bytes for all workgroups, and what each takes beside its own. */
  readonly shared: number;
  readonly sharedReserved: number;
}

const ampere = { registers: 65_536, sharedReserved: 1024 };
const MULTIPROCESSORS: Readonly<Record<number, Multiprocessor>> = {
  75: { warps: 32, workgroups: 16, registers: 65_536, shared: 64 << 10, sharedReserved: 0 },
  80: { warps: 64, workgroups: 32, shared: 164 << 10, ...ampere },
  86: { warps: 48, workgroups: 16, shared: 100 << 10, ...ampere },
  89: { warps: 48, workgroups: 24, shared: 100 << 10, ...ampere },
  90: { warps: 64, workgroups: 32, shared: 228 << 10, ...ampere },
  100: { warps: 64, workgroups: 32, shared: 228 << 10, ...ampere },
};
/** Names of devices by compute capability. */
const DEVICES: readonly (readonly [RegExp, number])[] = [
  [/\bG?H(?:100|200|800|20)\b/, 90],
  [/\bG?B(?:100|200|300)\b/, 100],
  [/\bA(?:100|30)\b/, 80],
  [/\bA(?:10|16|40)\b|\bRTX (?:30\d\d|A\d000)/, 86],
  [/\bL(?:4|40S?)\b|\bRTX (?:40\d\d)/, 89],
  [/\bT4\b|\b[GR]TX (?:16|20)\d\d/, 75],
];

/** The compute capability of a device, times ten; undefined of one that is unknown. */
export function capabilityOf(device: string): number | undefined {
  return DEVICES.find(([name]) => name.test(device))?.[1];
}

/** What a kernel takes of a multiprocessor. */
export interface Occupancy {
  /** At once. */
  readonly workgroups: number;
  readonly warps: number;
  /** Of those that a multiprocessor has room for. */
  readonly share: number;
  /** What there is no more of. */
  readonly limit: "workgroups" | "warps" | "registers" | "shared";
}

const up = (value: number, unit: number) => Math.ceil(value / unit) * unit;

/**
 * The occupancy of a kernel.
 *
 * @throws {RangeError} of a capability whose multiprocessors are unknown.
 */
export function occupancy(
  capability: number,
  { threads, registers, sharedBytes }: {
    readonly threads: number;
    /** Of a thread. */
    readonly registers: number;
    readonly sharedBytes: number;
  },
): Occupancy {
  const of = MULTIPROCESSORS[capability];
  if (of === undefined) {
    throw new RangeError(`Cannot tell the occupancy: nothing is known of sm_${capability}`);
  }
  const warps = Math.ceil(threads / 32);
  // Registers are handed out to warps in units of 256, and each of four parts has a quarter of them.
  const perWarp = Math.max(256, up(32 * registers, 256));
  const limits: [Occupancy["limit"], number][] = [
    ["workgroups", of.workgroups],
    ["warps", Math.floor(of.warps / warps)],
    ["shared", Math.floor(of.shared / Math.max(1, up(sharedBytes + of.sharedReserved, 128)))],
    ["registers", Math.floor(4 * Math.floor(of.registers / 4 / perWarp) / warps)],
  ];
  const [limit, workgroups] = limits.reduce((least, one) => one[1] < least[1] ? one : least);
  return { workgroups, warps: workgroups * warps, share: workgroups * warps / of.warps, limit };
}
