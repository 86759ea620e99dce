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
        "workgroup memory",
        "TFLOP/s",
        "GB/s",
      ],
      KNOWN_GPUS.map(({ word, name, ...figures }) => [
        word,
        name,
        `${figures.multiprocessors}`,
        `${figures.threadResults}`,
        `${figures.sharedBytes / 1024} KiB`,
        `${figures.teraflops}`,
        `${Math.round(1000 * figures.terabytes)}`,
      ]),
    ),
};
