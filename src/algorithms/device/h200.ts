import type { DeviceModel } from "./model.ts";
import { softwareFigures, softwarePolicies } from "./software.ts";

/**
 * An NVIDIA H200, the device that is assumed where none is said. Its figures are fitted to times that were measured on an H200, those of
 * matrix units also on an H100, so that choices count and not the figures themselves: `bench/planner_check.ts` says how much what is
 * chosen loses to the best. `bench/fit_device_model.ts --figures NAMES RECORDS` fits figures to records; no command makes all of them,
 * and the list says of each how it was found.
 *
 * - `rates`, `shares.sliced`: `bench/fit_device_model.ts`, to each algorithm's tiles by themselves on ResNet's and VGG's layers.
 *   `rates.depthwise*` and `shares.depthwiseTaps`: to the layers of `bench/suites/networks.txt`. `rates.few*`, `shares.few*`,
 *   `gradientLoad`, `gradientFar`: by hand, to first and last layers and small groups. Of `direct` nothing was measured.
 * - `rates.winrs` and what else begins with `winrs`: to each kernel alone on some forty problems.
 * - `rates.dot4`: 16 cases of int8, predicted within 8 %.
 * - `warps`, `shares.policies` of threads, `shares.packing`: products, each policy forced. 8 warps of `large` and `huge` never keep a
 *   multiprocessor busy, so theirs is more than what they reach. `dealtUnevenly` is a guess.
 * - `shares.linear`, `windows`, `matrices`: parts of im2win and im2col by themselves.
 * - `shares.policies` on matrix units: f16 at 4096³, each tile forced (`wgconv gemm --backend dawn --policy P --balance none`), and
 *   ResNet's layers of 64 images. `tapRows`, `tapRings`, `gatheredRows`, `depthRuns`: by hand, to ResNet's, VGG's and networks' layers on
 *   each tile; `depthRuns` of 16 bytes is an estimate.
 * - `shares.words`, `bytes`, `gatheredWords`: by hand, to some eighty products and layers of int8.
 *   `matrix-sixteen`, which an H200's units do not have, is a guess.
 * - `narrowLoads`, `singleHalves`, `fewHalves`, `halfGroups`: means of 4 to 15 layers each over what is predicted without.
 * - `shares.halves`, `flushed.halves`, `transforms.halves`: by hand, to 28 products of Winograd in halves, 0.81 to 1.10 of what is
 *   predicted, the tiles that are taken 0.94 to 1.08.
 * - `shares.interleaved` is an estimate: a store of one element takes its whole sector's time, of 5 TB/s in the cache.
 * - `shares.sliced.few`: by hand, to 245 cases of fifteen layers of few channels, three of four within 12 %.
 * - `shares.gemv`, `times.loads`: by hand, to some 300 ways to deal eighteen products to threads.
 * - `threadResults`: as many as any tile has; rates of tiles are measured, with what they spill.
 * - `sharedBytes`: two workgroups of 24 KiB share a multiprocessor, two of 25 do not.
 * - `times`, `costs`: by hand, to probes of a calibration. `costs.unitStore` is 3.8 to 4.2 us of a wave of tiles on matrix units,
 *   whichever; `costs.storeAgain` 3.9 us of a tile whose step of 16 takes 0.39 us; `costs.element` 25 T multiply-adds a second against
 *   1.5 T elements moved, some in the cache; `costs.dispatch` 2 µs.
 */
export const H200: DeviceModel = {
  name: "NVIDIA H200",
  software: false,
  multiprocessors: 132,
  registers: 65_536,
  threadResults: 256,
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
      "matrix-sixteen": 3.06,
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
      stored: 0.955,
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
          "F(4,3)": { "64x64x8_8x8": 0.96, "64x32x8_8x8": 1 },
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
 * A CPU that runs so many workgroups of 256 threads side by side, by the figures of its driver ({@linkcode softwareFigures}). It stays a
 * software device whatever figures are given: its loops are cut short, it weighs a CPU's policies in place of those of a GPU that is given,
 * and a transform's threads wait for nothing.
 *
 * @param adapter Its name, e.g. `llvmpipe (LLVM 15.0.6, 256 bits)`.
 * @param given Figures in place of its own.
 */
export function softwareDevice(
  workgroupsInFlight: number,
  adapter = "",
  given?: DeviceModel,
): DeviceModel {
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
