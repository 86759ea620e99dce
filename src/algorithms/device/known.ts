import { H200 } from "./h200.ts";
import { softwareDevice } from "./software.ts";
import type { DeviceModel } from "./model.ts";
import { scaledModel } from "./scale.ts";

/**
 * GPUs by their published figures, for plans on devices that nobody has measured. None of these was: rates are an H200's, those of
 * products scaled by published FP32 rates, those of memory by published bandwidths.
 *
 * A multiprocessor is what runs workgroups by itself and has a workgroup memory of its own: an SM, a pair of compute units (WGP) of
 * RDNA, a compute unit of GCN and CDNA, an Xe core (in older GPUs a subslice), an Apple GPU's core, an Adreno SP.
 */

/** What GPUs of an architecture have in common. */
interface Architecture {
  readonly vendor: Vendor;
  /**
   * Results that a thread of a product may hold: the widest tiles that `deno task test:shims` finds next to none of to spill
   * (docs/gpus_compiled.md). Of Arm, which it does not compile for, the half of a thread's registers at most.
   */
  readonly threadResults: number;
  /** 32-bit registers of a multiprocessor. */
  readonly registers: number;
  /** Bytes of workgroup memory of a multiprocessor. */
  readonly sharedBytes: number;
}

const VENDORS = {
  nvidia: { name: "NVIDIA", pattern: /nvidia|geforce|quadro|tesla|\b(rtx|gtx)\b|\bnvk\b/i },
  amd: { name: "AMD", pattern: /\bamd\b|radeon|\bradv\b|instinct/i },
  intel: { name: "Intel", pattern: /intel|\barc\b|iris/i },
  apple: { name: "Apple", pattern: /apple/i },
  qualcomm: { name: "Qualcomm", pattern: /qualcomm|adreno/i },
  arm: { name: "Arm", pattern: /\barm\b|mali|immortalis/i },
} as const;
type Vendor = keyof typeof VENDORS;

function architecture(
  vendor: Vendor,
  threadResults: number,
  registers: number,
  sharedBytes: number,
): Architecture {
  return { vendor, threadResults, registers, sharedBytes };
}

/** CUDA C++ Programming Guide, Compute Capabilities. Workgroup memory is what two workgroups of an H200 share; chips have more. */
const NVIDIA = architecture("nvidia", 128, 65_536, 49_152);
/** AMD's ISA documents; RDNA 3 in processors has the registers of RDNA 2. */
const GCN = architecture("amd", 64, 65_536, 65_536);
const CDNA3 = architecture("amd", 64, 131_072, 65_536);
const RDNA2 = architecture("amd", 64, 131_072, 131_072);
const RDNA3 = architecture("amd", 64, 196_608, 131_072);
/** Intel's architecture guides of Xe-LP, Gen9 (a subslice of eight execution units), Xe-HPG and Xe2. */
const XE = architecture("intel", 16, 114_688, 65_536);
const GEN9 = architecture("intel", 16, 57_344, 65_536);
const XE_HPG = architecture("intel", 16, 131_072, 131_072);
/** Asahi Linux' GPU documentation; Metal Feature Set Tables. */
const APPLE = architecture("apple", 32, 53_248, 32_768);
/** Mesa, src/freedreno/common/freedreno_devices.py. */
const ADRENO = architecture("qualcomm", 32, 49_152, 32_768);
/** Arm GPU Best Practices Developer Guide. */
const VALHALL = architecture("arm", 32, 32_768, 32_768);

/** A GPU by its published figures. */
export interface KnownGpu extends Architecture {
  /** What `--device-model` calls it. */
  readonly word: string;
  readonly name: string;
  /** Its adapters' names, of words between single spaces. */
  readonly pattern: RegExp;
  readonly multiprocessors: number;
  /** FP32 multiply-adds, two flops each, at the boost clock; of RDNA 3 and later without dual issue. */
  readonly teraflops: number;
  /** Bandwidth of memory, in TB/s. */
  readonly terabytes: number;
}

function gpu(
  word: string,
  name: string,
  pattern: RegExp,
  architecture: Architecture,
  [multiprocessors, teraflops, terabytes]: readonly [number, number, number],
): KnownGpu {
  return { word, name, pattern, ...architecture, multiprocessors, teraflops, terabytes };
}

/** Figures of GPUs are their makers' data sheets'; Apple's of M3 and M4 are cores times clock. */
export const KNOWN_GPUS: readonly KnownGpu[] = [
  gpu("rtx5090", "NVIDIA GeForce RTX 5090", /RTX 5090/i, NVIDIA, [170, 104.8, 1.79]),
  gpu("rtx4090", "NVIDIA GeForce RTX 4090", /RTX 4090/i, NVIDIA, [128, 82.6, 1.01]),
  gpu("rtx4060", "NVIDIA GeForce RTX 4060", /RTX 4060\b/i, NVIDIA, [24, 15.1, 0.272]),
  gpu("rtx3060", "NVIDIA GeForce RTX 3060", /RTX 3060\b/i, NVIDIA, [28, 12.7, 0.36]),
  gpu("rtx2080", "NVIDIA GeForce RTX 2080", /RTX 2080\b|\bTU104\b/i, NVIDIA, [46, 10.1, 0.448]),
  gpu("gtx1650", "NVIDIA GeForce GTX 1650", /GTX 1650\b|\bTU117\b/i, NVIDIA, [14, 3, 0.128]),
  gpu("a100", "NVIDIA A100", /\bA100\b/i, NVIDIA, [108, 19.5, 1.56]),
  gpu("rx9070xt", "AMD Radeon RX 9070 XT", /RX 9070|GFX1201/i, RDNA3, [32, 24.3, 0.64]),
  gpu("rx7900xtx", "AMD Radeon RX 7900 XTX", /7900 XTX|NAVI31/i, RDNA3, [48, 30.7, 0.96]),
  gpu("rx7600", "AMD Radeon RX 7600", /RX 7600|NAVI33/i, RDNA2, [16, 10.9, 0.288]),
  gpu("radeon890m", "AMD Radeon 890M", /890M|STRIX1|GFX1150/i, RDNA2, [8, 5.9, 0.12]),
  gpu("rx6800", "AMD Radeon RX 6800", /RX 6800\b|NAVI21/i, RDNA2, [30, 16.2, 0.512]),
  gpu("vega64", "AMD Radeon RX Vega 64", /RX VEGA|VEGA10/i, GCN, [64, 12.7, 0.484]),
  gpu("mi300x", "AMD Instinct MI300X", /MI300X|GFX942/i, CDNA3, [304, 81.7, 5.3]),
  gpu("arc-b580", "Intel Arc B580", /\bB580\b|BMG/i, XE_HPG, [20, 13.7, 0.456]),
  gpu("arc-140v", "Intel Arc 140V", /\b140V\b|LNL/i, XE_HPG, [8, 4.2, 0.136]),
  gpu("arc-a770", "Intel Arc A770", /\bA770M?\b|DG2/i, XE_HPG, [32, 19.7, 0.56]),
  gpu("iris-xe", "Intel Iris Xe", /Iris.*Xe|TGL GT2|ADL GT2/i, XE, [6, 2.1, 0.068]),
  gpu("uhd630", "Intel UHD Graphics 630", /UHD Graphics 6[23]0|CFL GT2|SKL GT2/i, GEN9, [
    3,
    0.44,
    0.042,
  ]),
  gpu("m1", "Apple M1", /\bM1( G13G.*)?$/i, APPLE, [8, 2.6, 0.068]),
  gpu("m2", "Apple M2", /\bM2$/i, APPLE, [10, 3.6, 0.1]),
  gpu("m3", "Apple M3", /\bM3$/i, APPLE, [10, 3.5, 0.1]),
  gpu("m3-max", "Apple M3 Max", /\bM3 Max\b/i, APPLE, [40, 14.1, 0.4]),
  gpu("m4", "Apple M4", /\bM4$/i, APPLE, [10, 4.3, 0.12]),
  gpu("adreno740", "Qualcomm Adreno 740", /Adreno.*\b740\b/i, ADRENO, [6, 2.1, 0.067]),
  gpu("adreno-x1-85", "Qualcomm Adreno X1-85", /Adreno.*X1 85/i, ADRENO, [6, 4.6, 0.135]),
  gpu("mali-g78", "Arm Mali-G78", /Mali G78/i, VALHALL, [14, 1.5, 0.051]),
];

/** H100 and H200, whose figures are measured: Hopper to browsers, which say no names. */
const MEASURED = /\bG?H[12]00\b|\bhopper\b/i;

/** Whether a GPU's figures are measured ones without a calibration. */
export function isMeasured(adapter: string): boolean {
  return MEASURED.test(adapter);
}

/**
 * The model of a GPU by its adapter's name: an H200's of it and of an H100; a known GPU's; else a middle one's of its
 * vendor's GPUs, and of all where the vendor is unknown, too.
 *
 * @example
 * ```ts
 * import { gpuModel } from "./known.ts";
 * import assert from "node:assert/strict";
 *
 * assert.equal(gpuModel("Apple M3").multiprocessors, 10);
 * assert.equal(gpuModel("Apple M9 Ultra").multiprocessors, 10);
 * ```
 */
export function gpuModel(adapter: string): DeviceModel {
  if (isMeasured(adapter)) return H200;
  const said = wordsOf(adapter);
  const known = KNOWN_GPUS.find(({ pattern }) => pattern.test(said));
  const model = known === undefined ? unknownModel(adapter) : publishedModel(known);
  const most = NVK.test(said) ? NVK_RESULTS : Infinity;
  return { ...model, threadResults: Math.min(model.threadResults, most) };
}

/** Mesa's driver of NVIDIA GPUs, which spills where NVIDIA's own does not. */
const NVK = /\bnvk\b/i;
const NVK_RESULTS = 64;

/** The model of a GPU of which nothing but its vendor is known, if that. */
export function unknownModel(adapter: string): DeviceModel {
  const said = wordsOf(adapter);
  const vendors = Object.entries(VENDORS) as [Vendor, (typeof VENDORS)[Vendor]][];
  const [vendor, named] = vendors.find(([, { pattern }]) => pattern.test(said)) ?? [];
  const like = KNOWN_GPUS.filter((one) => vendor === undefined || one.vendor === vendor);
  const name = named === undefined
    ? "unknown GPU, by a middle one's figures"
    : `unknown ${named.name} GPU, by a middle one's figures`;
  return { ...publishedModel(typical(like), name), guessed: true };
}

/** A name as its words: Dawn writes `nvidia-geforce-rtx-4090`. */
function wordsOf(adapter: string): string {
  return adapter.replaceAll(/[^A-Za-z0-9]+/g, " ").trim();
}

/** The middle one of some GPUs by their size, with no more registers and memory than each of them has. */
function typical(gpus: readonly KnownGpu[]): KnownGpu {
  const bySize = gpus.toSorted((a, b) => a.multiprocessors - b.multiprocessors);
  const most = (of: (gpu: KnownGpu) => number) => Math.min(...gpus.map(of));
  return {
    ...bySize[bySize.length >> 1]!,
    threadResults: most(({ threadResults }) => threadResults),
    registers: most(({ registers }) => registers),
    sharedBytes: most(({ sharedBytes }) => sharedBytes),
  };
}

/** Published FP32 rate and bandwidth of an H200, which its measured rates are shares of. */
const H200_PEAK = { teraflops: 67, terabytes: 4.8 };

/** Results of a thread below which f32 in halves spills: beside sums it holds two matrices of each operand. */
const HALVES_RESULTS = 32;

/** The model of a GPU by its published figures. */
export function publishedModel(
  gpu: KnownGpu,
  name = `${gpu.name}, by published figures`,
): DeviceModel {
  const { multiprocessors, threadResults, registers, sharedBytes } = gpu;
  const { f16x3 } = H200.shares;
  return {
    ...scaledModel(H200, {
      computing: gpu.teraflops / H200_PEAK.teraflops,
      moving: gpu.terabytes / H200_PEAK.terabytes,
    }),
    ...{ name, multiprocessors, threadResults, registers, sharedBytes },
    shares: { ...H200.shares, f16x3: threadResults < HALVES_RESULTS ? 0 : f16x3 },
  };
}

/** The model of a device with so many multiprocessors of the same kind, and as much more bandwidth. */
export function sizedModel(device: DeviceModel, multiprocessors: number): DeviceModel {
  const factor = multiprocessors / device.multiprocessors;
  return { ...scaledModel(device, { computing: factor, moving: factor }), multiprocessors };
}

/**
 * The model of an opened device: a software device's where it says how many workgroups it runs side by side, else a GPU's.
 *
 * @param given Figures in place of what is known of it.
 * @param adapter The device's name; an H200's figures where there is none.
 */
export function modelOf(
  workgroupsInFlight: number | undefined,
  given?: DeviceModel,
  adapter?: string,
): DeviceModel {
  if (workgroupsInFlight !== undefined) return softwareDevice(workgroupsInFlight, adapter, given);
  return given ?? (adapter === undefined ? H200 : gpuModel(adapter));
}
