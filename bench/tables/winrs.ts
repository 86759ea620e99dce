/** Backward-filter: WinRS beside its rivals and cuDNN, and its tiles. */
import { cell, fastest, mean, nameOf, rateOf, readCases, readVariants, tableOf } from "./read.ts";
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

export const WINRS_TABLES = {
  "winrs": suite,
  "winrs-tiles": tiles,
} as const;
