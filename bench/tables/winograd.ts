/** Fused Winograd beside implicit GEMM, its variants, and what a kernel's parts take. */
import {
  type Case,
  cell,
  fastest,
  meanTable,
  nameOf,
  rateOf,
  readCases,
  readVariants,
  tableOf,
} from "./read.ts";

const FUSED: readonly [string, string][] = [
  ["implicit GEMM", "implicit-gemm"],
  ["1-D fused", "winograd1d"],
  ["2-D fused", "winograd2d"],
];

/** What ships of the fused kernels beside implicit GEMM, the better layout of each, which is of the first file that has it. */
function fused(files: readonly string[], layers: RegExp): string {
  const runs = files.map((file) => readCases(file).filter((one) => layers.test(nameOf(one))));
  const cases = runs.flat();
  const ofKernel = (name: string, algorithm: string) => {
    const all = cases.filter((one) => nameOf(one) === name && one.algorithm === algorithm);
    return all.filter((one, i) => all.findIndex(({ layout }) => layout === one.layout) === i);
  };
  return meanTable(
    ["layer", ...FUSED.map(([title]) => title), "1-D / implicit", "2-D / implicit"],
    [...new Set(cases.map(nameOf))].map((name) => {
      const [gemm, ...others] = FUSED.map(([, algorithm]) =>
        rateOf(fastest(ofKernel(name, algorithm)))
      ) as [number, number, number];
      return [name, gemm, ...others, ...others.map((rate) => rate / gemm)] as const;
    }),
    [1, 1, 1, 2, 2],
  );
}

const SUMS = ["", "_output_reference", "_output_sts64", "_output_sts64_compact"];

/** How sums pass to the output transform: what ships and the reference in its tile, all of openCNN's where all fit. */
function outputLayouts(): string {
  const cases = readCases("../h100-2026-11-26/output_layouts.jsonl");
  const tileOf = ({ kernel = "" }: Case) => /_(\d+x\d+x\d+_\d+x\d+)_/.exec(kernel)![1]!;
  const sumsOf = ({ kernel = "" }: Case) =>
    /(_output_\w+?)?_(?:nhwc|nchw|chwn)_/.exec(kernel)![1] ?? "";
  const places = [...new Set(cases.map((one) => `${nameOf(one)} ${one.layout}`))].toSorted();
  return tableOf(
    [
      "layer, layout<",
      "what ships<",
      "as tuned",
      "reference",
      "32x32x8_8x8 as tuned",
      "reference",
      "STS64",
      "STS64 compact",
    ],
    places.map((place) => {
      const own = cases.filter((one) => `${nameOf(one)} ${one.layout}` === place);
      // A layer that was timed again, whole, in the second command counts there.
      const rate = (tile: string, sums: string) =>
        cell(rateOf(own.findLast((one) => tileOf(one) === tile && sumsOf(one) === sums)));
      const ships = tileOf(
        own.find(({ policy, kernel }) => policy === undefined && !kernel!.includes("_output_"))!,
      );
      return [
        place,
        ships,
        ...SUMS.slice(0, 2).map((sums) => rate(ships, sums)),
        ...SUMS.map((sums) => rate("32x32x8_8x8", sums)),
      ];
    }),
  );
}

const PARTS: readonly [string, string][] = [
  ["", "whole"],
  ["F", "without products"],
  ["S", "without stores to the tile (and so without transforms)"],
  ["L", "loads once, before the loop"],
  ["T", "without transforms"],
  ["B", "without barriers"],
  ["LS", "neither loads in the loop nor stores to the tile"],
  ["LF", "neither loads in the loop nor products"],
  ["FT", "neither products nor transforms: loads and stores to the tile"],
  ["LT", "neither loads in the loop nor transforms"],
  ["SB", "neither stores to the tile nor barriers"],
];

function parts(): string {
  const measured = readVariants("fused_parts.txt");
  const time = (layout: string, part: string) =>
    measured.find(({ where, variant }) =>
      where.endsWith(layout) && variant.split(":").at(-1) === part
    )?.microseconds ?? NaN;
  return tableOf(
    ["kernel<", "nchw, µs", "nhwc, µs"],
    PARTS.map(([part, title]) => [
      title,
      cell(time("nchw", part), 0),
      cell(time("nhwc", part), 0),
    ]),
  );
}

const TRIALS = [
  "winograd1d:F(6,3):64x64x8_8x8",
  "winograd1d:F(6,3):64x64x8_8x16",
  "winograd1d:F(6,3):128x32x8_8x16",
  "winograd1d:F(6,3):64x32x8_8x8",
  "winograd1d:F(6,3):64x64x4_8x8d",
  "winograd1d:F(4,3):64x64x8_8x8",
  "winograd1d:F(4,3):64x64x8_16x8",
  "winograd1d:F(4,3):64x64x8_8x8d",
  "winograd1d:F(4,3):64x64x4_8x8d",
  "winograd1d:F(7,3):64x64x8_8x16",
  "winograd1d:F(14,3):64x32x8_8x16",
  "winograd1d:F(2,3):64x64x8_8x8",
  "winograd1d:F(2,3):128x64x8_8x8",
  "winograd2d:F(2x2,3x3):32x32x8_8x8",
  "winograd2d:F(2x2,3x3):64x32x8_8x8",
  "winograd2d:F(2x2,3x3):64x32x4_8x8",
  "winograd2d:F(2x2,3x3):64x64x4_8x8",
  "winograd2d:F(4x4,3x3):32x32x4_8x8",
];

/** Tiles of fused kernels, each as it was measured last. */
function trials(): string {
  const measured = readVariants("fused_trials.txt");
  const places = ["Conv2N64", "Conv4N64", "conv3_2"].flatMap((layer) =>
    ["nchw", "nhwc"].map((layout) => `${layer} fwd ${layout}`)
  );
  return tableOf(
    ["algorithm, tile, policy<", ...places.map((place) => place.replace(" fwd", ""))],
    TRIALS.map((trial) => [
      trial.replaceAll(":", " "),
      ...places.map((place) =>
        cell(
          measured.findLast(({ where, variant }) => where === place && variant === trial)?.tflops ??
            NaN,
        )
      ),
    ]),
  );
}

export const WINOGRAD_TABLES = {
  fused: () => fused(["../h200-2026-11-27/acceptance_fused.jsonl"], /^Conv/),
  "fused-vgg16": () => fused(["../h100-2026-11-27/own_slices_vgg.jsonl"], /^conv/),
  "output-layouts": outputLayouts,
  "fused-parts": parts,
  "fused-trials": trials,
} as const;
