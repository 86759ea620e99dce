/** The figures that plans assume of GPUs that nobody has measured (`src/algorithms/device/known.ts`). */
import { KNOWN_GPUS } from "../../src/algorithms/device/known.ts";
import { tableOf } from "./read.ts";

export const GPU_TABLES = {
  gpus: () =>
    tableOf(
      [
        "NAME<",
        "GPU<",
        "multiprocessors",
        "results a thread",
        "subgroup",
        "workgroup memory",
        "cache",
        "TFLOP/s",
        "GB/s",
        "matrix units",
      ],
      KNOWN_GPUS.map(({ word, name, lanes, units, ...figures }) => [
        word,
        name,
        `${figures.multiprocessors}`,
        `${figures.threadResults}`,
        [...new Set(lanes)].join("–"),
        `${figures.sharedBytes / 1024} KiB`,
        `${figures.cacheMiB} MiB`,
        `${figures.teraflops}`,
        `${Math.round(1000 * figures.terabytes)}`,
        units || "–",
      ]),
    ),
};
