/** Products beside cuBLAS, and rates on matrix units. */
import type { ReadCase } from "../../src/report/record_schema.ts";
import { cell, mean, nameOf, type Pair, pairsOf, rateOf, readCases, tableOf } from "./read.ts";

/** TFLOP/s of each product in f32 by threads, and of `auto` in f32 and of f16 on matrix units. */
function products(): string {
  const threads = pairsOf(readCases("h200/gemm.jsonl"), readCases("h200/gemm.cublas.jsonl"));
  const units = readCases("h200/precisions.jsonl");
  const peers = readCases("h200/precisions.cublas.jsonl");
  const of = (cases: readonly ReadCase[], dtype: string) =>
    cases.filter((one) => one.op === "gemm" && one.dtype === dtype);
  const halves = pairsOf(of(units, "f32"), of(peers, "f32"));
  const f16 = pairsOf(of(units, "f16"), of(peers, "f16"));
  const same = (pairs: readonly Pair[], name: string) => pairs.find((one) => one.name === name)!;
  return tableOf(
    [
      "m n k<",
      "f32",
      "cuBLAS",
      "ratio",
      "`auto`, Dawn",
      "ratio",
      "f16, Dawn",
      "cuBLAS f16",
      "ratio",
    ],
    [
      ...threads.map((one) => {
        const [half, low] = [same(halves, one.name), same(f16, one.name)];
        return [
          one.name,
          ...both(one),
          ...both(half).slice(0, 1),
          cell(half.ratio, 2),
          ...both(low),
        ];
      }),
      [
        "geomean",
        ...["", "", cell(mean(ratios(threads)), 3), "", cell(mean(ratios(halves)), 2), "", ""],
        cell(mean(ratios(f16)), 2),
      ],
    ],
  );
}

const ratios = (pairs: readonly Pair[]) => pairs.map(({ ratio }) => ratio);

/** Rates of both sides and their ratio. */
function both({ ours, peer, ratio }: Pair): string[] {
  return [cell(rateOf(ours)), cell(rateOf(peer)), cell(ratio, 2)];
}

/** Products of few rows or columns. */
function thin(): string {
  const pairs = pairsOf(
    readCases("h200/gemm_thin.jsonl"),
    readCases("h200/gemm_thin.cublas.jsonl"),
  );
  return tableOf(
    ["m n k<", "f32", "cuBLAS", "ratio"],
    pairs.map((one) => [one.name, ...both(one)]),
  );
}

/** The largest products on matrix units. */
function large(): string {
  return tableOf(
    ["m n k<", "type<", "result<", "TFLOP/s, TOPS", "MARE"],
    readCases("h200/gemm_large.jsonl").map((one) => [
      nameOf(one),
      one.kernel?.includes("f16x3") ? "f32 in halves" : one.dtype,
      one.out_dtype ?? (one.dtype === "i8" ? "i32" : one.dtype),
      cell(rateOf(one)),
      one.accuracy?.mare?.toExponential(1) ?? "-",
    ]),
  );
}

export const PRODUCT_TABLES = {
  "products": products,
  "products-thin": thin,
  "products-large": large,
} as const;
