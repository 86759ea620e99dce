import assert from "#assert";
import { CaseSchema, type ReadCase, readRecord } from "../report/record_schema.ts";
import { caseRows, timingNotes } from "./case_rows.ts";
import { timeLeft } from "./case_progress.ts";
import { parseColumns, parseSort } from "./table_options.ts";

function record(oc: number, median: number, more: Partial<ReadCase> = {}): ReadCase {
  const samples = Array.from({ length: 9 }, () => median);
  return readRecord(CaseSchema, {
    schema: 1,
    kind: "case",
    provider: "wgconv",
    problem: `mb1ic4ih8oc${oc}oh8kh3ph1`,
    op: "fwd",
    algorithm: "direct",
    device: "NVIDIA H200",
    dtype: "f32",
    layout: "nchw",
    time_ms: { median, min: median, mad: 0.001 * median, samples, repeats: 1, clock: "wall" },
    multiplications: 1e6,
    workspace_bytes: 0,
    verdict: "pass",
    ...more,
  }, "a test");
}

function table(cases: readonly ReadCase[], columns?: string, sort?: string): string[] {
  const lines: string[] = [];
  const out = { line: () => {}, message: () => {}, painted: (text: string) => lines.push(text) };
  const rows = caseRows(
    cases,
    {
      columns: columns === undefined ? undefined : parseColumns(columns),
      sort: sort === undefined ? undefined : parseSort(sort),
    },
    { ...out, painted: (text) => void out.painted(text) },
    {},
  );
  cases.forEach(rows.add);
  rows.end();
  return lines.join("\n").split("\n");
}

Deno.test("rows say what auto chose, and the device's shares where they are known", () => {
  const cases = [
    record(4, 1),
    record(8, 2, { requested: "auto", algorithm: "winograd2d", tile: "F(2x2,3x3)" }),
  ];
  const [head, first, second] = table(cases);
  assert.match(
    head!,
    /^problem +op +layout +algorithm +time +noise +GFLOP\/s +GB\/s +of peak +of bandwidth +work/,
  );
  // 18,432 flop, 2,624 bytes, 2 million real flops of 65.1 TFLOP/s in 1 ms.
  assert.match(first!, / direct +1\.000 ms +0\.10 % +0\.01843 +0\.002624 +0\.00 % +0\.00 % /);
  assert.match(second!, / auto: winograd2d F\(2x2,3x3\) /);
  const elsewhere = table([record(4, 1, { device: "another" })]);
  assert.ok(!elsewhere[0]!.includes("of peak"));
});

Deno.test("--columns and --sort choose what is shown in what order", () => {
  const cases = [record(4, 2), record(8, 1), record(12, 3, { time_ms: null })];
  const shown = (sort?: string) => table(cases, "problem,TIME", sort).map((line) => line.trim());
  assert.deepEqual(shown()[0]!.split(/ +/), ["problem", "time"]);
  const order = (sort: string) => shown(sort).slice(1).map((line) => /oc(\d+)/.exec(line)![1]);
  assert.deepEqual(order("time"), ["8", "4", "12"]);
  assert.deepEqual(order("-time"), ["4", "8", "12"]);
  assert.throws(() => parseSort("tim"), /did you mean "time"/);
});

Deno.test("timingNotes() counts what did not settle and names what slowed down", () => {
  const rising = [1, 1, 1, 1, 1.2, 1.3, 1.3, 1.3, 1.3, 1.3];
  const time = { median: 1.25, min: 1, mad: 0.1, samples: rising, repeats: 1, clock: "wall" };
  const cases = [record(4, 1), record(8, 1.25, { time_ms: time })];
  assert.deepEqual(timingNotes(cases.slice(0, 1), 0.01), []);
  const [noisy, slower] = timingNotes(cases, 0.01);
  assert.equal(noisy, "1 of 2 cases did not reach 1 % of noise (--spread)");
  assert.match(
    slower!,
    /^1 of 2 cases slowed down .*: fwd mb1ic4ih8oc8oh8kh3ph1 direct by 23\.1 %$/,
  );
});

Deno.test("timeLeft() goes by the cases that have ended", () => {
  assert.equal(timeLeft({ ended: 0, all: 4 }, 1000), "");
  assert.equal(timeLeft({ ended: 1, all: 4 }, 10_000), ", about 30 s left");
});
