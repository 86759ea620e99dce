import { policyThreads, type TilePolicy } from "../../kernels/policy.ts";

/** Rates in TFLOP/s of products (two flops a multiply-add), in TB/s of memory. */
export interface DeviceRates {
  /** The mainloop on operands that lie as it reads them: transformed or packed. */
  readonly packed: number;
  /** The mainloop where it gathers images on the way: implicit GEMM, forward and backward-data. */
  readonly gathered: number;
  /** The same where it gathers both operands, backward-filter: with lines along the depth (nhwc), and across. */
  readonly correlated: { readonly along: number; readonly across: number };
  /** Fused Winograd's products on busy multiprocessors: one tiled axis with up to 64 results a thread, with more, and two. */
  readonly sliced: { readonly one: number; readonly oneWide: number; readonly two: number };
  /** Memory: what all of a fused kernel's workgroups store, as whole lines (channels innermost) and as single elements. */
  readonly slicedStore: { readonly lines: number; readonly scattered: number };
  /** The mainloop on words of four int8 (`dot4I8Packed`), in TOPS: two a product of int8. */
  readonly dot4: number;
  /** Products in plans that have no model of their own, filling and storing of tiles included. */
  readonly planned: number;
  /** One thread a result. */
  readonly direct: number;
  /** One filter a channel, of endless taps: with channels innermost, and elsewhere, where single elements are loaded. */
  readonly depthwise: { readonly along: number; readonly across: number };
  /** Products whose sums a thread's registers hold, of results of few channels. */
  readonly few: number;
  /** The same, backward-filter. */
  readonly fewGradient: number;
  /** One filter a channel, backward-filter. */
  readonly depthwiseGradient: { readonly along: number; readonly across: number };
  /** Memory: passes that read and write beside products. */
  readonly stream: number;
  /** Memory: the pass that transforms or packs a filter, small and strided. */
  readonly filterStream: number;
  /** Each kernel of WinRS by name, in flops of the direct algorithm. */
  readonly winrs: Readonly<Record<string, number>>;
  /** What WinRS reaches altogether. */
  readonly winrsOverall: number;
  /** TB/s at which its buckets move. */
  readonly winrsBuckets: number;
}

/** Figures of fused Winograd's policies, by how data lies and the tile. */
export type SlicedPolicies = Readonly<
  Record<
    "lines" | "images" | "scattered",
    Readonly<Record<string, Readonly<Record<string, number>>>>
  >
>;

/** Shares of a rate that are left, and other ratios: no units. */
export interface DeviceShares {
  /** The mainloop's inner loop by the policy's name, of the best one's; 0 of policies that `auto` never takes. */
  readonly policies: Readonly<Record<string, number>>;
  /** A tile side of 128 that is stored across: its stores meet in the same banks. */
  readonly storedAcross: number;
  /** A side that the threads do not share row by row: every load has its own place. */
  readonly dealtUnevenly: number;
  /** The same of matrix units, but of gathered images whose loads come out even. */
  readonly dealtUnevenlyOnUnits: number;
  /**
   * What the mainloop gains by a packed operand: where it loads single elements, and where it stores across a tile, of a side of
   * 128 and of a narrower one.
   */
  readonly packing: { readonly single: number; readonly across: number; readonly narrow: number };
  /** What of implicit GEMM's rate is left where it reads its filter as it lies, element by element. */
  readonly strewn: number;
  /** A product whose every element finds its own tap, of one whose steps lie within taps. */
  readonly linear: number;
  /** Backward-filter with channels innermost where the input is still loaded one element at a time. */
  readonly singleLoads: number;
  /** Taps along a run of results at which half of the depthwise rates is reached. */
  readonly depthwiseTaps: number;
  /** What a load takes of results of few channels, in products. */
  readonly fewLoad: number;
  /** Warps of a multiprocessor at which half of their rate is reached. */
  readonly fewWarps: number;
  /** Of `stream`: loads of four channels that a result sums, whose neighbours' lie a pixel apart. */
  readonly fewSources: number;
  /** Warps of a multiprocessor from which on these loads find no line in its cache. */
  readonly fewApart: number;
  /** How much faster they are where threads take neighbouring groups. */
  readonly fewNeighbours: number;
  /** What a load of backward-filter with few channels takes, in products. */
  readonly gradientLoad: number;
  /** What a value takes there that the multiprocessors' shared cache answers, in products. */
  readonly gradientFar: number;
  /** Of `depthwise` of several input channels a group: f16 over f32. */
  readonly halfGroups: number;
  /** Of `stream`: results that leave one element at a time. */
  readonly single: number;
  /** Of `stream`: results of classes of strides that leave one element at a time, between those of other classes. */
  readonly interleaved: number;
  /** Of `stream`, where channels do not lie innermost: non-fused Winograd's transforms of 8x8, and what those of backward-filter read. */
  readonly transforms: {
    readonly large: number;
    readonly gradient: number;
    /** What is left where they are stored as two halves each, scaled tile by tile; of large ones `large` beside it. */
    readonly halves: number;
    /**
     * What backward-filter in halves takes longer for each product of a tile beyond 36: its two large transforms are kernels as long,
     * which push the others out of caches.
     */
    readonly halvesText: number;
  };
  /**
   * A matrix times a few vectors: products over the mainloop's rate, by how much less each vector takes of it whose neighbours along
   * the depth lie apart, how many times its part of memory's rate a multiprocessor draws, and what is left of that rate where rows
   * of a tile are 64 bytes.
   */
  readonly gemv: {
    readonly products: number;
    readonly apart: number;
    readonly draw: number;
    readonly short: number;
  };
  /** Of int8 on matrix units: a word of four over a half. */
  readonly words: number;
  /** The same of a policy, over what `policies` has of it and `words`; 1 where absent. */
  readonly bytes: Readonly<Record<string, number>>;
  /** Of matrix units: half of a tile that is read along its depth, by the bytes of such a row; 1 where absent. */
  readonly depthRows: Readonly<Record<number, number>>;
  /** The same where a step's depth lies in several runs, by the bytes of one. */
  readonly depthRuns: Readonly<Record<number, number>>;
  /** The same of implicit GEMM's images, beside it: the shorter the rows, the more often their places are found. */
  readonly gatheredRows: Readonly<Record<number, number>>;
  /** Of matrix units that load rows of taps' places once: a policy over what `policies` has of it; 1 where absent. */
  readonly tapRows: Readonly<Record<string, number>>;
  /** The same of backward-filter, whose steps share what they load with the taps of later ones. */
  readonly tapRings: Readonly<Record<string, number>>;
  /** Of matrix units: loads of fewer than eight halves. */
  readonly narrowLoads: number;
  /** Of matrix units: implicit GEMM whose images are loaded one half at a time, and those of backward-filter. */
  readonly singleHalves: { readonly gathered: number; readonly correlated: number };
  /** Of matrix units: implicit GEMM of channels innermost whose images are loaded one half or four at a time, in place of eight. */
  readonly fewHalves: { readonly one: number; readonly four: number };
  /**
   * Of matrix units: implicit GEMM of int8 whose images are loaded four words at a time, with filters as they lie; with steps of several
   * taps; with packed filters, which turn on their way into workgroup memory; and whose images are loaded one word at a time.
   */
  readonly gatheredWords: {
    readonly lying: number;
    readonly linear: number;
    readonly packed: number;
    readonly one: number;
  };
  /**
   * f32 in two halves: a value along their depth (two a product) over one of f16 with f32 results; 0 where `auto` takes it
   * never.
   */
  readonly f16x3: number;
  /** The same of a policy over what `policies` has of it and `f16x3`; less than of most where absent. */
  readonly halves: Readonly<Record<string, number>>;
  /**
   * Of matrix units whose sums move to registers every few steps: where these hold both, where they do not, and where they hold both of
   * f32 in halves, whose sums move less often.
   */
  readonly flushed: {
    readonly kept: number;
    readonly spilled: number;
    readonly halves: number;
  };
  /** Fused Winograd with small tiles, with 16 results a thread, and where the registers of all threads do not fit. */
  readonly sliced: {
    /** With sums that are stored in parts. */
    readonly stored: number;
    /**
     * Of the rate of scattered stores, what results along one axis reach in nchw: in whole fours of a row, and in others; and of
     * `rates.stream` what the first have of threads with all slices, as have four images innermost alone.
     */
    readonly rowStores: { readonly fours: number; readonly cut: number; readonly own: number };
    readonly small: number;
    readonly thin: number;
    readonly spilled: number;
    /**
     * What policies reach of each other, with channels innermost, with images so in whole vectors, and else, by the tile
     * "F(2x2,3x3)". Of others the first that fits is taken.
     */
    readonly policies: SlicedPolicies;
    /** The same of policies for few channels, four deep: those of threads with all slices are as deep as the channels are. */
    readonly few: SlicedPolicies;
  };
  /** Of `stream`: windows (im2win) that are written, channels innermost and elsewhere. */
  readonly windows: { readonly along: number; readonly across: number };
  /** The same of matrices (im2col). */
  readonly matrices: { readonly along: number; readonly across: number };
  /**
   * Time of WinRS' kernels over that with channels innermost where they lie elsewhere and no two tiles of a segment lie in a row:
   * with α = 16, and with smaller ones.
   */
  readonly winrsAcross: { readonly large: number; readonly small: number };
  /** The same in chwn, where images lie innermost, of tiles wherever they lie. */
  readonly winrsImages: { readonly large: number; readonly small: number };
  /** Of a WinRS kernel's rate, the same kernel by its name where threads load vectors; 1 where absent. */
  readonly winrsWide: Readonly<Record<string, number>>;
  /** Of a WinRS kernel's rate in f16, whose tiles are converted as they are multiplied. */
  readonly winrsHalf: number;
  /** Of a WinRS kernel's rate in f32, the same kernel on matrix units by its name; `winrsHalf` where absent. */
  readonly winrsUnits: Readonly<Record<string, number>>;
  /** How much longer than the mean the slowest workgroup of WinRS takes. */
  readonly winrsUneven: number;
  /** The speed of a WinRS kernel of threads whose sums are stored in parts, as a share of one's whose are not. */
  readonly winrsParts: number;
}

/** What a device is and what it reaches: all that predicted times and cuts depend on, and nothing else does. */
export interface DeviceModel {
  /** For people. */
  readonly name: string;
  /** Whether its size is a guess, as of a GPU that nobody knows. */
  readonly guessed?: boolean;
  /** A CPU: loops are kept short, and what unrolls much takes seconds to compile, so that `auto` leaves it aside. */
  readonly software: boolean;
  /** Multiprocessors, or what of a device runs workgroups by itself. */
  readonly multiprocessors: number;
  /** 32-bit registers of a multiprocessor. */
  readonly registers: number;
  /** Results that a thread of a product may hold, on matrix units too, before registers spill: `auto` takes no wider tiles. */
  readonly threadResults: number;
  /**
   * Warps that keep a multiprocessor's arithmetic busy, of which it runs so many side by side; fewer reach 1 − (1 − warps / busy) ^
   * power of it, those of the mainloop whose threads have 64 results by figures of their own (`loop`). `onUnits` is `busy` of that
   * on matrix units, whose sums leave registers for no more.
   */
  readonly warps: {
    readonly busy: number;
    readonly power: number;
    readonly loop: { readonly busy: number; readonly power: number };
    readonly onUnits: number;
  };
  /** Bytes of workgroup memory that the workgroups of a multiprocessor have together. */
  readonly sharedBytes: number;
  /** What it reaches, in TFLOP/s and TB/s. */
  readonly rates: DeviceRates;
  /**
   * Microseconds: a dispatch beside its work, a further kernel of WinRS, a multiply-add of non-fused Winograd's transforms,
   * of which each thread does a tile's one after the other, and what of a round of loads of a matrix times vectors is not hidden.
   */
  readonly times: {
    readonly dispatch: number;
    readonly winrsKernel: number;
    readonly transform: number;
    readonly loads: number;
  };
  /** What is left of a rate where something is in its way. */
  readonly shares: DeviceShares;
  /**
   * Where a product is cut: an element moved and a dispatch, in multiply-adds of the whole device, the filling of a tile, in
   * steps of its mainloop, and the storing of a result, in multiply-adds; on matrix units its storing and reading on the way, too.
   * `unitStore` is the filling and storing of a tile there, whatever multiplies it: of each result, in multiply-adds of the device.
   */
  readonly costs: {
    readonly element: number;
    readonly dispatch: number;
    readonly fill: number;
    readonly store: number;
    readonly storeAgain: number;
    readonly unitStore: number;
  };
}

/** A device in a sentence, after "on": `an NVIDIA H200`. */
export function deviceText({ name, software }: Pick<DeviceModel, "name" | "software">): string {
  if (software) return "a software device";
  return /^(NVIDIA|unknown)/.test(name) ? `an ${name}` : name;
}

/** Share of its arithmetic that a multiprocessor uses with so many warps: few hide no latency. */
export function occupancyRate({ warps: { busy, power } }: DeviceModel, warps: number): number {
  return warps >= busy ? 1 : 1 - (1 - warps / busy) ** power;
}

/** Workgroups of so many warps that a multiprocessor of the mainloop runs side by side. */
export function residentWorkgroups({ warps: { busy } }: DeviceModel, warps: number): number {
  return Math.max(1, Math.floor(busy / warps));
}

/** Workgroups of a policy of the mainloop that a multiprocessor runs side by side, by their warps. */
export function residentPolicies(device: DeviceModel, policy: TilePolicy): number {
  const { warps } = device;
  const busy = policy.matrix === undefined ? warps.busy : warps.onUnits;
  return residentWorkgroups({ ...device, warps: { ...warps, busy } }, policyWarps(policy));
}

/** Results of a thread whose products follow each other without waiting: fewer warps of such keep a multiprocessor busy. */
const MANY_RESULTS = 64;

/** The device as the warps of a policy of the mainloop keep it busy. */
export function policyDevice(device: DeviceModel, policy: TilePolicy): DeviceModel {
  const { warps } = device;
  const many = policy.threadRows * policy.threadColumns >= MANY_RESULTS;
  const met = policy.matrix !== undefined ? { busy: warps.onUnits } : many ? warps.loop : {};
  return { ...device, warps: { ...warps, ...met } };
}

/** Whether a thread's registers hold a policy's results. Thin policies without matrix units load more values for a step: then those count. */
export function holdsResults({ threadResults }: DeviceModel, policy: TilePolicy): boolean {
  const { rows, columns, depth, threadRows, threadColumns, matrix } = policy;
  const loads = matrix === undefined ? (rows + columns) * depth / policyThreads(policy) : 0;
  return Math.max(threadRows * threadColumns, loads) <= threadResults;
}

/** Whether `auto` weighs a policy: none whose threads hold too many results. */
export function weighsPolicy(device: DeviceModel, policy: TilePolicy): boolean {
  const { name, deeper = name } = policy;
  return device.shares.policies[deeper] !== 0 && holdsResults(device, policy);
}

/** A policy's share of the best one's rate. 1 where it is 0 or unknown: who names such a policy wants a price of it too. */
export function policyShare(
  { shares }: DeviceModel,
  { name, deeper = name, matrix }: TilePolicy,
): number {
  const bytes = matrix?.unit.component === "i8" ? shares.words * (shares.bytes[deeper] ?? 1) : 1;
  return (shares.policies[deeper] || 1) * bytes;
}

export function policyWarps(policy: TilePolicy): number {
  return policyThreads(policy) / 32;
}

/**
 * Time of workgroups spread over the device, in times of one that a multiprocessor runs at full rate: whole waves, then
 * what is left, which runs with fewer warps.
 *
 * @param resident Workgroups that a multiprocessor runs side by side.
 */
export function waveTime(
  device: DeviceModel,
  workgroups: number,
  resident: number,
  warps: number,
): number {
  const slots = resident * device.multiprocessors;
  const wave = (each: number) => each === 0 ? 0 : each / occupancyRate(device, each * warps);
  const left = Math.ceil((workgroups % slots) / device.multiprocessors);
  return Math.floor(workgroups / slots) * wave(resident) + wave(left);
}

/** Microseconds of `multiplyAdds` at `teraflops`. */
export function productTime(multiplyAdds: number, teraflops: number): number {
  return 2 * multiplyAdds / (teraflops * 1e6);
}

/** Microseconds of moving so many bytes at `terabytes` a second. */
export function moveTime(bytes: number, terabytes: number): number {
  return bytes / (terabytes * 1e6);
}

/**
 * Microseconds of a mainloop that multiplies while its tiles move: workgroups overlap each other, but none
 * multiplies before its first tile is there, nor while it stores. Where both take as long, the kernel takes 1.4 times that, on matrix units,
 * of which a multiprocessor runs fewer workgroups, 1.6 times (sixteen products of Winograd's halves, by forced tiles).
 */
export function overlappedTime(product: number, movement: number, onUnits = false): number {
  const power = onUnits ? 1.5 : 2;
  return (product ** power + movement ** power) ** (1 / power);
}

/** Microseconds of a pass that moves so many bytes, and multiplies nothing. */
export function copyTime(bytes: number, terabytes: number, device: DeviceModel): number {
  return passTime(0, moveTime(bytes, terabytes), device);
}

/** A pass takes as long as the slower of its arithmetic and its traffic, and what a dispatch costs. */
export function passTime(product: number, movement: number, { times }: DeviceModel): number {
  return Math.max(product, movement) + times.dispatch;
}
