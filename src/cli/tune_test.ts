import assert from "#assert";
import type { TunedGroup } from "../bench/tune_suite.ts";
import type { TuningRecord } from "../report/record.ts";
import { parseTuneColumns, parseTuneSort, tuneRows } from "./tune.ts";

/** What of a record the table reads. */
function rival(problem: string, median: number, more: Partial<TuningRecord> = {}): TuningRecord {
  return {
    problem,
    op: "fwd",
    dtype: "f32",
    layout: "nchw",
    algorithm: "direct",
    kernel: "direct_fwd",
    time_ms: { median, mad: median / 100 },
    gflops: 2000,
    workspace_bytes: 0,
    max_bound_ratio: null,
    chosen: false,
    winner: false,
    ...more,
  } as TuningRecord;
}

const GROUPS = [
  [rival("a", 2, { winner: true }), rival("a", 3, { chosen: true })],
  [rival("b", 4, { winner: true, chosen: true, max_bound_ratio: 6.5 })],
  [rival("c", 1, { winner: true })],
  [rival("d", 1)],
].map((records): Pick<TunedGroup, "records"> => ({ records }));

function table(columns?: string, sort?: string): string[] {
  const lines: string[] = [];
  const take = (text = "") => void lines.push(...text.split("\n"));
  const rows = tuneRows(GROUPS.map(({ records: [first] }) => first!), {
    ...(columns === undefined ? {} : { columns: parseTuneColumns(columns) }),
    ...(sort === undefined ? {} : { sort: parseTuneSort(sort) }),
  }, { line: take, message: take, painted: take });
  GROUPS.forEach(rows.add);
  const shown = lines.length;
  rows.end();
  assert.equal(shown === 0, sort !== undefined);
  return lines.map((line) => line.trimEnd());
}

Deno.test("tune shows what was fastest of each problem, in columns that may be chosen", () => {
  assert.match(
    table()[0]!,
    /^problem +op +layout +fastest +time +noise +rate +over auto +kernel$/,
  );
  assert.match(
    table()[1]!,
    /^a +fwd +nchw +direct +2\.000 ms +1\.00 % +2\.000 TFLOP\/s +1\.500 +direct_fwd$/,
  );
  assert.deepEqual(table("gain,PROBLEM,bound").map((line) => line.trim().split(/ {2,}/)), [
    ["over auto", "problem", "bound"],
    ["1.500", "a", "-"],
    ["1.000", "b", "6.500"],
    ["-", "c", "-"],
  ]);
});

Deno.test("tune sorts by a column, and what has no value comes last", () => {
  const order = (sort: string) => table("problem", sort).slice(1).join("");
  assert.equal(order("time"), "cab");
  assert.equal(order("-time"), "bac");
  assert.equal(order("-gain"), "abc");
  assert.equal(order("gain"), "bac");
});
