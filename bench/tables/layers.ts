/** Layers of ResNet and VGG-16: the best of ours beside cuDNN, and how far from the roofline. */
import { OPERATIONS } from "../../src/problem/conv_problem.ts";
import { type Case, cell, fastest, mean, nameOf, rateOf, readCases, tableOf } from "./read.ts";
import { floorOf, floorTime } from "./roofline.ts";

const ours = () => readCases("layers.wgconv.jsonl");
const cudnn = () => readCases("layers.cudnn.jsonl");

interface Row {
  readonly name: string;
  readonly nchw: Case;
  readonly nhwc: Case;
  readonly best: Case;
  readonly peer: Case;
  readonly ratio: number;
}

function rowsOf(op: string): Row[] {
  const own = ours().filter((one) => one.op === op);
  const peers = cudnn().filter((one) => one.op === op);
  return [...new Set(own.map(nameOf))].map((name) => {
    const same = own.filter((one) => nameOf(one) === name);
    const in_ = (layout: string) => same.find((one) => one.layout === layout)!;
    const best = fastest(same)!;
    const peer = fastest(peers.filter((one) => nameOf(one) === name))!;
    const ratio = rateOf(best) / rateOf(peer);
    return { name, nchw: in_("nchw"), nhwc: in_("nhwc"), best, peer, ratio };
  });
}

const isResnet = ({ name }: Row) => name.startsWith("Conv");

/** `F(6x6,3x3) 64x64x16 nhwc` */
function way({ kernel = "", layout = "" }: Case): string {
  const tile = /_m(\d+x\d+)r(\d+x\d+)_(\d+x\d+x\d+)/.exec(kernel);
  if (tile !== null) return `F(${tile[1]},${tile[2]}) ${tile[3]} ${layout}`;
  return `implicit GEMM ${/_(\d+x\d+x\d+)_/.exec(kernel)?.[1]} ${layout}`;
}

function table(op: string): string {
  const rows = rowsOf(op);
  const means = (own: readonly Row[], title: string) => [
    `geomean ${title}`,
    cell(mean(own.map(({ nchw }) => rateOf(nchw)))),
    cell(mean(own.map(({ nhwc }) => rateOf(nhwc)))),
    cell(mean(own.map(({ peer }) => rateOf(peer)))),
    cell(mean(own.map(({ ratio }) => ratio)), 2),
    "",
    "",
    "",
    "",
    "",
  ];
  return tableOf(
    [
      "layer<",
      "nchw",
      "nhwc",
      "cuDNN",
      "ratio",
      "the better's tile, policy, layout<",
      "µs",
      "arithmetic",
      "memory",
      "of floor",
    ],
    [
      ...rows.map(({ name, nchw, nhwc, best, peer, ratio }) => {
        const floor = floorOf(best);
        const us = 1000 * best.time_ms.median;
        return [
          name,
          cell(rateOf(nchw)),
          cell(rateOf(nhwc)),
          cell(rateOf(peer)),
          cell(ratio, 2),
          way(best),
          cell(us, 0),
          cell(floor.arithmetic, 0),
          cell(floor.memory, 0),
          `${cell(100 * floorTime(floor) / us, 0)} %`,
        ];
      }),
      means(rows.filter(isResnet), "ResNet"),
      means(rows.filter((row) => !isResnet(row)), "VGG-16"),
      means(rows, "all"),
    ],
  );
}

function summary(): string {
  const groups: [string, readonly string[]][] = [
    ...OPERATIONS.map((op): [string, string[]] => [op, [op]]),
    ["fwd and bwd-data", ["fwd", "bwd-data"]],
    ["all", OPERATIONS],
  ];
  return tableOf(
    ["ours / cuDNN, geomean<", "ResNet's 16", "VGG-16's 9", "all 25", "least", "layers under 1.0"],
    groups.map(([title, ops]) => {
      const rows = ops.flatMap(rowsOf);
      const ratio = (own: readonly Row[]) => cell(mean(own.map((row) => row.ratio)), 2);
      const low = rows.filter((row) => row.ratio < 1).length;
      return [
        title,
        ratio(rows.filter(isResnet)),
        ratio(rows.filter((row) => !isResnet(row))),
        ratio(rows),
        cell(Math.min(...rows.map((row) => row.ratio)), 2),
        `${low} of ${rows.length}`,
      ];
    }),
  );
}

/** Implicit GEMM before and after the loads' masks moved to the stores, geomeans over ResNet's layers. */
function implicit(): string {
  const before = readCases("implicit_gemm.before.jsonl");
  const after = readCases("variants.jsonl").filter(({ algorithm }) =>
    algorithm === "implicit-gemm"
  );
  const rate = (cases: readonly Case[], name: string, op: string, layout: string) =>
    rateOf(
      fastest(
        cases.filter((one) => one.op === op && one.layout === layout && nameOf(one) === name),
      ),
    );
  const columns = (["fwd", "bwd-data"] as const).flatMap((op) =>
    ["nchw", "nhwc"].map((layout) => [op, layout] as const)
  );
  const names = [...new Set(before.map(nameOf))];
  const figures = names.map((name) =>
    columns.flatMap(([op, layout]) => [
      rate(before, name, op, layout),
      rate(after, name, op, layout),
    ])
  );
  const row = (title: string, values: readonly number[]) => [
    title,
    ...values.map((value) => cell(value)),
  ];
  return tableOf(
    ["layer<", ...columns.flatMap(([op, layout]) => [`${op} ${layout}`, "after"])],
    [
      ...names.map((name, i) => row(name, figures[i]!)),
      row(
        "geomean",
        columns.flatMap((_, i) => [0, 1].map((j) => mean(figures.map((f) => f[2 * i + j]!)))),
      ),
    ],
  );
}

export const LAYER_TABLES = {
  "layers": summary,
  "layers-fwd": () => table("fwd"),
  "layers-bwd-data": () => table("bwd-data"),
  "layers-bwd-filter": () => table("bwd-filter"),
  "implicit-gemm": implicit,
} as const;
