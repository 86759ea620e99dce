import assert from "#assert";
import { caseFields, ENVIRONMENT } from "../../tests/support/test_records.ts";
import { conditionRows, environmentLines } from "./page.ts";
import { CaseSchema, EnvironmentSchema, readRecord } from "./record_schema.ts";

const read = (changes: Record<string, unknown>) =>
  readRecord(CaseSchema, caseFields(changes), "test");

Deno.test("conditionRows() says how each provider measured, and what it does not say", () => {
  const time = { median: 2, min: 1.9, samples: [1.9, 2, 2.1] };
  const peer = { provider: "cudnn", algorithm: "", fill: undefined, verdict: undefined };
  const { providers, rows } = conditionRows([
    read({ cache: "hot", device: "TestGPU" }),
    read({ cache: "hot", device: "TestGPU", layout: "nhwc", requested: "auto" }),
    read({ ...peer, time_ms: time, cuda_graph: true }),
  ]);
  assert.deepEqual(providers, ["wgconv", "cudnn"]);
  assert.deepEqual(rows, [
    ["records", "2", "1"],
    ["device", "TestGPU", "not said"],
    ["dtypes", "f32", "f32"],
    ["layouts", "1 nchw, 1 nhwc", "nchw"],
    ["algorithms", "implicit-gemm, auto", "not said"],
    ["cache", "hot", "not said"],
    ["clock", "timestamp", "CUDA graph"],
    ["samples", "9 a case of 1 calls", "3 a case"],
    [
      "noise",
      "0.20 % in the median case, 0.20 % at most",
      "5.00 % in the median case, 5.00 % at most",
    ],
    ["data", "uniform01", "not said"],
    ["checked", "2 of 2", "no verdict"],
  ]);
  const silent = conditionRows([read(peer)]).rows.map(([title]) => title);
  assert.ok(!silent.includes("cache") && !silent.includes("data"));
});

Deno.test("environmentLines() puts runs of one program on one device together", () => {
  const at = (date: string, more = {}) =>
    readRecord(EnvironmentSchema, { ...ENVIRONMENT, date, ...more }, "test");
  assert.deepEqual(environmentLines([at("2026-01-01T00:00:07Z")]), [
    "wgconv 0.0.0 on TestGPU (1, wgpu), Deno 2, linux, 2026-01-01 00:00 UTC",
  ]);
  assert.deepEqual(
    environmentLines([
      at("2026-01-01T10:20:07Z"),
      at("2026-01-01T10:05:00Z"),
      at("", { adapter: "Other", driver: "" }),
    ]),
    [
      "wgconv 0.0.0 on TestGPU (1, wgpu), Deno 2, linux, 2 runs, 2026-01-01 10:05 to 2026-01-01 10:20 UTC",
      "wgconv 0.0.0 on Other (wgpu), Deno 2, linux",
    ],
  );
});
