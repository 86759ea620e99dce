import gpus from "./gpus.json" with { type: "json" };
import { H200 } from "./h200.ts";
import { softwareDevice } from "./software.ts";
import type { DeviceModel } from "./model.ts";
import { scaledModel } from "./scale.ts";

const VENDORS = {
  nvidia: { name: "NVIDIA", pattern: /nvidia|geforce|quadro|tesla|\b(rtx|gtx)\b|\bnvk\b/i },
  amd: { name: "AMD", pattern: /\bamd\b|radeon|\bradv\b|instinct/i },
  intel: { name: "Intel", pattern: /intel|\barc\b|iris/i },
  apple: { name: "Apple", pattern: /apple/i },
  qualcomm: { name: "Qualcomm", pattern: /qualcomm|adreno/i },
  arm: { name: "Arm", pattern: /\barm\b|mali|immortalis/i },
} as const;

/** A GPU by its published figures. */
export interface KnownGpu {
  /** What `--device-model` calls it. */
  readonly word: string;
  readonly name: string;
  /** Its adapters' names, of words between single spaces, in any case. */
  readonly pattern: RegExp;
  /** A key of `VENDORS`. */
  readonly vendor: string;
  /**
   * What runs workgroups by itself and has a workgroup memory of its own: an SM, a pair of compute units (WGP) of RDNA, a compute unit of
   * GCN and CDNA, an Xe core (in older GPUs a subslice), an Apple GPU's core, an Adreno SP.
   */
  readonly multiprocessors: number;
  /** FP32 multiply-adds, two flops each, at the boost clock; of RDNA 3 and later without dual issue, of Apple's M3 and M4 cores times clock. */
  readonly teraflops: number;
  /** Bandwidth of memory, in TB/s. */
  readonly terabytes: number;
  /** Results that a thread of a product may hold: the widest tiles that `deno task test:shims` finds next to none of to spill. */
  readonly threadResults: number;
  /** 32-bit registers of a multiprocessor. */
  readonly registers: number;
  /** Bytes of workgroup memory of a multiprocessor. */
  readonly sharedBytes: number;
}

/**
 * GPUs by their published figures (`gpus.json`: makers' data sheets, those of architectures with their sources), for plans on devices that
 * nobody has measured. None of these was: rates are an H200's, those of products scaled by published FP32 rates, those of memory by
 * published bandwidths.
 */
export const KNOWN_GPUS: readonly KnownGpu[] = gpus.gpus.map((gpu) => {
  const { source: _, ...architecture } =
    gpus.architectures[gpu.architecture as keyof typeof gpus.architectures];
  return { ...gpu, ...architecture, pattern: new RegExp(gpu.pattern, "i") };
});

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
  const [vendor, named] = Object.entries(VENDORS)
    .find(([, { pattern }]) => pattern.test(said)) ?? [];
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
