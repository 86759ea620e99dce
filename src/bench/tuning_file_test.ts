import assert from "#assert";
import {
  mergeTuning,
  otherDevice,
  parseTuning,
  printTuning,
  readTuningText,
  tuningTable,
} from "./tuning_file.ts";

const DEVICE = { backend: "wgpu", adapter: "GPU", driver: "1.0" };

function line(change: Record<string, unknown> = {}): string {
  return JSON.stringify({
    schema: 1,
    kind: "tuning",
    backend: "wgpu",
    device: "GPU",
    driver: "1.0",
    problem: "mb4ic16ih14oc32oh14kh3ph1",
    op: "fwd",
    dtype: "f32",
    layout: "nchw",
    filter_layout: "kcrs",
    algorithm: "direct",
    kernels: ["a", "b"],
    winner: true,
    verdict: "pass",
    ...change,
  });
}

function product(change: Record<string, unknown> = {}): string {
  return line({ problem: "64 32 16", op: "gemm", layout: "nn", algorithm: "gemm", ...change });
}

Deno.test("tuningTable() takes a device's winners that were found exact", () => {
  const text = [
    '{"schema":1,"kind":"environment"}',
    line({ winner: false, algorithm: "im2col" }),
    line(),
    line({ driver: "2.0", op: "bwd-data" }),
    line({ op: "bwd-filter", verdict: "fail" }),
    product({ epilogue: "relu" }),
    "",
  ].join("\n");
  const { lines, foreign } = parseTuning(text, "t");
  assert.deepEqual([lines.length, foreign], [6, 0]);
  const table = tuningTable(lines, DEVICE);
  assert.deepEqual([...table.values()].map(({ algorithm, kernels }) => [algorithm, kernels]), [
    ["direct", ["a", "b"]],
  ]);
  assert.equal(otherDevice(lines, DEVICE), undefined);
  assert.equal(
    otherDevice(lines, { ...DEVICE, adapter: "Other", driver: "" }),
    "it is of GPU, driver 1.0 (wgpu), this is Other (wgpu)",
  );
  assert.equal(otherDevice([], DEVICE), undefined);
});

Deno.test("tuningTable() takes segments of WinRS where a record has them", () => {
  const winrs = { op: "bwd-filter", algorithm: "winrs", pair: "a4n3r2" };
  const choiceOf = (
    change: Record<string, unknown>,
  ) => [...tuningTable(parseTuning(line({ ...winrs, ...change }), "t").lines, DEVICE).values()];
  assert.deepEqual(choiceOf({ segments: 6 }).map(({ segments }) => segments), [6]);
  assert.deepEqual(choiceOf({}).map((choice) => "segments" in choice), [false]);
  for (const segments of [0, 1.5, "6"]) {
    assert.throws(() => choiceOf({ segments }), /^SyntaxError: .*t:1: segments is /);
  }
});

Deno.test("tuningTable() takes what auto timed by itself, unchecked, and products", () => {
  const text = [
    line({ verdict: "none", budget_ms: 1000, multiprocessors: 40 }),
    line({ op: "bwd-data", verdict: "none" }),
    product({ policy: "small", splits: 2, balance: "split-k" }),
    product({ problem: "64 32 16 n n x40", verdict: "fail" }),
  ].join("\n");
  const choices = [...tuningTable(parseTuning(text, "t").lines, DEVICE).values()];
  assert.deepEqual(choices.map(({ problem: _, kernels: __, ...choice }) => choice), [
    { algorithm: "direct", multiprocessors: 40 },
    { algorithm: "gemm", policy: "small", splits: 2, balance: "split-k" },
  ]);
});

Deno.test("mergeTuning() replaces a class of problems on its device, and nothing else", () => {
  const old = parseTuning(
    [line(), line({ driver: "2.0" }), line({ op: "bwd-data" })].join("\n"),
    "t",
  ).lines;
  const added = parseTuning(
    line({ problem: "mb5ic16ih14oc32oh14kh3ph1", algorithm: "im2col" }),
    "t",
  ).lines;
  const merged = mergeTuning(old, added);
  assert.deepEqual(merged.map(({ tuned }) => tuned?.algorithm), ["direct", "direct", "im2col"]);
  assert.deepEqual(parseTuning(printTuning(merged), "t").lines, merged);
});

Deno.test("mergeTuning() keeps every line that it does not know as it is", () => {
  const unknown = [
    '{"schema":1,"kind":"environment","adapter":"GPU"}',
    "# measured at night",
    "",
    product({ epilogue: "relu" }),
    line({ schema: 2, novelty: [1] }),
    line({ algorithm: "magic", version: "9.0.0" }),
    '{"schema":1,"kind":"tuning","cut o',
    '  {"spaces" : "stay", "kind": "case"}\r',
  ];
  const old = readTuningText([...unknown.slice(0, 3), line(), ...unknown.slice(3)].join("\n"));
  assert.equal(old.foreign, 2);
  assert.deepEqual(old.damage, { line: 8, what: "the line is no JSON" });
  const added = line({ algorithm: "im2col" });
  const merged = printTuning(mergeTuning(old.lines, readTuningText(added).lines));
  assert.equal(merged, `${[...unknown, added].join("\n")}\n`);
  assert.equal(printTuning(readTuningText(merged).lines), merged);
});

Deno.test("parseTuning() names the line that is malformed", () => {
  assert.throws(() => parseTuning(`${line()}\n{"schema":1,`, "t.jsonl"), {
    name: "SyntaxError",
    message:
      "Cannot read the tuning: t.jsonl:2: the line is no JSON; without the line it can be read",
  });
  assert.throws(() => parseTuning(line({ algorithm: "magic" }), "t.jsonl"), {
    message: /^Cannot read the tuning: t\.jsonl:1: algorithm is "magic", expected "direct", "/,
  });
  assert.throws(() => parseTuning(line({ problem: "nonsense" }), "t.jsonl"), {
    message: /^Cannot read the tuning: t\.jsonl:1: the problem: Cannot parse problem: [^\n]*$/,
  });
});
