/** Products beside cuBLAS, and of the other dtypes. */
import { TILE_POLICIES } from "../../src/kernels/policy.ts";
import { parseGemm, printGemm } from "../../src/problem/gemm_suite.ts";
import { type Case, cell, fastest, mean, meanTable, rateOf, readCases, tableOf } from "./read.ts";
import { ceilings } from "./gemm_trials.ts";

const single = () => readCases("gemm.wgconv.jsonl");
/** What is planned since. */
const today = () => readCases("../h200-2026-11-27/acceptance_gemm.jsonl");
const todaysPeer = () => readCases("../h200-2026-11-27/acceptance_gemm.cublas.jsonl");
const more = () => readCases("gemm.more.jsonl");
const cublas = (dtype: string) =>
  readCases("gemm.cublas.jsonl").filter((one) => one.dtype === dtype);
/** Peers' scripts say `n n x1` too. */
const find = (cases: readonly Case[], problem: string) =>
  fastest(cases.filter((one) => printGemm(parseGemm(one.problem)) === problem));

/** `tall, stream-K` */
export function cutOf(kernel = ""): string {
  const tile = /_(\d+)x(\d+)x(\d+)_/.exec(kernel)?.slice(1).map(Number) ?? [];
  const policy = TILE_POLICIES.find(({ rows, columns, depth }) =>
    [rows, columns, depth].every((extent, i) => extent === tile[i])
  );
  const balance = kernel.includes("_streamk")
    ? ", stream-K"
    : kernel.includes("_split")
    ? ", split-K"
    : "";
  return `${policy?.name}${balance}`;
}

function suite(): string {
  const rows = today().map((one) => {
    const peer = rateOf(find(todaysPeer(), one.problem));
    return { one, ours: rateOf(one), peer, ratio: rateOf(one) / peer };
  });
  return tableOf(["m n k<", "wgconv", "cuBLAS", "ratio", "policy<"], [
    ...rows.map(({ one, ours, peer, ratio }) => [
      one.problem,
      cell(ours),
      cell(peer),
      cell(ratio, 2),
      cutOf(one.kernel),
    ]),
    ["geomean", "", "", cell(mean(rows.map(({ ratio }) => ratio)), 3), ""],
  ]);
}

function thin(): string {
  const of = (dtype: string) => more().filter((one) => one.dtype === dtype);
  const problems = [...new Set(cublas("f16").map(({ problem }) => problem))];
  return meanTable(
    ["m n k", "f32", "cuBLAS f32", "ratio", "f16", "over f32", "i8", "f32's TB/s"],
    problems.map((problem) => {
      const [f32, f16, i8] = ["f32", "f16", "i8"].map((dtype) => find(of(dtype), problem));
      const peer = rateOf(find(cublas("f32"), problem));
      const [m, n, k] = problem.split(" ").map(Number) as [number, number, number];
      const bytes = 4 * (m * k + k * n + m * n);
      const [one, half, bytewise] = [rateOf(f32), rateOf(f16), rateOf(i8)];
      const bandwidth = f32 === undefined ? NaN : bytes / f32.time_ms.median / 1e9;
      return [problem, one, peer, one / peer, half, half / one, bytewise, bandwidth];
    }),
    [1, 1, 2, 1, 2, 1, 2],
  );
}

function dtypes(): string {
  const sum16 = (one: Case) => one.kernel!.includes("sum16");
  const ways: readonly [string, string, (one: Case) => boolean][] = [
    ["f32", "f32", () => true],
    ["f16, summed in f32", "f16", (one) => !sum16(one)],
    ["f16, summed in f16", "f16", sum16],
    ["i8", "i8", () => true],
    ["f64", "f64", () => true],
  ];
  const problems = ["8192 8192 8192", "4096 4096 4096", "10240 4096 4096 t n", "3136 512 4608"];
  return tableOf(
    ["dtype<", ...problems, "ceiling", "8192³ of it"],
    ways.map(([title, dtype, is]) => {
      const own = [...single(), ...more()].filter((one) => one.dtype === dtype && is(one));
      const rates = problems.map((problem) => rateOf(find(own, problem)));
      // f16 summed in f32 multiplies in f32.
      const ceiling = ceilings()[title === "f16, summed in f32" ? "f32" : dtype] ?? NaN;
      return [
        title,
        ...rates.map((rate) => cell(rate)),
        cell(ceiling),
        cell(rates[0]! / ceiling, 2),
      ];
    }),
  );
}

export const GEMM_TABLES = {
  "gemm": suite,
  "gemm-thin": thin,
  "gemm-dtypes": dtypes,
} as const;
