import assert from "#assert";
import { mergeTuning, otherDevice, parseTuning, printTuning, tuningTable } from "./tuning_file.ts";

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

Deno.test("tuningTable() takes a device's winners that were found exact", () => {
  const text = [
    '{"schema":1,"kind":"environment"}',
    line({ winner: false, algorithm: "im2col" }),
    line(),
    line({ driver: "2.0", op: "bwd-data" }),
    line({ op: "bwd-filter", verdict: "fail" }),
    line({ op: "gemm" }),
    "",
  ].join("\n");
  const lines = parseTuning(text, "t");
  assert.equal(lines.length, 4);
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

Deno.test("mergeTuning() replaces a class of problems on its device, and nothing else", () => {
  const old = parseTuning(
    [line(), line({ driver: "2.0" }), line({ op: "bwd-data" })].join("\n"),
    "t",
  );
  const added = parseTuning(
    line({ problem: "mb5ic16ih14oc32oh14kh3ph1", algorithm: "im2col" }),
    "t",
  );
  const merged = mergeTuning(old, added);
  assert.deepEqual(merged.map(({ tuned }) => tuned.algorithm), ["direct", "direct", "im2col"]);
  assert.deepEqual(parseTuning(printTuning(merged), "t"), merged);
});

Deno.test("parseTuning() names the line that is malformed", () => {
  assert.throws(() => parseTuning(`${line()}\n{"schema":1,`, "t.jsonl"), {
    name: "SyntaxError",
    message: "Cannot read the tuning: t.jsonl:2: the line is no JSON",
  });
  assert.throws(() => parseTuning(line({ algorithm: "magic" }), "t.jsonl"), {
    message: /^Cannot read the tuning: t\.jsonl:1: algorithm is "magic", expected \("direct" \|/,
  });
});
