/** The twelve layers of the im2win paper, `auto` among the algorithms: rates here, and what bench/im2win_report.ts makes of the rest. */
import { fileURLToPath } from "node:url";
import {
  cell,
  fastest,
  mean,
  meanTable,
  nameOf,
  rateOf,
  readCases,
  readVariants,
  RESULTS,
  tableOf,
} from "./read.ts";

/** These records are of a day of their own: seen from the others. */
const DAY = "../h200-2026-11-21/";
const OURS = ["im2win", "im2win-fused", "im2col", "implicit-gemm"] as const;

function rows() {
  const own = readCases(`${DAY}im2win.wgconv.jsonl`);
  const cudnn = readCases(`${DAY}im2win.cudnn.jsonl`);
  return [...new Set(own.map(nameOf))].map((name) => {
    const rate = (algorithm: string) =>
      rateOf(fastest(own.filter((one) => nameOf(one) === name && one.algorithm === algorithm)));
    const rates = OURS.map(rate);
    const [win = NaN, fused = NaN, matrix = NaN] = rates;
    const peer = rateOf(fastest(cudnn.filter((one) => nameOf(one) === name)));
    return {
      name,
      rates,
      win,
      matrix,
      peer,
      family: Math.max(win, fused),
      best: rateOf(fastest(own.filter((one) => nameOf(one) === name))),
    };
  });
}

function rates(): string {
  return meanTable(
    [
      "layer",
      ...OURS,
      "best of all",
      "cuDNN",
      "im2win / cuDNN",
      "best im2win / cuDNN",
      "im2win / im2col",
      "best / cuDNN",
    ],
    rows().map(({ name, rates, win, matrix, peer, family, best }) => [
      name,
      ...rates,
      best,
      peer,
      win / peer,
      family / peer,
      win / matrix,
      best / peer,
    ]),
    [1, 1, 1, 1, 1, 1, 2, 2, 2, 2],
  );
}

/** Where cuDNN takes Winograd or FFT, its rate is above that of FP32's units: means without these layers. */
function direct(): string {
  const kept = rows().filter(({ peer }) => peer < 67);
  const few = kept.filter(({ name }) => name !== "cv7");
  const line = (title: string, own: typeof kept) => [
    title,
    cell(mean(own.map(({ win }) => win))),
    cell(mean(own.map(({ family }) => family))),
    cell(mean(own.map(({ win, peer }) => win / peer)), 2),
    cell(mean(own.map(({ family, peer }) => family / peer)), 2),
  ];
  return tableOf(
    ["geomeans over<", "im2win", "the better im2win", "im2win / cuDNN", "the better / cuDNN"],
    [
      line("all 12", rows()),
      line(`the ${kept.length} where cuDNN is below 67 TFLOP/s`, kept),
      line("these without cv7", few),
    ],
  );
}

/** First layers of networks, and what `auto` makes of them. */
function firstLayers(): string {
  const measured = readVariants(`${DAY}first_layers.txt`);
  const algorithms = [...new Set(measured.map(({ variant }) => variant))];
  return tableOf(
    ["layer<", ...algorithms],
    [...new Set(measured.map(({ where }) => where))].map((place) => [
      place.replace(" fwd ", " "),
      ...algorithms.map((algorithm) => {
        const found = measured.find(({ where, variant }) =>
          where === place && variant === algorithm
        );
        return cell(found?.tflops ?? NaN);
      }),
    ]),
  );
}

/** The table of bench/im2win_report.ts under the title that begins so. */
function reported(title: string): string {
  const results = fileURLToPath(new URL(DAY, RESULTS));
  const { success, stdout, stderr } = new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "-A",
      fileURLToPath(new URL("../im2win_report.ts", import.meta.url)),
      ...["wgconv", "cudnn", "parts"].map((part) => `${results}im2win.${part}.jsonl`),
    ],
  }).outputSync();
  if (!success) throw new Error(new TextDecoder().decode(stderr));
  const parts = new TextDecoder().decode(stdout).split(/^\*\*(.*)\*\*$/m);
  const at = parts.findIndex((part, i) => i % 2 === 1 && part.startsWith(title));
  if (at < 0) throw new RangeError(`Cannot print a table: no records for "${title}"`);
  return parts[at + 1]!.trim();
}

export const IM2WIN_TABLES = {
  "im2win": rates,
  "im2win-means": direct,
  "im2win-parts": () => reported("Parts, nchw"),
  "im2win-parts-nhwc": () => reported("Parts, nhwc"),
  "im2win-ablation": () => reported("Ablation of im2win, nchw"),
  "im2win-ablation-gemm": () => reported("Ablation of gemm, nchw"),
  "im2win-limits": () => reported("Under a limit of the workspace, nchw"),
  "im2win-first": firstLayers,
  "im2win-memory": () => reported("Memory in MiB"),
} as const;
