/** ResNet's and VGG-16's layers by what `auto` takes for f32 on matrix units, beside cuDNN and what memory and units allow. */
import { OPERATIONS } from "../../src/problem/conv_problem.ts";
import { type Case, cell, fastest, mean, nameOf, readCases, tableOf } from "./read.ts";
import { floorOf, FLOPS } from "./roofline.ts";

/** FP32 by three products of halves: a third of what the units reach, measured. */
const HALVES_FLOPS = 213e12;

const FOLDER = "../h200-2026-11-26/";
/** Of the call that ran ours beside TF32. */
const TF32_FOLDER = "../h200-2026-11-27/";

/** A layer and operation: ours, in f32 alone, cuDNN's in FP32 and, of another call, in TF32 with ours beside it. */
interface Row {
  readonly ours: Case;
  readonly f32: Case;
  readonly peer: Case;
  readonly tf32: Case;
  readonly besideTf32: Case;
}

function rowsOf(op: string): Row[] {
  const from = (folder: string, ...names: string[]) =>
    names.flatMap((name) => readCases(folder + name)).filter((one) => one.op === op);
  const read = (...names: string[]) => from(FOLDER, ...names);
  const ours = read("conv_night.jsonl");
  const f32 = read("conv_night.f32.jsonl");
  const peers = read("conv_night.cudnn_nchw.jsonl", "conv_night.cudnn_nhwc.jsonl");
  const tf32 = from(TF32_FOLDER, "conv_tf32.cudnn.jsonl");
  const besideTf32 = from(TF32_FOLDER, "conv.jsonl");
  return ours.map((one) => {
    const same = (cases: readonly Case[]) =>
      fastest(cases.filter((other) => nameOf(other) === nameOf(one)));
    return {
      ours: one,
      f32: same(f32)!,
      peer: same(peers)!,
      tf32: same(tf32)!,
      besideTf32: same(besideTf32)!,
    };
  });
}

const isHalves = ({ kernel = "" }: Case) => kernel.includes("_f16x3_");

/** Microseconds of what a plan moves, then its products: no two passes at once. */
function ceilingOf(one: Case): number {
  const { arithmetic, memory } = floorOf(one);
  return memory + arithmetic * (isHalves(one) ? FLOPS / HALVES_FLOPS : 1);
}

/** `halves F(5x5,3x3)`, `F(3x3,7x7)`, `depthwise` */
function way(one: Case): string {
  const tile = /_m(\d+x\d+)r(\d+x\d+)_/.exec(one.kernel ?? "");
  const name = tile === null ? one.algorithm ?? "" : `F(${tile[1]},${tile[2]})`;
  return isHalves(one) ? `halves ${name}` : name;
}

const time = (one: Case) => 1000 * one.time_ms.median;

function layers(): string {
  return tableOf(
    ["layer<", "`auto`<", "us", "f32", "cuDNN FP32", "ratio", "cuDNN TF32", "ceiling", "of it"],
    OPERATIONS.flatMap(rowsOf).map(({ ours, f32, peer, tf32 }) => [
      `${nameOf(ours)} ${ours.op}`,
      way(ours),
      cell(time(ours), 0),
      cell(time(f32), 0),
      cell(time(peer), 0),
      cell(time(peer) / time(ours), 2),
      cell(time(tf32), 0),
      cell(ceilingOf(ours), 0),
      cell(ceilingOf(ours) / time(ours), 2),
    ]),
  );
}

function summary(): string {
  const groups: [string, readonly string[]][] = [
    ...OPERATIONS.map((op): [string, string[]] => [op, [op]]),
    ["all", OPERATIONS],
  ];
  return tableOf(
    ["geomean<", "`auto` over cuDNN FP32", "least", "f32 over it", "`auto` over f32", "over TF32"],
    groups.map(([title, ops]) => {
      const rows = ops.flatMap(rowsOf);
      const of = (ratio: (row: Row) => number) => cell(mean(rows.map(ratio)), 3);
      const least = Math.min(...rows.map(({ ours, peer }) => time(peer) / time(ours)));
      return [
        `${title}, ${rows.length}`,
        of(({ ours, peer }) => time(peer) / time(ours)),
        cell(least, 2),
        of(({ f32, peer }) => time(peer) / time(f32)),
        of(({ ours, f32 }) => time(f32) / time(ours)),
        of(({ besideTf32, tf32 }) => time(tf32) / time(besideTf32)),
      ];
    }),
  );
}

export const HALVES_TABLES: Readonly<Record<string, () => string>> = {
  "halves": summary,
  "halves-layers": layers,
};
