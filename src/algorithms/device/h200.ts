import type { DeviceModel } from "./model.ts";
import { softwareFigures, softwarePolicies } from "./software.ts";

/**
 * An NVIDIA H200, the device that is assumed where none is said.
 *
 * - `rates`, but those of WinRS and `direct`, and `shares.sliced`: fitted to
 *   `bench/results/h200-2026-11-20/variants.jsonl` (`bench/variants.ts`); `bench/planner_check.ts` shows how well. Of `direct`
 *   nothing was measured.
 * - `rates.depthwise`, `depthwiseGradient`, `shares.depthwiseTaps`: `bench/fit_device_model.ts --all --rounds 12 --figures
 *   rates.depthwise,rates.depthwiseGradient,shares.depthwiseTaps bench/results/h200-2026-11-22/networks_first.jsonl`.
 * - `rates.few*`, `shares.few*`, `gradientLoad`, `gradientFar`: by hand, to `bench/results/h200-2026-11-22/few_channels.jsonl`
 *   (`wgconv bench --algorithm depthwise` of first and last layers and small groups).
 * - `times`, `rates.fewGradient`, `shares.transforms`, `policies.tiny`, `costs.dispatch`: by hand, to a calibration's probes, and to
 *   the choices of `rivals_*.jsonl` of 2026-11-23 (docs/performance/planner.md); `policies.short` and `slim`: to a calibration's
 *   probes, checked against `few_rows.jsonl` and `few_columns.jsonl` there.
 * - `shares.singleLoads`: by hand, to eight first layers on an H100 (`halves.txt` 3 of h100-2026-11-26), where 0.716 of the fit below
 *   predicted 1.22 times what they take.
 * - `shares.single`, and of `policies` `sliver`, `flat`, `narrow`: from a fit of all figures to that
 *   day's `networks_splits`, `policies_narrow` and `workspace_any` with `variants.jsonl`, of which only these are kept. What
 *   they choose among the eight policies of each case of `policies_narrow.jsonl` takes 2.2 % longer than the best (geomean).
 * - `shares.linear`, `windows`, `matrices`: `bench/results/h200-2026-11-21/im2win.wgconv.jsonl` and `im2win.parts.jsonl`
 *   (`bench/im2win.ts`), checked by `bench/planner_check.ts bench/results/h200-2026-11-21/im2win.wgconv.jsonl`.
 * - `rates.winrs`, in nhwc: the rates by which the model predicts what kernels alone take in `bench/winrs_sweep.ts 200 nhwc`,
 *   `bench/results/h200-2026-11-28/winrs_sweep.txt`, whose segments began with the smaller ones; a16n9r8's, which was not alone
 *   there, by its choices, a2n1r1's of the two problems of 128 and 256 channels; nested kernels', a8n3r6's and a8n4r5's of
 *   `shorter_winrs.jsonl` there; those of 32 slices by hand, to F3 and F4 of `sets.txt` 5 there and less than F4c64 has, by d29 and d63.
 *   `winrsUneven`: `winrs_sweep.txt` of 2026-11-20.
 *   `winrsAcross.small` is of the probes of two calibrations, whose segments are a tile wide; `large` by as much more as kernels
 *   in nhwc are faster since, and `winrsImages` and `winrsParts`: by hand, to `bench/results/h100-2026-11-28/`
 *   (docs/performance/winrs.md, Nested kernels), the former by as much more as nested kernels and those of 8 slices in nhwc are since.
 * - `warps`, the other `shares.policies`, `shares.packing`: `bench/gemm_policies.ts` (docs/performance/gemm.md, Policies). 8 warps of `large` and `huge` never
 *   keep a multiprocessor busy, so theirs is more than what they reach. `dealtUnevenly` is a guess.
 * - `rates.dot4`: `bench/results/h200-2026-11-22/int8.jsonl`, whose 16 cases are predicted within 8 %.
 * - `shares.unpacking`: by hand, to Conv5's layers in `half_transforms.jsonl` there, whose products take most of the time.
 * - `shares.winrsHalf`: five layers of `winrs_f16.jsonl` and `winrs_f16_half_tile.jsonl` there, 0.82 to 0.93.
 * - `shares.winrsUnits`: by hand, to `bench/winrs_sweep.ts --half 160 nhwc` over `rates.winrs` of then, by which they are
 *   divided since (`winrs.txt` 6 of 2026-11-26), and to what
 *   of its 25 problems that leaves: predicted 0.98 to 1.10 of what was measured, by kernel (geomeans). Of α = 8 and 16 since, to
 *   `winrs_units.txt` of 2026-11-27, on an H100, less 3 %, and a8n4r5 and a8n6r3 such that what is faster on F6 and F8 is taken.
 * - `shares.policies` on matrix units and `depthRows`: f16 at 4096³, `wgconv gemm --backend dawn --policy P
 *   --balance none` (docs/performance/matrix_units.md); of tiles of 96 and 192, and `gatheredRows`, also forward of resnet3x3's
 *   Conv3 to Conv5 at N64 (`trials.txt` of 2026-11-23).
 *   `short` and `flat`: by hand, to twelve layers of few rows (`matrix_few_rows.jsonl` of 2026-11-24).
 *   `192-wide` and `square-96-*`: resnet3x3's layers at N64 and eight products, `matrix_tiles.jsonl` there.
 * - `shares.tapRows`: by hand, to forward of resnet3x3's and vgg16's layers (`tap_rows.txt` of 2026-11-25) and eight layers of
 *   networks.txt (`networks_rows.jsonl` there), and since to what `costs.unitStore` leaves. Since by `banks.txt` of an H100 that day:
 *   `gatheredRows` and these by what rows in different banks gain (1.07 and 1.02 to 1.04 of a loop), of `-deep` those of `large` and
 *   `192-columns` to 15 layers, of the others as much more than what rows of one matrix have; `words` by int8's 8192³. Since by what
 *   those of eight subgroups gain where no load is behind a branch, and `-deep` where places are found once, by what is then left of
 *   `conv_f16_filters.jsonl` and of forced tiles (`filters.txt` there); of tiles but 128x256x96 and 128x192x96 as much more than before
 *   as of these, not measured. Since all by 1.04, what sharing matrices gains forward and backward-data of ten layers (`taps.txt` of 2026-11-26).
 * - `shares.gatheredRows` of 128 bytes: by hand, to five layers on 128x192x64 (`taps.txt` of an H100, 2026-11-26, 7; checked by 9).
 * - `shares.depthRuns`: by hand, to forward of eight of those layers on four tiles, filters packed and as they lie (`filters.txt` of an
 *   H100, 2026-11-25); of 16 bytes an estimate.
 * - `shares.tapRings`: by hand, to backward-filter of some ten layers on each tile, forced, beside what others have of what is
 *   predicted of them there, and of tiles of few rows and of five taps with what `policies` say of them (`taps.txt` of an H100,
 *   2026-11-26); of `96-columns` and `square-96-columns` to texts of theirs since dropped, and of steps of 32 of `192-short`, `384-flat`
 *   and both `160-` as much less as of others.
 * - `shares.words`, `bytes`: by hand, to forty products of int8 that no list had (`unit_ends.txt` of 2026-11-25); of `bytes` `ahead-wide`
 *   to 8192³ and 4096³ `nt` over `ahead-tall` (docs/performance/matrix_units.md).
 * - `shares.narrowLoads`: backward-filter of resnet3x3's four layers at N64 with loads of four halves over the same with eight
 *   (geomean; docs/performance/matrix_units.md).
 * - `shares.singleHalves`: resnet3x3's layers at N64 in nchw over what was predicted of them, eight of fwd and bwd-data, four of
 *   bwd-filter (geomeans; `matrix_conv_f16_nchw.jsonl` of 2026-11-23).
 * - `shares.fewHalves`: stems of networks and layers of 12, 20, 36 channels in nhwc over what was predicted of them, eleven of one
 *   half, four of four (geomeans; `matrix_few_channels.jsonl` of 2026-11-24).
 * - `shares.gatheredWords`: by hand, to 14 layers on up to 24 tiles each (`int8_rows.jsonl` of 2026-11-26), and to 30 of other
 *   networks (`other_layers_int8.jsonl` there).
 * - `sharedBytes`: two workgroups of 24 KiB share a multiprocessor, two of 25 do not (docs/performance/matrix_units.md).
 * - `shares.halfGroups`: 15 layers of groups and few channels in f16 over what was predicted of them, geomeans 0.58 forward, 0.60
 *   backward-data and 0.63 backward-filter (`taps.txt` of an H100, 2026-11-26, 8).
 * - `shares.f16x3`, `flushed`: `tall`, `square` and `large` at 4096³ (`bench/results/h200-2026-11-23/matrix_flush.txt`).
 * - `shares.halves`, `flushed.halves`: by hand, to 28 products of Winograd and 4096³, each tile forced (`drift.txt` of an H100, 2026-11-26):
 *   0.81 to 1.10 of what is predicted, the tiles that are taken 0.94 to 1.08; `192-rows` as `192-columns`.
 * - `transforms.halves`: by hand, to passes of `halves.txt` of 2026-11-26; `halvesText`, and `matrix-wide` of `shares.halves`: by hand, to
 *   what is fastest of 61 cases, and Conv4N32 forward (`tiles.txt` of an H100 that day).
 * - `shares.interleaved` is an estimate: a store of one element takes its whole sector's time, of 5 TB/s in the cache.
 * - `rates.slicedStore`, `shares.sliced.flushed`: by hand, to the two `fused_*.jsonl` and `.txt` there; `shares.sliced.policies` to
 *   `addresses.txt` and `fused.jsonl` of 2026-11-24, but for 48x32x8_12x8 and 32x48x8_8x12, which were not measured since: what
 *   they had beside their neighbours before.
 * - `shares.sliced.few`, but for 32x32x4_16x8, and `rowStores.own`: by hand, to 245 forced cases of fifteen
 *   layers of few channels (`own_slices.jsonl` of 2026-11-27); where results are stored in vectors three of four are predicted within 12 %.
 * - `shares.gemv`, `times.loads`: by hand, to some 300 ways to deal eighteen products to threads (`gemv.txt` of an H100, 2026-11-26).
 * - Of `shares.sliced` `stored`, `images` and 64x64x8_8x8d, and `shares.winrsWide`: by hand, to what they gain beside their neighbours
 *   (`wide.txt` of an H100, 2026-11-26); of 2-D tiles in `images` what `scattered` has.
 * - `costs.fill`, `store`: by hand, to the eight policies of each case of `policies_narrow.jsonl` and the six of
 *   `policies_shallow.txt` in `bench/results/h200-2026-11-22`, whose choices take 2.0 % longer than the best (geomean of 29).
 * - `costs.unitStore`: 3.8 to 4.2 us of a wave of tiles, whichever; `gatheredRows`, `tapRows`, and of policies on matrix units `short`,
 *   `96-columns`, `192-rows` and `square-96-rows`: by hand, to what of 270 records that leaves (docs/performance/matrix_units.md, What
 *   tiles take beside their steps).
 * - `warps.loop`, `policies.large`, `huge`: 2048³ and 256 x 256 x 65536 by splits, and 57 products (docs/performance/gemm.md, Half
 *   waves); `packing.narrow`: nine products there.
 * - `costs.storeAgain`: 3.9 us of a tile whose step of 16 takes 0.39 us (`matrix_stored.txt` of 2026-11-24).
 * - `costs`: 25 T multiply-adds a second against 1.5 T elements moved, some in the cache, and 2 µs a dispatch.
 */
export const H200: DeviceModel = {
  name: "NVIDIA H200",
  software: false,
  multiprocessors: 132,
  registers: 65_536,
  warps: { busy: 12, power: 1.6, loop: { busy: 9, power: 1.5 }, onUnits: 8 },
  sharedBytes: 49_152,
  rates: {
    packed: 52,
    gathered: 46.5,
    correlated: { along: 44, across: 39 },
    sliced: { one: 38, oneWide: 36, two: 31 },
    slicedStore: { lines: 2.1, scattered: 0.8 },
    dot4: 106,
    planned: 42,
    direct: 5,
    depthwise: { along: 38.7, across: 33.8 },
    few: 31,
    fewGradient: 51,
    depthwiseGradient: { along: 23.7, across: 24.7 },
    stream: 4.5,
    filterStream: 2.3,
    winrs: {
      a2n1r1: 41.5,
      a4n2r3: 62.5,
      a4n3r2: 63.9,
      a8n3r6: 88.6,
      a8n4r5: 100.6,
      a8n5r4: 99.8,
      a8n6r3: 93,
      a8n7r2: 71,
      a16n5r12: 117.8,
      a16n6r11: 134.2,
      a16n7r10: 142.2,
      a16n8r9: 149.8,
      a16n9r8: 152,
      a4n2r3xa4n2r3: 83,
      a4n3r2xa4n3r2: 89.7,
      a4n3r2xa8n3r6: 111,
      a4n2r3xa8n4r5: 120,
    },
    winrsOverall: 93,
    winrsBuckets: 4,
  },
  times: { dispatch: 1.9, winrsKernel: 2.6, transform: 0.0036, loads: 0.13 },
  shares: {
    policies: {
      tiny: 0.545,
      sliver: 0.186,
      flat: 0.516,
      narrow: 0.669,
      short: 0.8,
      slim: 0.72,
      block: 0,
      small: 0.86,
      wide: 0.96,
      tall: 1,
      broad: 0.93,
      large: 0.89,
      huge: 0.965,
      "matrix-small": 3.06,
      "matrix-tall": 4.2,
      "matrix-wide": 5.2,
      "matrix-192-wide": 4.9,
      "matrix-192-short": 2.8,
      "matrix-384-flat": 1.9,
      "matrix-160-columns": 5.2,
      "matrix-160-wide": 4.6,
      "matrix-short": 2.8,
      "matrix-flat": 1.9,
      "matrix-square": 5.9,
      "matrix-square-96-columns": 5.9,
      "matrix-square-96-rows": 5.65,
      "matrix-ahead": 6.63,
      "matrix-eight": 3.97,
      "matrix-96-columns": 5,
      "matrix-96-rows": 5.2,
      "matrix-192-columns": 5.67,
      "matrix-192-rows": 5.4,
      "matrix-large": 6.15,
      "matrix-ahead-tall": 6.95,
      "matrix-ahead-wide": 6.92,
    },
    storedAcross: 0.92,
    dealtUnevenly: 0.6,
    packing: { single: 0.1, across: 0.08, narrow: 0.02 },
    strewn: 0.9,
    unpacking: 0.72,
    linear: 0.9,
    singleLoads: 0.87,
    depthwiseTaps: 10.8,
    fewLoad: 1.5,
    fewWarps: 5,
    fewSources: 0.19,
    fewApart: 24,
    fewNeighbours: 3,
    gradientLoad: 8,
    gradientFar: 18,
    halfGroups: 0.6,
    single: 0.297,
    interleaved: 0.2,
    transforms: { large: 0.88, gradient: 0.5, halves: 0.85, halvesText: 0.0035 },
    gemv: { products: 0.38, apart: 0.36, draw: 2.1, short: 0.91 },
    words: 0.48,
    bytes: {
      "matrix-ahead-wide": 1.03,
      "matrix-large": 1.1,
      "matrix-small": 0.9,
      "matrix-flat": 0.8,
    },
    depthRows: { 64: 0.89, 32: 0.8 },
    depthRuns: { 64: 0.97, 32: 0.8, 16: 0.6 },
    gatheredRows: { 128: 1.17, 64: 1.26, 32: 1.07 },
    tapRows: {
      "matrix-wide": 1.399,
      "matrix-192-wide": 1.284,
      "matrix-short": 1.248,
      "matrix-flat": 1.269,
      "matrix-square": 1.227,
      "matrix-square-96-columns": 1.144,
      "matrix-96-columns": 1.175,
      "matrix-192-columns": 1.201,
      "matrix-large": 1.222,
      "matrix-eight-deep": 1.383,
      "matrix-96-columns-deep": 1.539,
      "matrix-96-rows-deep": 1.383,
      "matrix-192-columns-deep": 1.57,
      "matrix-192-rows-deep": 1.383,
      "matrix-large-deep": 1.591,
    },
    tapRings: {
      "matrix-192-wide": 1.48,
      "matrix-192-wide-deep": 1.65,
      "matrix-192-short": 1.4,
      "matrix-192-short-deep": 1.9,
      "matrix-384-flat": 1.6,
      "matrix-384-flat-deep": 2.1,
      "matrix-160-columns": 1.13,
      "matrix-160-columns-deep": 1.5,
      "matrix-160-wide": 1.45,
      "matrix-160-wide-deep": 1.64,
      "matrix-square-96-columns": 1.1,
      "matrix-square-96-columns-deep": 1.2,
      "matrix-96-columns": 0.8,
      "matrix-192-columns": 1.25,
      "matrix-192-columns-deep": 1.66,
    },
    dealtUnevenlyOnUnits: 0.84,
    narrowLoads: 0.49,
    singleHalves: { gathered: 0.71, correlated: 0.45 },
    fewHalves: { one: 0.4, four: 0.71 },
    gatheredWords: { lying: 1.1, linear: 0.9, packed: 0.67, one: 0.72 },
    f16x3: 1.08,
    halves: {
      "matrix-tall": 1,
      "matrix-wide": 0.65,
      "matrix-square": 0.93,
      "matrix-square-96-rows": 0.93,
      "matrix-square-96-columns": 0.88,
      "matrix-large": 0.8,
      "matrix-eight": 0.94,
      "matrix-96-columns": 0.74,
      "matrix-192-columns": 0.9,
      "matrix-192-rows": 0.9,
    },
    flushed: { kept: 0.68, spilled: 0.33, halves: 0.93 },
    sliced: {
      flushed: 0.75,
      stored: 0.955,
      joined: 0.97,
      rowStores: { fours: 1.42, cut: 0.76, own: 0.4 },
      small: 0.78,
      thin: 0.25,
      spilled: 0.2,
      policies: {
        lines: {
          "F(2x2,3x3)": { "32x64x8_8x16": 1.05, "32x48x8_8x12": 1.03, "32x32x8_8x8": 0.93 },
          "F(2,3)": { "64x64x8_8x16": 1.2 },
          "F(4,3)": { "64x64x8_8x8": 1.08, "64x32x8_8x8": 0.87 },
          "F(6,3)": { "64x64x8_8x16": 1.1 },
        },
        images: {
          "F(2x2,3x3)": { "64x32x8_8x16": 1.19, "48x32x8_12x8": 1.19, "32x32x8_8x8": 1 },
          "F(2,3)": { "64x64x8_8x16": 1.26 },
          "F(4,3)": { "64x64x8_8x8": 1.06, "64x32x8_8x8": 0.99 },
          "F(6,3)": { "64x64x8_8x16": 1.16 },
        },
        scattered: {
          "F(2x2,3x3)": { "64x32x8_8x16": 1.19, "48x32x8_12x8": 1.19, "32x32x8_8x8": 1 },
          "F(2,3)": { "64x64x8_8x16": 0.9 },
          "F(4,3)": {
            "64x64x8_8x8d": 1.05,
            "64x64x8_8x8": 0.96,
            "64x32x8_8x8": 1,
          },
          "F(6,3)": { "64x64x8_8x16": 1.03 },
        },
      },
      few: {
        lines: {
          "F(4,3)": { "32x32x4_4x4a": 0.73, "32x64x4_4x4a": 0.88, "64x32x4_4x4a": 0.72 },
          "F(6,3)": { "32x32x4_4x4a": 0.63, "32x64x4_4x4a": 0.68, "64x32x4_4x4a": 0.6 },
          "F(4,5)": { "32x32x4_4x4a": 0.7, "32x64x4_4x4a": 0.84, "64x32x4_4x4a": 0.74 },
        },
        images: {
          "F(4,3)": { "32x32x4_4x4a": 0.84, "32x64x4_4x4a": 0.82, "64x32x4_4x4a": 0.96 },
          "F(6,3)": { "32x32x4_4x4a": 0.76, "32x64x4_4x4a": 0.72, "64x32x4_4x4a": 0.83 },
          "F(4,5)": { "32x32x4_4x4a": 0.84, "32x64x4_4x4a": 0.8, "64x32x4_4x4a": 0.86 },
        },
        scattered: {
          "F(4,3)": { "32x32x4_4x4a": 0.75, "32x64x4_4x4a": 0.75, "64x32x4_4x4a": 0.9 },
          "F(6,3)": { "32x32x4_16x8": 1.03 },
          "F(4,5)": { "32x32x4_16x8": 1.03 },
        },
      },
    },
    windows: { along: 0.8, across: 0.66 },
    matrices: { along: 0.7, across: 0.42 },
    winrsAcross: { large: 2.6, small: 2.74 },
    winrsImages: { large: 1.29, small: 1.2 },
    winrsWide: { a2n1r1: 1.18, a4n2r3: 1.085, a4n3r2: 1.085 },
    winrsHalf: 0.88,
    winrsUnits: {
      a4n2r3: 4.64,
      a4n3r2: 5.16,
      a8n3r6: 2.8,
      a8n4r5: 2.54,
      a8n5r4: 3.07,
      a8n6r3: 2.63,
      a8n7r2: 3.49,
      a16n5r12: 1.86,
      a16n6r11: 1.83,
      a16n7r10: 1.79,
      a16n8r9: 2.0,
      a16n9r8: 1.94,
    },
    winrsUneven: 0.05,
    winrsParts: 0.9,
  },
  costs: { element: 16, dispatch: 49e6, fill: 1, store: 16, storeAgain: 160, unitStore: 24 },
};

/** The device that a request is for; an H200 where it says nothing. */
export function deviceOf({ device = H200 }: { readonly device?: DeviceModel }): DeviceModel {
  return device;
}

/**
 * A CPU that runs so many workgroups of 256 threads side by side, by the figures of its driver ({@linkcode softwareFigures}).
 *
 * @param adapter Its name, e.g. `llvmpipe (LLVM 15.0.6, 256 bits)`.
 */
export function softwareDevice(workgroupsInFlight: number, adapter = ""): DeviceModel {
  return modelOf(workgroupsInFlight, undefined, adapter);
}

/**
 * The model of an opened device. A software device says how many workgroups it runs side by side, and stays one whatever
 * figures are given: its loops are cut short, it weighs a CPU's policies in place of those of a GPU that is given, and a
 * transform's threads wait for nothing.
 *
 * @param given Figures in place of an H200's, or of the software device's own.
 * @param adapter The device's name.
 */
export function modelOf(
  workgroupsInFlight: number | undefined,
  given?: DeviceModel,
  adapter = "",
): DeviceModel {
  if (workgroupsInFlight === undefined) return given ?? H200;
  if (given?.software) return given;
  const multiprocessors = Math.max(1, Math.round(workgroupsInFlight / 2));
  const { rates, times, shares } = given === undefined
    ? softwareFigures(adapter, multiprocessors, H200)
    : {
      ...given,
      times: { ...given.times, transform: 0, loads: 0 },
      shares: { ...given.shares, policies: softwarePolicies(given.shares) },
    };
  const figures = { ...given ?? H200, rates, times, shares };
  return { ...figures, name: "software", software: true, multiprocessors };
}
