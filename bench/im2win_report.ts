/**
 * Markdown tables, and a chart, of what im2win was measured to do:
 *   deno run -A bench/im2win_report.ts [--svg memory.svg] FILE.jsonl …
 * Files are of `wgconv bench --jsonl` and bench/peers/cudnn.py (cases), and of bench/im2win.ts (parts,
 * ablation, limits), in any order. Prints the tables for which there are records.
 */
import { parseDescriptor } from "../src/problem/descriptor.ts";
import type { ConvProblem } from "../src/problem/conv_problem.ts";
import { geometricMean } from "../src/report/comparison.ts";
import type { MemoryRecord } from "../src/report/record.ts";
import { type Column, markdownTable } from "../src/report/table.ts";
import { memoryChart, memoryFormulas } from "./im2win_memory.ts";

/** A line of any of the files, as far as it is read here. */
interface Line {
  readonly kind: string;
  readonly provider?: string;
  readonly problem: string;
  readonly op?: string;
  readonly layout: string;
  readonly algorithm: string;
  readonly verdict?: string;
  readonly gflops?: number | null;
  readonly memory_bytes?: MemoryRecord | null;
  readonly whole?: Rate;
  readonly transform?: Rate;
  readonly product?: Rate;
  readonly gemm?: Rate & { readonly kernel: string };
  readonly variant?: string;
  readonly ms?: number;
  readonly tflops?: number;
  readonly max_workspace?: number;
  readonly refused?: string;
}

interface Rate {
  readonly ms: number;
  readonly tflops: number;
}

const OURS = ["im2win", "im2win-fused", "im2col", "implicit-gemm"] as const;

const files = [...Deno.args];
const svgAt = files.indexOf("--svg");
const [, svg] = svgAt < 0 ? [] : files.splice(svgAt, 2);
const lines = files.flatMap((file) =>
  Deno.readTextFileSync(file).split("\n").filter((line) => line.trim() !== "")
    .map((line): Line => JSON.parse(line))
).filter(({ problem }) => problem !== undefined);

/** The layer of a record, `cv1`; descriptors of peers may leave out what can be derived. */
function layerOf({ problem }: Line): string {
  return parseDescriptor(problem).name ?? problem;
}

const layers = [...new Set(lines.map(layerOf))];
const layouts = [...new Set(lines.map(({ layout }) => layout))];

function problemOf(layer: string): ConvProblem {
  return parseDescriptor(lines.find((line) => layerOf(line) === layer)!.problem);
}

/** Best of several figures; null without any. */
function best(values: readonly (number | null | undefined)[]): number | null {
  const known = values.filter((value): value is number => typeof value === "number");
  return known.length === 0 ? null : Math.max(...known);
}

const show = (value: number | null | undefined, digits = 1) =>
  typeof value === "number" && Number.isFinite(value) ? value.toFixed(digits) : "-";
const right = (title: string): Column => ({ title, align: "right" });
const ratio = (a: number | null, b: number | null) => a === null || b === null ? null : a / b;

/** A table with a last row of geometric means. */
function meanTable(
  title: string,
  columns: readonly string[],
  figures: (layer: string) => readonly (number | null)[],
  digits: readonly number[],
): void {
  const rows = layers.map((layer) => ({ layer, values: figures(layer) }));
  const complete = rows.filter(({ values }) => values.some((value) => value !== null));
  if (complete.length === 0) return;
  const means = columns.map((_, i) =>
    geometricMean(complete.flatMap(({ values }) => values[i] ?? []))
  );
  const line = (name: string, values: readonly (number | null)[]) => [
    name,
    ...values.map((value, i) => show(value, digits[i] ?? 1)),
  ];
  print(
    title,
    markdownTable([{ title: "layer" }, ...columns.map(right)], [
      ...complete.map(({ layer, values }) => line(layer, values)),
      line("geomean", means),
    ]),
  );
}

function print(title: string, table: string): void {
  console.log(`**${title}**\n\n${table}\n`);
}

const cases = lines.filter(({ kind, op }) => kind === "case" && op === "fwd");

/** TFLOP/s of cases: of an algorithm of ours, or of a peer; failed ones do not count. */
function rate(layer: string, provider: string, algorithm?: string, layout?: string): number | null {
  return best(
    cases.filter((line) =>
      layerOf(line) === layer && line.provider === provider && line.verdict !== "fail" &&
      (algorithm === undefined || line.algorithm === algorithm) &&
      (layout === undefined || line.layout === layout)
    ).map(({ gflops }) => typeof gflops === "number" ? gflops / 1000 : null),
  );
}

function throughput(): void {
  const each = OURS.flatMap((name) => layouts.map((layout) => [name, layout] as const));
  meanTable(
    "TFLOP/s of direct flops, forward",
    [
      ...each.map(([name, layout]) => `${name} ${layout}`),
      "our best",
      "cuDNN's best",
      "im2win / cuDNN",
      "im2win / im2col",
      "best of im2win / im2col",
    ],
    (layer) => {
      const ours = OURS.map((name) => rate(layer, "wgconv", name));
      const [win, fused, col] = ours as [number | null, number | null, number | null];
      const cudnn = rate(layer, "cudnn");
      return [
        ...each.map(([name, layout]) => rate(layer, "wgconv", name, layout)),
        best([...ours, rate(layer, "wgconv")]),
        cudnn,
        ratio(win, cudnn),
        ratio(win, col),
        ratio(best([win, fused]), col),
      ];
    },
    [...each.map(() => 1), 1, 1, 2, 2, 2],
  );
}

function parts(layout: string): void {
  const find = (layer: string, algorithm: string) =>
    lines.find((line) =>
      line.kind === "parts" && layerOf(line) === layer && line.layout === layout &&
      line.algorithm === algorithm
    );
  meanTable(
    `Parts, ${layout}: transforms in ms, the rest in TFLOP/s`,
    [
      "im2win",
      "its transform",
      "its product",
      "fused",
      "im2col",
      "its transform",
      "its product",
      "plain product",
      "product / plain",
      "im2win / im2col",
    ],
    (layer) => {
      const [win, fused, col] = OURS.map((name) => find(layer, name));
      const value = (line: Line | undefined, part: "whole" | "product") =>
        line?.[part]?.tflops ?? null;
      return [
        value(win, "whole"),
        win?.transform?.ms ?? null,
        value(win, "product"),
        value(fused, "whole"),
        value(col, "whole"),
        col?.transform?.ms ?? null,
        value(col, "product"),
        col?.gemm?.tflops ?? null,
        ratio(value(col, "product"), col?.gemm?.tflops ?? null),
        ratio(value(win, "whole"), value(col, "whole")),
      ];
    },
    [1, 3, 1, 1, 1, 3, 1, 1, 2, 2],
  );
}

/** MiB of each algorithm's buffers, from the first records that say. */
function memoryOf(layer: string, algorithm: string): number | null {
  const line = lines.find((one) =>
    (one.kind === "case" || one.kind === "parts") && layerOf(one) === layer &&
    one.algorithm === algorithm && (one.op ?? "fwd") === "fwd" && one.memory_bytes
  );
  return line?.memory_bytes ? line.memory_bytes.peak / 2 ** 20 : null;
}

function memory(): void {
  const rows = layers.map((layer) => {
    const { windows, matrix } = memoryFormulas(problemOf(layer));
    return { layer, windows, matrix, saved: 100 * (1 - windows / matrix) };
  });
  const mean = rows.reduce((sum, { saved }) => sum + saved, 0) / rows.length;
  const mebibytes = (bytes: number) => show(bytes / 2 ** 20, 0);
  print(
    "Memory in MiB: what plans allocate (transformed tensors in chunks below the binding limit), and unchunked by formula",
    markdownTable(
      [
        { title: "layer" },
        ...[...OURS, "im2win, formula", "im2col, formula", "saved %"].map(right),
      ],
      [
        ...rows.map(({ layer, windows, matrix, saved }) => [
          layer,
          ...OURS.map((name) => show(memoryOf(layer, name), 0)),
          mebibytes(windows),
          mebibytes(matrix),
          show(saved),
        ]),
        ["mean", ...OURS.map(() => ""), "", "", show(mean)],
      ],
    ),
  );
}

function ablation(layout: string): void {
  for (const algorithm of ["im2win", "gemm"]) {
    const own = lines.filter((line) =>
      line.kind === "ablation" && line.layout === layout && line.algorithm === algorithm
    );
    const variants = [...new Set(own.map(({ variant }) => variant!))];
    const figure = (layer: string, variant: string) =>
      own.find((line) => layerOf(line) === layer && line.variant === variant)?.tflops ?? null;
    const means = variants.map((variant) =>
      geometricMean(layers.flatMap((layer) => figure(layer, variant) ?? []))
    );
    meanTable(
      `Ablation of ${algorithm}, ${layout}, TFLOP/s; geometric means of the share of the tuned kernel: ` +
        variants.map((variant, i) => `${variant} ${show(ratio(means[i]!, means[0]!), 2)}`)
          .slice(1).join(", "),
      variants,
      (layer) => variants.map((variant) => figure(layer, variant)),
      [],
    );
  }
}

function limits(layout: string): void {
  const own = lines.filter(({ kind, layout: its }) => kind === "limit" && its === layout);
  const steps = [...new Set(own.map(({ max_workspace }) => max_workspace!))];
  const find = (layer: string, algorithm: string, step: number) =>
    own.find((line) =>
      layerOf(line) === layer && line.algorithm === algorithm && line.max_workspace === step
    );
  const columns = steps.flatMap((step) =>
    ["im2win", "im2col"].map((algorithm) => [algorithm, step] as const)
  );
  const rows = layers.map((layer) => [
    layer,
    ...columns.map(([algorithm, step]) => {
      const line = find(layer, algorithm, step);
      if (line?.refused !== undefined) return "refused";
      if (!line?.memory_bytes) return "-";
      return `${show(line.memory_bytes.peak / 2 ** 20, 0)} MiB, ${show(line.ms, 2)} ms`;
    }),
  ]).filter((row) => row.slice(1).some((cell) => cell !== "-"));
  if (rows.length === 0) return;
  const titles = columns.map(([name, step]) => right(`${name}, ${step / 2 ** 20} MiB`));
  print(
    `Under a limit of the workspace, ${layout}: peak and time`,
    markdownTable([{ title: "layer" }, ...titles], rows),
  );
}

throughput();
for (const layout of layouts) {
  parts(layout);
  ablation(layout);
  limits(layout);
}
memory();
if (svg !== undefined) await Deno.writeTextFile(svg, await memoryChart(layers.map(problemOf)));
