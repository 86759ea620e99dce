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

/** Cases of ours beside cuDNN's. */
interface Row {
  readonly title: string;
  readonly ours: string;
  readonly peer: string;
  /** Which pairs of the files; all where absent. */
  readonly only?: (pair: Pair) => boolean;
}

/** Names of the layers of a list in bench/suites. */
function layersOf(suite: string): Set<string> {
  const text = Deno.readTextFileSync(new URL(`../suites/${suite}.txt`, import.meta.url));
  return new Set([...text.matchAll(/n"([^"]*)"$/gm)].map(([, name]) => name!));
}

const LISTS = ["resnet3x3", "vgg16", "networks", "more_networks"].map((suite) => {
  const layers = layersOf(suite);
  return { suite, only: ({ name }: Pair) => layers.has(name) };
});

/** 32 channels or more on both sides, in one group. */
function dense({ op, ours }: Pair): boolean {
  const { groups, inChannels, outChannels } = parseDescriptor(ours.problem, op as Operation);
  return groups === 1 && Math.min(inChannels, outChannels) >= 32;
}

/** A file of ours and one of cuDNN, over the lists of layers. */
const beside = (ours: string, peer: string) => ({
  ours: `h200/layers.${ours}.jsonl`,
  peer: `h200/layers.${peer}.cudnn.jsonl`,
});
const listed = (type: string, files: ReturnType<typeof beside>) =>
  LISTS.map(({ suite, only }): Row => ({ title: `${suite} ${type}`, ...files, only }));

/** f32 on ordinary units of both. */
const FP32: readonly Row[] = [
  ...listed("f32", beside("f32", "f32")),
  { title: "im2win12 f32", ours: "h200/im2win12.jsonl", peer: "h200/im2win12.cudnn.jsonl" },
  {
    title: "winrs_bfc f32, WinRS",
    ours: "h200/winrs_bfc.jsonl",
    peer: "h200/winrs_bfc.cudnn.jsonl",
  },
];
const ROWS: readonly Row[] = [
  ...FP32,
  { title: "four lists f32, Dawn", ...beside("f32.dawn", "f32") },
  { title: "four lists f32, cuDNN's TF32", ...beside("f32", "tf32") },
  ...listed("f32 in halves", beside("auto", "f32")).slice(0, 2),
  ...listed("f16", beside("f16", "f16")),
  { title: "four lists f16, dense", ...beside("f16", "f16"), only: dense },
  { title: "four lists f16, others", ...beside("f16", "f16"), only: (pair) => !dense(pair) },
  { title: "four lists bf16", ...beside("bf16", "bf16") },
];

/** The pairs of a row. */
function pairs({ ours, peer, only = () => true }: Row): Pair[] {
  return pairsOf(readCases(ours), readCases(peer)).filter(only);
}

const ratios = (all: readonly Pair[]) => all.map(({ ratio }) => ratio);

/** cuDNN's time over ours, geometric means. */
function summary(): string {
  return tableOf(
    ["layers<", "forward", "backward-data", "backward-filter", "all", "least", "slower than cuDNN"],
    ROWS.map((row) => {
      const all = pairs(row);
      const slower = ratios(all).filter((ratio) => ratio < 1).length;
      return [
        row.title,
        ...OPERATIONS.map((op) => cell(mean(ratios(all.filter((one) => one.op === op))), 2)),
        cell(mean(ratios(all)), 2),
        cell(Math.min(...ratios(all)), 2),
        `${slower} of ${all.length}`,
      ];
    }),
  );
}

/** Networks of which so many layers are listed have a total. */
const TOTALED = 3;

/** Milliseconds of a network's layers as often as it has them, `resnet18_conv2*4`, of all three operations. */
function totals(): string {
  const networkOf = ({ name }: Pair) =>
    LISTS.slice(0, 2).find(({ only }) => only({ name } as Pair))?.suite ?? name.split("_")[0]!;
  const types = ["f32", "f16"].map((type) =>
    Map.groupBy(pairs({ title: type, ...beside(type, type) }), networkOf)
  );
  const sum = (some: readonly Pair[], side: "ours" | "peer") =>
    some.reduce(
      (ms, one) => ms + Number(/\*(\d+)$/.exec(one.name)?.[1] ?? 1) * timeOf(one[side]),
      0,
    );
  const layers = (some: readonly Pair[]) => new Set(some.map(({ name }) => name)).size;
  return tableOf(
    ["network<", "layers", "f32 ms", "cuDNN", "ratio", "f16 ms", "cuDNN", "ratio"],
    [...types[0]!].filter(([, some]) => layers(some) >= TOTALED).map(([network, some]) => [
      network,
      `${layers(some)}`,
      ...types.flatMap((byNetwork) => {
        const [own, peer] = (["ours", "peer"] as const)
          .map((side) => sum(byNetwork.get(network) ?? [], side));
        return [cell(own!, 2), cell(peer!, 2), cell(peer! / own!, 2)];
      }),
    ]),
  );
}

/** A time, with a decimal where it is short. */
function microseconds(one: ReadCase): string {
  const time = 1000 * timeOf(one);
  return cell(time, time < 20 ? 1 : 0);
}

/** The f32 cases that take more than 1.4 times as long as cuDNN's. */
function slower(): string {
  const rows = FP32.flatMap((row) =>
    pairs(row).filter(({ ratio }) => ratio < 1 / 1.4)
      .toSorted((one, other) => one.ratio - other.ratio)
      .map(({ name, op, ours, peer, ratio }) => [
        row.title.split(" ")[0]!,
        name,
        op,
        `${ours.algorithm} ${ours.layout}`,
        microseconds(ours),
        microseconds(peer),
        cell(ratio, 2),
      ])
  );
  return tableOf(["list<", "layer<", "operation<", "`auto` takes<", "µs", "cuDNN", "ratio"], rows);
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
  "networks": totals,
  "slower": slower,
  "im2win": im2win,
  "winrs": winrs,
  "fused": fused,
  "errors": errors,
} as const;
