/** Convolutions beside cuDNN, and by algorithm. */
import { type Operation, OPERATIONS } from "../../src/problem/conv_problem.ts";
import { parseDescriptor } from "../../src/problem/descriptor.ts";
import type { ReadCase } from "../../src/report/record_schema.ts";
import { median } from "../../src/report/stats.ts";
import {
  cell,
  fastest,
  mean,
  nameOf,
  type Pair,
  pairsOf,
  rateOf,
  readCases,
  tableOf,
  timeOf,
} from "./read.ts";

/** Ours and cuDNN's cases of a suite. */
interface Suite {
  readonly title: string;
  readonly ours: string;
  readonly peer: string;
  /** Which pairs of the files; all where absent. */
  readonly only?: (pair: Pair) => boolean;
}

const resnet = ({ name }: Pair) => name.startsWith("Conv");
const vgg = ({ name }: Pair) => name.startsWith("conv");
/** 32 channels or more on both sides, in one group. */
function dense({ op, ours }: Pair): boolean {
  const { groups, inChannels, outChannels } = parseDescriptor(ours.problem, op as Operation);
  return groups === 1 && Math.min(inChannels, outChannels) >= 32;
}
const f32 = { ours: "h200/layers.f32.jsonl", peer: "h200/layers.cudnn.jsonl" };
const auto = { ours: "h200/layers.auto.jsonl", peer: "h200/layers.cudnn.jsonl" };
const f16 = { ours: "h200/layers.f16.jsonl", peer: "h200/layers.f16.cudnn.jsonl" };
const drawn = { ours: "h200/drawn.f16.jsonl", peer: "h200/drawn.f16.cudnn.jsonl" };

const SUITES: readonly Suite[] = [
  { title: "resnet3x3 f32", ...f32, only: resnet },
  { title: "vgg16 f32", ...f32, only: vgg },
  { title: "resnet3x3 f32 in halves", ...auto, only: resnet },
  { title: "vgg16 f32 in halves", ...auto, only: vgg },
  { title: "networks f32", ours: "h200/networks.jsonl", peer: "h200/networks.cudnn.jsonl" },
  {
    title: "more_networks f32",
    ours: "h200/more_networks.jsonl",
    peer: "h200/more_networks.cudnn.jsonl",
  },
  { title: "im2win12 f32", ours: "h200/im2win12.jsonl", peer: "h200/im2win12.cudnn.jsonl" },
  {
    title: "winrs_bfc f32, WinRS",
    ours: "h200/winrs_bfc.jsonl",
    peer: "h200/winrs_bfc.cudnn.jsonl",
  },
  { title: "resnet3x3 f16", ...f16, only: resnet },
  { title: "vgg16 f16", ...f16, only: vgg },
  { title: "drawn f16", ...drawn },
  { title: "drawn f16, dense", ...drawn, only: dense },
  { title: "drawn f16, others", ...drawn, only: (pair) => !dense(pair) },
];

/** The pairs of a suite. */
function pairs({ ours, peer, only = () => true }: Suite): Pair[] {
  return pairsOf(readCases(ours), readCases(peer)).filter(only);
}

const ratios = (all: readonly Pair[]) => all.map(({ ratio }) => ratio);

/** cuDNN's time over ours, geometric means. */
function summary(): string {
  return tableOf(
    ["suite<", "forward", "backward-data", "backward-filter", "all", "least", "slower than cuDNN"],
    SUITES.map((suite) => {
      const all = pairs(suite);
      const slower = ratios(all).filter((ratio) => ratio < 1).length;
      return [
        suite.title,
        ...OPERATIONS.map((op) => cell(mean(ratios(all.filter((one) => one.op === op))), 2)),
        cell(mean(ratios(all)), 2),
        cell(Math.min(...ratios(all)), 2),
        `${slower} of ${all.length}`,
      ];
    }),
  );
}

/** A time, with a decimal where it is short. */
function microseconds(one: ReadCase): string {
  const time = 1000 * timeOf(one);
  return cell(time, time < 20 ? 1 : 0);
}

/** The f32 cases that take more than 1.4 times as long as cuDNN's. */
function slower(): string {
  const rows = SUITES.filter(({ title }) => title.includes("f32")).flatMap((suite) =>
    pairs(suite).filter(({ ratio }) => ratio < 1 / 1.4)
      .toSorted((one, other) => one.ratio - other.ratio)
      .map(({ name, op, ours, peer, ratio }) => [
        suite.title.split(" ")[0]!,
        name,
        op,
        `${ours.algorithm} ${ours.layout}`,
        microseconds(ours),
        microseconds(peer),
        cell(ratio, 2),
      ])
  );
  return tableOf(["suite<", "layer<", "operation<", "`auto` takes<", "µs", "cuDNN", "ratio"], rows);
}

/** The twelve layers of the im2win paper by algorithm. */
function im2win(): string {
  const own = readCases("h200/im2win12.jsonl");
  const peers = readCases("h200/im2win12.cudnn.jsonl");
  const asked = ["im2win", "im2win-fused", "im2col", "implicit-gemm", "auto"];
  const rows = [...new Set(own.map(nameOf))].map((name) => {
    const rates = asked.map((algorithm) =>
      rateOf(
        fastest(
          own,
          (one) => nameOf(one) === name && (one.requested ?? one.algorithm) === algorithm,
        ),
      )
    );
    const peer = rateOf(fastest(peers, (one) => nameOf(one) === name));
    return { name, rates: [...rates, peer], ratio: rates.at(-1)! / peer };
  });
  const means = asked.concat("cuDNN").map((_, at) => mean(rows.map(({ rates }) => rates[at]!)));
  return tableOf(["layer<", ...asked, "cuDNN", "`auto` / cuDNN"], [
    ...rows.map(({ name, rates, ratio }) => [
      name,
      ...rates.map((rate) => cell(rate)),
      cell(ratio, 2),
    ]),
    ["geomean", ...means.map((rate) => cell(rate)), cell(mean(rows.map((row) => row.ratio)), 2)],
  ]);
}

/** WinRS beside the fastest of cuDNN's algorithms, by the filter's size. */
function winrs(): string {
  const all = pairsOf(readCases("h200/winrs_bfc.jsonl"), readCases("h200/winrs_bfc.cudnn.jsonl"));
  const share = ({ ours: { workspace_bytes, memory_bytes } }: Pair) =>
    (workspace_bytes ?? 0) / (memory_bytes!.inputs + memory_bytes!.output);
  const groups = [
    ...Map.groupBy(all, ({ name }) => name.replace(/c.*/, "")),
    ["all", all] as const,
  ];
  return tableOf(
    ["filter<", "problems", "WinRS", "cuDNN", "WinRS / cuDNN", "least", "workspace of data"],
    groups.map(([title, some]) => [
      title.replace(/^F(\d)$/, "$1x$1"),
      `${some.length}`,
      cell(mean(some.map(({ ours }) => rateOf(ours)))),
      cell(mean(some.map(({ peer }) => rateOf(peer)))),
      cell(mean(ratios(some)), 2),
      cell(Math.min(...ratios(some)), 2),
      cell(some.map(share).reduce((sum, one) => sum + one, 0) / some.length, 2),
    ]),
  );
}

/** Winograd in one kernel beside implicit GEMM, forward over ResNet's layers. */
function fused(): string {
  const all = readCases("h200/fused.jsonl");
  const of = (algorithm: string) => all.filter((one) => one.algorithm === algorithm);
  return tableOf(
    ["algorithm<", "TFLOP/s", "over implicit GEMM", "least"],
    [
      ["implicit-gemm", "implicit GEMM"],
      ["winograd2d", "F(2x2,3x3), two axes"],
      ["winograd1d", "F(n,3), one axis"],
    ].map(([algorithm, title]) => {
      const gains = ratios(pairsOf(of(algorithm!), of("implicit-gemm")));
      return [
        title!,
        cell(mean(of(algorithm!).map(rateOf))),
        cell(mean(gains), 2),
        cell(Math.min(...gains), 2),
      ];
    }),
  );
}

/** Relative L2 errors of the same data, medians. */
function errors(): string {
  const own = readCases("h200/precisions.jsonl");
  const cudnn = readCases("h200/precisions.cudnn.jsonl");
  const cublas = readCases("h200/precisions.cublas.jsonl");
  const halves = ({ kernel }: { readonly kernel?: string | null | undefined }) =>
    kernel?.includes("f16x3") ?? false;
  const kinds = [
    ["wgconv f32", own.filter((one) => one.dtype === "f32" && !halves(one))],
    ["wgconv f32 in halves", own.filter(halves)],
    ["wgconv f16", own.filter(({ dtype }) => dtype === "f16")],
    ...["f32", "tf32", "f16"].map((dtype) =>
      [
        `cuDNN, cuBLAS ${dtype}`,
        [...cudnn, ...cublas].filter((one) => one.dtype === dtype),
      ] as const
    ),
  ] as const;
  const ops = [...OPERATIONS, "gemm"];
  return tableOf(
    ["precision<", "forward", "backward-data", "backward-filter", "products"],
    kinds.map(([title, cases]) => [
      title,
      ...ops.map((op) =>
        median(
          cases.filter((one) => one.op === op).map(({ accuracy }) => accuracy?.rel_l2 ?? NaN)
            .filter(Number.isFinite),
        ).toExponential(1)
      ),
    ]),
  );
}

export const CONVOLUTION_TABLES = {
  "convolutions": summary,
  "slower": slower,
  "im2win": im2win,
  "winrs": winrs,
  "fused": fused,
  "errors": errors,
} as const;
