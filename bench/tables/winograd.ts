/** Winograd's ways of each layer, and what the fused kernel's parts take. */
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

const WAYS: readonly [string, string, string?][] = [
  ["implicit GEMM", "implicit-gemm"],
  ["1-D F(6,3)", "winograd1d", "F(6,3)"],
  ["1-D F(4,3)", "winograd1d", "F(4,3)"],
  ["2-D fused F(2x2,3x3)", "winograd2d", "F(2x2,3x3)"],
  ["non-fused F(2x2,3x3)", "winograd2d-nonfused", "F(2x2,3x3)"],
  ["F(4x4,3x3)", "winograd2d-nonfused", "F(4x4,3x3)"],
  ["F(6x6,3x3)", "winograd2d-nonfused", "F(6x6,3x3)"],
];

/** The better layout of each way, one operation. */
function ways(op: "fwd" | "bwd-data"): string {
  const cases = readCases("variants.jsonl").filter((one) => one.op === op);
  const is = (one: Case, algorithm: string, tile?: string) =>
    one.algorithm === algorithm && (tile === undefined || one.tile === tile);
  return meanTable(
    ["layer", ...WAYS.map(([title]) => title)],
    [...new Set(cases.map(nameOf))].flatMap((name) => {
      const own = cases.filter((one) => nameOf(one) === name);
      const rates = WAYS.map(([, algorithm, tile]) =>
        rateOf(fastest(own.filter((one) => is(one, algorithm, tile))))
      );
      // The run was cut off in the last layer.
      return rates.every(Number.isFinite) ? [[name, ...rates] as const] : [];
    }),
  );
}

const FUSED: readonly [string, string][] = [
  ["implicit GEMM", "implicit-gemm"],
  ["1-D fused", "winograd1d"],
  ["2-D fused", "winograd2d"],
];

/** What ships of the fused kernels beside implicit GEMM, the better layout of each. */
function fused(): string {
  const cases = readCases("../h200-2026-11-24/fused.jsonl");
  return meanTable(
    ["layer", ...FUSED.map(([title]) => title), "1-D / implicit", "2-D / implicit"],
    [...new Set(cases.map(nameOf))].map((name) => {
      const [gemm, ...others] = FUSED.map(([, algorithm]) =>
        rateOf(
          fastest(cases.filter((one) => nameOf(one) === name && one.algorithm === algorithm)),
        )
      ) as [number, number, number];
      return [name, gemm, ...others, ...others.map((rate) => rate / gemm)] as const;
    }),
    [1, 1, 1, 2, 2],
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
  "winograd-fwd": () => ways("fwd"),
  "winograd-bwd-data": () => ways("bwd-data"),
  fused,
  "fused-parts": parts,
  "fused-trials": trials,
} as const;
