import { policyThreads, type TilePolicy } from "../../kernels/policy.ts";

/** Rates in TFLOP/s of products (two flops a multiply-add), in TB/s of memory; `along` with channels innermost, `across` elsewhere. */
export type DeviceRates = Readonly<{
  /** The mainloop on operands that lie as it reads them: transformed or packed. */
  packed: number;
  /** The mainloop where it gathers images on the way: implicit GEMM, forward and backward-data. */
  gathered: number;
  /** The same where it gathers both operands, backward-filter. */
  correlated: Readonly<Record<"along" | "across", number>>;
  /** Fused Winograd's products on busy multiprocessors: one tiled axis with up to 64 results a thread, with more, and two. */
  sliced: { one: number; oneWide: number; two: number };
  /** Memory: what all of a fused kernel's workgroups store, as whole lines (channels innermost) and as single elements. */
  slicedStore: { lines: number; scattered: number };
  /** The mainloop on words of four int8 (`dot4I8Packed`), in TOPS: two a product of int8. */
  dot4: number;
  /** Products in plans that have no model of their own, filling and storing of tiles included. */
  planned: number;
  /** One thread a result. */
  direct: number;
  /** One filter a channel, of endless taps, forward and backward-data, and backward-filter. */
  depthwise: Readonly<Record<"along" | "across", number>>;
  depthwiseGradient: Readonly<Record<"along" | "across", number>>;
  /** Products whose sums a thread's registers hold, of results of few channels, forward and backward-data, and backward-filter. */
  few: number;
  fewGradient: number;
  /** Memory: passes that read and write beside products. */
  stream: number;
  /** Memory: the pass that transforms or packs a filter, small and strided. */
  filterStream: number;
  /** Each kernel of WinRS by name, in flops of the direct algorithm; what it has not is never taken. */
  winrs: Readonly<Record<string, number>>;
  /** What WinRS reaches altogether, and TB/s at which its buckets move. */
  winrsOverall: number;
  winrsBuckets: number;
}>;

/** Figures of fused Winograd's policies, by how data lies and the tile. */
export type SlicedPolicies = Readonly<
  Record<
    "lines" | "images" | "scattered",
    Readonly<Record<string, Readonly<Record<string, number>>>>
  >
>;

/** Shares of a rate that are left, and other ratios: no units. Of policies and kernels by name 1 where absent. */
export type DeviceShares = Readonly<{
  /** The mainloop's inner loop by the policy's name, of the best one's; 0 of policies that `auto` never takes. */
  policies: Readonly<Record<string, number>>;
  /** A tile side of 128 that is stored across: its stores meet in the same banks. */
  storedAcross: number;
  /** A side that the threads do not share row by row, so that every load has its own place; of matrix units but where loads come out even. */
  dealtUnevenly: number;
  dealtUnevenlyOnUnits: number;
  /** What the mainloop gains by a packed operand: of single elements, and of what it stores across a tile's side of 128, and a narrower one. */
  packing: { single: number; across: number; narrow: number };
  /** Implicit GEMM that reads its filter as it lies, element by element. */
  strewn: number;
  /** A product whose every element finds its own tap, of one whose steps lie within taps. */
  linear: number;
  /** Backward-filter with channels innermost where the input is still loaded one element at a time. */
  singleLoads: number;
  /** Taps along a run of results at which half of the depthwise rates is reached. */
  depthwiseTaps: number;
  /** Of results of few channels: a load, in products, and warps of a multiprocessor at which half of their rate is reached. */
  fewLoad: number;
  fewWarps: number;
  /** Of `stream`: loads of four channels that a result sums, whose neighbours' lie a pixel apart. */
  fewSources: number;
  /** Of backward-filter with few channels, in products: a load, and a value that the multiprocessors' shared cache answers. */
  gradientLoad: number;
  gradientFar: number;
  /** Of `depthwise` of several input channels a group: f16 over f32. */
  halfGroups: number;
  /** Of f16: products of threads that convert halves of their tiles as they multiply them. */
  halfTiles: number;
  /** Of `stream`: results that leave one element at a time. */
  single: number;
  /** Of `stream`, where channels do not lie innermost: non-fused Winograd's transforms of 8x8. */
  largeTransforms: number;
  /** Of `stream`: windows (im2win) and matrices (im2col) that are written. */
  windows: Readonly<Record<"along" | "across", number>>;
  matrices: Readonly<Record<"along" | "across", number>>;
  /**
   * A matrix times a few vectors: products over the mainloop's rate, by how much less each vector takes of it whose neighbours along
   * the depth lie apart, how many times its part of memory's rate a multiprocessor draws, and what is left of that rate where rows
   * of a tile are 64 bytes.
   */
  gemv: Readonly<Record<"products" | "apart" | "draw" | "short", number>>;
  /** Of int8 on matrix units: a word of four over a half, and what policies have over what `policies` has of them and that. */
  words: number;
  bytes: Readonly<Record<string, number>>;
  /** Of matrix units: half of a tile that is read along its depth, by the bytes that lie in a row. */
  depthRows: Readonly<Record<number, number>>;
  /** The same of implicit GEMM's images, beside it: the shorter the rows, the more often their places are found. */
  gatheredRows: Readonly<Record<number, number>>;
  /** Of f16 on matrix units by policy, over what `policies` has: images that are gathered tap by tap. */
  gathered: Readonly<Record<string, number>>;
  /** Of matrix units by policy, over what `policies` has: those that load rows of taps once, of backward-filter with those of later steps. */
  tapRows: Readonly<Record<string, number>>;
  tapRings: Readonly<Record<string, number>>;
  /** Of matrix units: loads of fewer than eight halves. */
  narrowLoads: number;
  /** Of matrix units: implicit GEMM whose images are loaded one half at a time, and those of backward-filter. */
  singleHalves: { gathered: number; correlated: number };
  /** Of f16 on matrix units by policy, over that: tiles of few rows load single halves for few products. */
  singles: Readonly<Record<string, number>>;
  /** Of matrix units: implicit GEMM of channels innermost whose images are loaded one half or four at a time, in place of eight. */
  fewHalves: { one: number; four: number };
  /**
   * Of matrix units: implicit GEMM of int8 whose images are loaded four words at a time, with filters as they lie; with steps of several
   * taps; with packed filters, which turn on their way into workgroup memory; and whose images are loaded one word at a time.
   */
  gatheredWords: Readonly<Record<"lying" | "linear" | "packed" | "one", number>>;
  /** f32 in two halves: a value along their depth (two a product) over one of f16 with f32 results; 0 where `auto` takes it never. */
  f16x3: number;
  /** The same of a policy over what `policies` has of it and `f16x3`; less than of most where absent. */
  halves: Readonly<Record<string, number>>;
  /**
   * Of matrix units whose sums move to registers every few steps: where these hold both, where they do not, and where they hold both of
   * f32 in halves, whose sums move less often.
   */
  flushed: { kept: number; spilled: number; halves: number };
  /** Fused Winograd. */
  sliced: {
    /**
     * Of the rate of scattered stores, what results along one axis reach in nchw: in whole fours of a row, and in others; and of
     * `rates.stream` what the first have of threads with all slices, as have four images innermost alone.
     */
    rowStores: { fours: number; cut: number; own: number };
    /** Of 16 results a thread, and where the registers of all threads do not fit. */
    thin: number;
    spilled: number;
    /** What policies reach of each other, by how data lies: of others the first that fits is taken. */
    policies: SlicedPolicies;
    /** The same of policies for few channels, four deep: those of threads with all slices are as deep as the channels are. */
    few: SlicedPolicies;
  };
  /** Time of WinRS' kernels over that with channels innermost where no two tiles of a segment lie in a row: with α = 16, and smaller ones. */
  winrsAcross: { large: number; small: number };
  /** The same in chwn, where images lie innermost, of tiles wherever they lie. */
  winrsImages: { large: number; small: number };
  /** Of a WinRS kernel's rate in f32: in f16, whose tiles are converted as they are multiplied, and by name on matrix units. */
  winrsHalf: number;
  winrsUnits: Readonly<Record<string, number>>;
  /** How much longer than the mean the slowest workgroup of WinRS takes, and the speed of its kernels whose sums are stored in parts. */
  winrsUneven: number;
  winrsParts: number;
}>;

/** What a device is and what it reaches: all that predicted times and cuts depend on, and nothing else does. */
export interface DeviceModel {
  /** For people. */
  readonly name: string;
  /** Whether its size is a guess, as of a GPU that nobody knows. */
  readonly guessed?: boolean;
  /** A CPU: loops are kept short. */
  readonly software: boolean;
  /** Whether what unrolls much takes seconds or minutes to compile, so that `auto` leaves it aside. */
  readonly slowCompiler: boolean;
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
    readonly loop: Readonly<Record<"busy" | "power", number>>;
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
  readonly times: Readonly<Record<"dispatch" | "winrsKernel" | "transform" | "loads", number>>;
  /** What is left of a rate where something is in its way. */
  readonly shares: DeviceShares;
  /**
   * Where a product is cut: an element moved and a dispatch, in multiply-adds of the whole device, the filling of a tile, in
   * steps of its mainloop, and the storing of a result, in multiply-adds; on matrix units its storing and reading on the way, too.
   * `unitStore` is the filling and storing of a tile there, whatever multiplies it: of each result, in multiply-adds of the device.
   */
  readonly costs: Readonly<
    Record<"element" | "dispatch" | "fill" | "store" | "storeAgain" | "unitStore", number>
  >;
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
function residentWorkgroups({ warps: { busy } }: DeviceModel, warps: number): number {
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
