/** Other WebGPU libraries beside wgconv. */
import { OPERATIONS } from "../../src/problem/conv_problem.ts";
import type { ReadCase } from "../../src/report/record_schema.ts";
import { cell, mean, type Pair, pairsOf, readRecords, tableOf } from "./read.ts";

/** The libraries, and which of our records are timed as theirs. */
const LIBRARIES = [
  ["TensorFlow.js", "tfjs", "wgconv"],
  ["jax-js", "jax-js", "wgconv"],
  ["onnxruntime-web", "onnxruntime-web", "wgconv"],
  ["onnxruntime-node", "onnxruntime-node", "wgconv-wall"],
] as const;

/** What a library computes, beside ours. */
export interface Peer {
  readonly title: string;
  readonly dtype: string;
  readonly pairs: readonly Pair[];
  /** Results that fail the check, and all. */
  readonly wrong: number;
  readonly all: number;
}

/** Every library by type, on what both compute in the same layout; results that are wrong are not compared. */
export function peers(): Peer[] {
  return LIBRARIES.flatMap(([title, theirs, ours]) =>
    ["f32", "f16"].flatMap((dtype): Peer[] => {
      const [own, peer] = [ours, theirs].map((name) =>
        readRecords(`h200/peers.${name}.jsonl`).filter((one) => one.dtype === dtype)
      );
      const right = (cases: readonly ReadCase[]) =>
        cases.filter(({ verdict }) => verdict === "pass");
      const layouts = [...new Set(peer!.map(({ layout }) => layout))];
      const pairs = layouts.flatMap((layout) => {
        const [mine, other] = [own!, peer!].map((all) =>
          right(all).filter((one) => one.layout === layout)
        );
        return pairsOf(mine!, other!);
      });
      const wrong = peer!.filter(({ verdict }) => verdict === "fail").length;
      const all = wrong + right(peer!).length;
      return all === 0 ? [] : [{ title, dtype, pairs, wrong, all }];
    })
  );
}

/** A library's time over ours, geometric means, and of how many cases. */
function table(): string {
  const of = (pairs: readonly Pair[]) =>
    pairs.length === 0 ? "-" : `${cell(mean(pairs.map(({ ratio }) => ratio)))} (${pairs.length})`;
  return tableOf(
    [
      "library<",
      "type<",
      "forward",
      "backward-data",
      "backward-filter",
      "products",
      "least",
      "wrong results",
    ],
    peers().map(({ title, dtype, pairs, wrong, all }) => [
      title,
      dtype,
      ...[...OPERATIONS, "gemm"].map((op) => of(pairs.filter((one) => one.op === op))),
      cell(Math.min(...pairs.map(({ ratio }) => ratio))),
      `${wrong} of ${all}`,
    ]),
  );
}

export const PEER_TABLES = { "webgpu-libraries": table };
