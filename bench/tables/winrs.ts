/** Backward-filter: WinRS beside its rivals and cuDNN, and its tiles. */
import {
  type Case,
  cell,
  fastest,
  mean,
  nameOf,
  rateOf,
  readCases,
  readVariants,
  tableOf,
} from "./read.ts";
import { floorOf, floorTime } from "./roofline.ts";

const OURS = ["winrs", "implicit-gemm", "winograd2d-nonfused"] as const;

function suite(): string {
  const own = readCases("winrs.wgconv.jsonl");
  const cudnn = readCases("winrs.cudnn.jsonl");
  const rows = [...new Set(own.map(nameOf))].map((name) => {
    const same = own.filter((one) => nameOf(one) === name);
    const [winrs = NaN, implicit = NaN, passes = NaN] = OURS.map((algorithm) =>
      rateOf(fastest(same.filter((one) => one.algorithm === algorithm)))
    );
    const peer = rateOf(fastest(cudnn.filter((one) => nameOf(one) === name)));
    const kernel = /(a\d+n\d+r\d+)_(\d+x\d+x\d+)/.exec(
      same.find(({ algorithm }) => algorithm === "winrs")?.kernel ?? "",
    );
    const best = Math.max(...[winrs, implicit, passes].filter(Number.isFinite));
    const run = fastest(same.filter((one) => one.algorithm === "winrs"));
    const products = run === undefined ? NaN : 2 * run.multiplications! / run.time_ms.median / 1e9;
    const share = run === undefined ? NaN : floorTime(floorOf(run)) / run.time_ms.median / 10;
    return {
      name,
      winrs,
      implicit,
      passes,
      peer,
      best,
      products,
      share,
      kernel: kernel?.slice(1).join(" ") ?? "-",
    };
  });
  const line = (title: string, kept: typeof rows) => {
    const of = (figure: (row: typeof rows[number]) => number, digits = 1) =>
      cell(mean(kept.map(figure)), digits);
    return [
      title,
      of((row) => row.winrs),
      of((row) => row.implicit),
      of((row) => row.passes),
      of((row) => row.peer),
      of((row) => row.winrs / row.implicit, 2),
      of((row) => row.winrs / row.peer, 2),
      of((row) => row.best / row.peer, 2),
      of((row) => row.products),
      `${of((row) => row.share, 0)} %`,
    ];
  };
  return tableOf(
    [
      "case<",
      "winrs",
      "implicit GEMM",
      "non-fused",
      "cuDNN",
      "winrs / implicit",
      "winrs / cuDNN",
      "best / cuDNN",
      "winrs' products",
      "of floor",
      "first kernel<",
    ],
    [
      ...rows.map((row) => [...line(row.name, [row]), row.kernel]),
      [...line("geomean", rows), ""],
      [...line("geomean of F2, F3, F4", rows.filter(({ name }) => /^F[234]/.test(name))), ""],
    ],
  );
}

/** Tiles of WinRS, nhwc: the policy that was asked for, and TFLOP/s. */
function tiles(): string {
  const measured = readVariants("winrs_tiles.txt").filter(({ where }) => where.endsWith("nhwc"));
  const asked = [...new Set(measured.map(({ variant }) => variant))]
    .filter((one) => one.startsWith("winrs::") && one !== "winrs:::");
  const cases = [...new Set(measured.map(({ where }) => where))];
  return tableOf(
    ["case<", ...asked.map((one) => one.slice("winrs::".length))],
    cases.map((where) => [
      where.split(" ")[0]!,
      ...asked.map((one) =>
        cell(
          measured.find((each) => each.where === where && each.variant === one)?.tflops ?? NaN,
        )
      ),
    ]),
  );
}

const OF_CUDNN = "../h100-2026-11-26/winrs.cudnn_algorithms.jsonl";
const BESIDE_CUDNN = "../h100-2026-11-26/winrs.jsonl";
/** cudnnConvolutionBwdFilterAlgo_t: three of products, one by Fourier transforms, one of Winograd in passes. */
const CUDNN: readonly (readonly [string, readonly string[]])[] = [
  ["ALGO_0", ["algo-0"]],
  ["ALGO_1", ["algo-1"]],
  ["ALGO_3", ["algo-3"]],
  ["GEMM, the fastest of these three", ["algo-0", "algo-1", "algo-3"]],
  ["FFT", ["fft"]],
  ["Winograd non-fused", ["winograd-nonfused"]],
  ["the fastest of all", ["algo-0", "algo-1", "algo-3", "fft", "winograd-nonfused"]],
];

/** WinRS, what `auto` takes, and cuDNN's algorithms, of each problem. */
function besideCudnn() {
  const own = readCases(BESIDE_CUDNN);
  const cudnn = readCases(OF_CUDNN);
  return [...new Set(own.map(nameOf))].map((name) => {
    const same = own.filter((one) => nameOf(one) === name);
    const memory = same[0]!.memory_bytes!;
    const peers = cudnn.filter((one) => nameOf(one) === name);
    return {
      name,
      /** Bytes of all three tensors. */
      data: memory.inputs + memory.output,
      winrs: same.find(({ requested }) => requested === undefined)!,
      auto: same.find(({ requested }) => requested === "auto")!,
      of: (algorithms: readonly string[]) =>
        fastest(peers.filter(({ algorithm }) => algorithms.includes(algorithm!))),
    };
  });
}

/** TFLOP/s of each problem by each algorithm. */
function cudnnCases(): string {
  const groups = CUDNN.filter(([title]) => !title.startsWith("the fastest of all"))
    .filter(([, algorithms]) => algorithms.length > 1 || !algorithms[0]!.startsWith("algo"));
  const all = CUDNN.at(-1)![1];
  const short = ({ algorithm, kernel = "" }: Case) =>
    algorithm === "winrs" ? "WinRS" : kernel.replace(/^.*_m(\d+x\d+)r(\d+x\d+)_.*$/, "F($1,$2)");
  const rows = besideCudnn().map(({ name, winrs, auto, of }) => {
    const best = rateOf(of(all));
    const rates = [winrs, auto, ...groups.map(([, algorithms]) => of(algorithms))].map(rateOf);
    return { name, rates, ratios: [rates[0]! / best, rates[1]! / best], takes: short(auto) };
  });
  const line = (title: string, kept: typeof rows, takes: string) => [
    title,
    ...rows[0]!.rates.map((_, i) => cell(mean(kept.map(({ rates }) => rates[i]!)))),
    ...rows[0]!.ratios.map((_, i) => cell(mean(kept.map(({ ratios }) => ratios[i]!)), 2)),
    takes,
  ];
  return tableOf(
    [
      "case<",
      "WinRS",
      "`auto`",
      "cuDNN GEMM",
      "FFT",
      "Winograd",
      "WinRS / best",
      "`auto` / best",
      "`auto` takes<",
    ],
    [
      ...rows.map((row) => line(row.name, [row], row.takes)),
      line("geomean", rows, ""),
      line("geomean of F2, F3, F4", rows.filter(({ name }) => /^F[234]/.test(name)), ""),
    ],
  );
}

/** How often as fast as each of cuDNN's algorithms, over the problems that it computes, and what workspace it takes of the data. */
function cudnnAlgorithms(): string {
  const cases = besideCudnn();
  const arithmetic = (values: readonly number[]) =>
    values.reduce((sum, value) => sum + value, 0) / values.length;
  const shares = (kept: readonly (readonly [Case, number])[]) => {
    const all = kept.map(([one, data]) => (one.workspace_bytes ?? 0) / data);
    return [cell(arithmetic(all), 3), cell(Math.max(...all), 2)];
  };
  const rows = CUDNN.map(([title, algorithms]) => {
    const kept = cases.flatMap((one) => {
      const peer = one.of(algorithms);
      return peer === undefined ? [] : [{ ...one, peer }];
    });
    const over = (way: "winrs" | "auto") => {
      const all = kept.map((one) => rateOf(one[way]) / rateOf(one.peer));
      return `${cell(mean(all), 2)} (${cell(Math.min(...all), 2)} to ${cell(Math.max(...all), 2)})`;
    };
    return [
      title,
      `${kept.length}`,
      over("winrs"),
      over("auto"),
      ...shares(kept.map(({ peer, data }) => [peer, data] as const)),
    ];
  });
  return tableOf(
    ["cuDNN's<", "problems", "WinRS over it", "`auto` over it", "workspace of data", "most"],
    [
      ...rows,
      ["WinRS", `${cases.length}`, "", "", ...shares(cases.map((one) => [one.winrs, one.data]))],
      ["`auto`", `${cases.length}`, "", "", ...shares(cases.map((one) => [one.auto, one.data]))],
    ],
  );
}

export const WINRS_TABLES = {
  "winrs": suite,
  "winrs-tiles": tiles,
  "winrs-cudnn": cudnnCases,
  "winrs-cudnn-algorithms": cudnnAlgorithms,
} as const;
