import assert from "#assert";
import { CaseSchema, type ReadCase, readRecord } from "../report/record_schema.ts";
import { caseRows, TABLE, timingNotes } from "./table_options.ts";
import { timeLeft } from "./output.ts";

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

function table(
  cases: readonly ReadCase[],
  columns?: string,
  sort?: string,
  how: { readonly wide?: boolean; readonly room?: number } = {},
): string[] {
  const lines: string[] = [];
  const out = { line: () => {}, message: () => {}, painted: (text: string) => lines.push(text) };
  const rows = caseRows(
    cases,
    {
      columns: columns === undefined ? undefined : TABLE.columns[2](columns),
      sort: sort === undefined ? undefined : TABLE.sort[2](sort),
      wide: how.wide,
    },
    { ...out, painted: (text) => void out.painted(text) },
    { room: how.room },
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
  const [head, first, second] = table(cases, undefined, undefined, { wide: true });
  assert.match(
    head!,
    /^problem +op +layout +algorithm +time +noise +GFLOP\/s +GB\/s +of peak +of bandwidth +work/,
  );
  // 18,432 flop, 2,624 bytes, 2 million real flops of 65.1 TFLOP/s in 1 ms.
  assert.match(first!, / direct +1\.000 ms +0\.10 % +0\.01843 +0\.002624 +0\.00 % +0\.00 % /);
  assert.match(second!, / auto: winograd2d F\(2x2,3x3\) /);
  const elsewhere = table([record(4, 1, { device: "another" })], undefined, undefined, {
    wide: true,
  });
  assert.ok(!elsewhere[0]!.includes("of peak"));
});

/** Cases of the longest cells that benches have. */
const LONG = [
  ["fwd", "nchw", "f32"],
  ["bwd-filter", "nhwc", "f16"],
].map(([op, layout, dtype]) =>
  record(4, 1234, {
    op: op as ReadCase["op"],
    layout: layout!,
    dtype: dtype!,
    problem: "g4mb32ic64ih56iw57oc128oh28ow29kh3kw5sh2sw2ph1pw2dh1dw1",
    cache: "cold",
    requested: "auto",
    algorithm: "winograd2d-nonfused",
    tile: "F(4x4,3x3)",
    kernel: "winograd2d_nonfused_fwd_f32_m4x4r3x3_64x128x16_nchw_place_place",
    workspace_bytes: 123456789,
  })
);

Deno.test("the usual table fits 100 columns, or the terminal, and names problem, algorithm, time and verdict", () => {
  const heads = (cases: readonly ReadCase[], room?: number) => {
    const lines = table(cases, undefined, undefined, room === undefined ? {} : { room });
    const most = Math.max(...lines.map((line) => line.length));
    assert.ok(most <= (room ?? 100), `${most} of ${room}:\n${lines.join("\n")}`);
    return lines[0]!.split(/ {2,}/);
  };
  const plain = [record(4, 1, { device: "another" }), record(8, 2, { device: "another" })];
  const figures = ["time", "GFLOP/s", "MARE", "verdict"];
  assert.deepEqual(heads(plain), [
    "problem",
    "op",
    "layout",
    "algorithm",
    "time",
    "noise",
    "GFLOP/s",
    "MARE",
    "verdict",
  ]);
  assert.deepEqual(heads(plain, 80), ["problem", "op", "algorithm", ...figures]);
  assert.ok(heads(plain, 150).includes("workspace"));
  // A layer's name loses its middle before the figures go.
  const named = `mb1ic4ih8oc4kh3n"resnet50_layer1/layer1.0/downsample/downsample.0/Conv*2"`;
  const layer = record(4, 1, { problem: named });
  for (const figure of figures) assert.ok(heads([layer]).includes(figure), figure);
  assert.ok(!heads(plain, 400).includes("kernel"));
  for (const room of [undefined, 80, 100, 120, 160]) {
    for (const cases of [LONG, LONG.slice(1), [...plain, ...LONG]]) {
      const shown = heads(cases, room);
      for (const name of ["problem", "op", "algorithm", "time", "verdict"]) {
        assert.ok(shown.includes(name), `${room}: ${shown}`);
      }
    }
  }
});

Deno.test("--wide shows all whole, and --columns fits a terminal only", () => {
  const wide = table(LONG, undefined, undefined, { wide: true, room: 80 }).join("\n");
  for (const text of ["workspace", LONG[0]!.problem, LONG[0]!.kernel!]) {
    assert.ok(wide.includes(text));
  }
  const piped = table(LONG, "problem,kernel,time").join("\n");
  assert.ok(piped.includes(LONG[0]!.problem) && piped.includes(LONG[0]!.kernel!));
  const lines = table(LONG, "problem,kernel,time", undefined, { room: 70 });
  assert.ok(lines.every((line) => line.length <= 70), lines.join("\n"));
  assert.match(lines[1]!, /^g4mb32ic\S+…\S+dw1 +winograd\S+…\S+place +1\.234 s$/);
});

Deno.test("--columns and --sort choose what is shown in what order", () => {
  const cases = [record(4, 2), record(8, 1), record(12, 3, { time_ms: null })];
  const shown = (sort?: string) => table(cases, "problem,TIME", sort).map((line) => line.trim());
  assert.deepEqual(shown()[0]!.split(/ +/), ["problem", "time"]);
  const order = (sort: string) => shown(sort).slice(1).map((line) => /oc(\d+)/.exec(line)![1]);
  assert.deepEqual(order("time"), ["8", "4", "12"]);
  assert.deepEqual(order("-time"), ["4", "8", "12"]);
  assert.throws(() => TABLE.sort[2]("tim"), /did you mean "time"/);
});

Deno.test("timingNotes() counts what did not settle and names what slowed down", () => {
  const rising = [1, 1, 1, 1, 1.2, 1.3, 1.3, 1.3, 1.3, 1.3];
  const time = { median: 1.25, min: 1, mad: 0.1, samples: rising, repeats: 1, clock: "wall" };
  const cases = [record(4, 1), record(8, 1.25, { time_ms: time })];
  assert.deepEqual(timingNotes(cases.slice(0, 1), 0.01), []);
  const [noisy, slower] = timingNotes(cases, 0.01);
  assert.equal(
    noisy,
    "1 of 2 cases is noisy: samples vary by more than 1 %; add --runs, or close other programs",
  );
  assert.match(
    slower!,
    /^1 of 2 cases slowed down .*: fwd mb1ic4ih8oc8oh8kh3ph1 direct by 23\.1 %$/,
  );
});

Deno.test("timeLeft() goes by the cases that have ended", () => {
  assert.equal(timeLeft({ ended: 0, all: 4 }, 1000), "");
  assert.equal(timeLeft({ ended: 1, all: 4 }, 10_000), ", about 30 s left");
});
