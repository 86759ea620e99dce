/** What benchmarks of the main loop printed, as tables: ceilings, policies, ablation, balances, sums in f16. */
import { H200_LIMITS } from "../h200_limits.ts";
import { expectPlanned } from "../../src/algorithms/refusal.ts";
import { cutGemm } from "../../src/algorithms/gemm/cut.ts";
import { H200 } from "../../src/algorithms/device/h200.ts";
import { policyTile, TILE_POLICIES } from "../../src/kernels/policy.ts";
import { gemmProblem, TRANSPOSES } from "../../src/problem/gemm_problem.ts";
import { cell, lines, tableOf, textTables } from "./read.ts";

/** Rates of `f32 x 8` and other forms, in the order of the file. */
function forms(): { type: string; form: string; rate: number }[] {
  return lines("ceilings.txt").flatMap((line) => {
    const found = /^((?:vec\d<)?(\w+)>? x \d+)\s+([\d.]+)$/.exec(line);
    return found === null ? [] : [{ form: found[1]!, type: found[2]!, rate: Number(found[3]) }];
  });
}

/** TFLOP/s of the best form of each dtype, by dtype. */
export function ceilings(): Record<string, number> {
  const best: Record<string, number> = {};
  for (const { type, rate } of forms()) {
    const dtype = type === "dot4I8Packed" ? "i8" : type;
    best[dtype] = Math.max(best[dtype] ?? 0, rate);
  }
  return best;
}

function ceilingTable(): string {
  const types = [...new Set(forms().map(({ type }) => type))];
  return tableOf(
    ["type<", "best form<", "TFLOP/s", "scalars", "vec2", "vec4"],
    types.map((type) => {
      const own = forms().filter((one) => one.type === type);
      const best = own.reduce((one, other) => other.rate > one.rate ? other : one);
      const of = (start: string) =>
        Math.max(...own.filter(({ form }) => form.startsWith(start)).map(({ rate }) => rate));
      return [
        type,
        best.form,
        cell(best.rate),
        ...[type, "vec2", "vec4"].map((start) => cell(of(start))),
      ];
    }),
  );
}

/** f32 products of each policy: measured in ablation.txt and policies.txt, and predicted. */
function policies(): string {
  const seen = new Set<string>();
  const rows: string[][] = [];
  for (
    const { heading, rows: measured } of [
      ...textTables("policies.txt"),
      ...textTables("ablation.txt"),
    ]
  ) {
    const [size = "", way = ""] = heading[0]!.split(" ");
    const transpose = TRANSPOSES.find((one) => one === way);
    const [kernel = "", rate = ""] = measured[0] ?? [];
    const tile = /^`gemm_f32_(\d+x\d+x\d+)_/.exec(kernel)?.[1];
    const policy = TILE_POLICIES.find((one) => policyTile(one) === tile);
    const key = `${size} ${way} ${tile}`;
    if (policy === undefined || transpose === undefined || seen.has(key)) continue;
    seen.add(key);
    const [m = 0, n = 0, k = 0] = size.split("x").map(Number);
    const problem = gemmProblem({ m, n, k, transpose });
    const cut = expectPlanned(
      cutGemm({ problem, dtype: "f32", policy: policy.name, limits: H200_LIMITS }),
    );
    const predicted = m * n * k / cut.cost * H200.rates.packed;
    rows.push([
      `${m} ${n} ${k} ${way}`,
      policy.name,
      policyTile(policy),
      `${policy.threadRows} x ${policy.threadColumns}`,
      cell(predicted),
      rate,
      cell(predicted / Number(rate), 2),
    ]);
  }
  return tableOf(
    ["m n k<", "policy<", "tile<", "a thread's<", "predicted", "measured", "ratio"],
    rows.toSorted(([one = ""], [other = ""]) => one < other ? 1 : one > other ? -1 : 0),
  );
}

const TECHNIQUES: Readonly<Record<string, string>> = {
  "": "as tuned",
  no_vector_load: "without vector loads",
  no_prefetch: "without register prefetch",
  double_buffer: "with a double buffer",
  no_arrays_2d: "without 2-D arrays",
  no_unroll: "without unrolling",
  no_micro_kernel: "without the micro-kernel",
};

function ablation(): string {
  const tables = textTables("ablation.txt").filter(({ rows }) =>
    rows.some(([kernel]) => kernel!.includes("no_unroll"))
  );
  const parts = tables.map(({ heading, rows }) => ({
    title: heading[0]!.replace(/^(\d+)x\1x\1/, "$1³"),
    tile: /_(\d+x\d+x\d+)_/.exec(rows[0]![0]!)?.[1],
    rows,
  }));
  const order = Object.keys(TECHNIQUES);
  return tableOf(
    ["main loop<", ...parts.flatMap(({ title, tile }) => [`${title}, ${tile}`, "of the tuned"])],
    order.map((key) => [
      TECHNIQUES[key]!,
      ...parts.flatMap(({ rows }) => {
        const row = rows.find(([kernel = ""]) => (/_o\d_(.*)`$/.exec(kernel)?.[1] ?? "") === key);
        return [row?.[1] ?? "-", row?.[2] ?? "-"];
      }),
    ]),
  );
}

function balance(): string {
  const [table] = textTables("balance.txt");
  const [first, ...others] = table!.heading;
  return tableOf(
    [`${first}<`, ...others.map((title, i) => i === 4 || i === 7 ? `${title}<` : title)],
    table!.rows,
  );
}

/** f16 against f32 policy by policy. */
function halves(): string {
  const rows = textTables("policies.txt").map(({ rows }) => {
    const tile = /_(\d+x\d+x\d+)_/.exec(rows[0]![0]!)?.[1];
    const policy = TILE_POLICIES.find((one) => policyTile(one) === tile);
    return [policy?.name ?? "", tile ?? "", ...rows.map(([, rate]) => rate!)];
  });
  return tableOf(
    ["policy<", "tile<", "f32", "f16, f32 sums", "the same, f16 tile", "f16 sums", "i8", "f64"],
    rows,
  );
}

const SUM_FORMS: readonly [string, string][] = [
  ["-", "vectors of 2 columns, a factor of A given to both"],
  ["s", "written as operations on vec2"],
  ["v", "the tile in workgroup memory as vec2"],
  ["u", "the tile as packed u32"],
  ["d", "A's halves twice in the tile"],
  ["n", "without folding chains into f32 (wrong sums)"],
  ["dn", "d and n (wrong sums)"],
  ["cn", "no factor given to both halves, and n (wrong results)"],
];

function f16Sums(): string {
  const found = lines("f16_sums.txt").map((line) => line.split(" "));
  const rate = (policy: string, form: string) =>
    found.find(([its, own]) => its === policy && own === form)?.[2] ?? "-";
  return tableOf(
    ["kernel's inner products<", "tall", "wide", "huge"],
    SUM_FORMS.map(([form, title]) => [
      title,
      ...["tall", "wide", "huge"].map((policy) => rate(policy, form)),
    ]),
  );
}

function epilogue(): string {
  const rows = lines("epilogue.txt").filter((line) => line.startsWith("|"))
    .map((line) => line.split("|").slice(1, -1).map((one) => one.trim()));
  return tableOf(["4096³ tn<", "time", "over none"], rows);
}

export const GEMM_TRIAL_TABLES = {
  "ceilings": ceilingTable,
  "gemm-policies": policies,
  "gemm-ablation": ablation,
  "gemm-balance": balance,
  "gemm-policy-dtypes": halves,
  "gemm-f16-sums": f16Sums,
  "gemm-epilogue": epilogue,
} as const;
