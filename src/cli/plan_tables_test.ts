import { algorithmNames } from "../algorithms/registry.ts";
import assert from "#assert";
import { softwareDevice } from "../algorithms/device/software.ts";
import { DEFAULT_LIMITS } from "../algorithms/plan.ts";
import { planConv } from "../algorithms/planner.ts";
import { parseDescriptor } from "../problem/descriptor.ts";
import { allPlans, allTable, rivalLines, rivalRecords } from "./plan_tables.ts";
import { request } from "../../tests/plan_request.ts";

const REQUEST = request(parseDescriptor("mb32ic128ih28oc128kh3ph1"), { limits: DEFAULT_LIMITS });

Deno.test("allPlans() predicts the time of every algorithm that can, the least memory first", () => {
  const rows = allPlans(REQUEST);
  assert.deepEqual(rows.map(({ algorithm }) => algorithm).sort(), [...algorithmNames()].sort());
  for (const { algorithm, reason, predicted_ms } of rows) {
    assert.equal(reason === undefined, predicted_ms !== undefined && predicted_ms > 0, algorithm);
  }
  const peaks = rows.flatMap(({ memory_bytes }) => memory_bytes ? [memory_bytes.peak] : []);
  assert.deepEqual(peaks, peaks.toSorted((a, b) => a - b));
  assert.match(rows.at(-1)!.reason!, /bwd-filter/);
  assert.match(allTable(rows), /^algorithm +kernel +.*predicted ms/);
});

Deno.test("allPlans() predicts longer times for a CPU", () => {
  const rows = allPlans({ ...REQUEST, device: softwareDevice(4) });
  for (const { algorithm, predicted_device, predicted_ms = Infinity } of rows) {
    assert.equal(predicted_device, predicted_ms === Infinity ? undefined : "software", algorithm);
    assert.ok(predicted_ms > 10, `${algorithm}: ${predicted_ms}`);
  }
});

Deno.test("rivalLines() and rivalRecords() say what auto weighed, and why not", () => {
  const plan = planConv(REQUEST);
  const lines = rivalLines(plan);
  assert.ok(lines.some((line) => /^implicit-gemm: 0\.\d+ ms$/.test(line)));
  assert.ok(lines.includes("winrs: it computes bwd-filter"));
  assert.ok(lines.some((line) => /^direct: [\d.]+ ms, taken only where nothing else /.test(line)));
  const records = rivalRecords(plan)!;
  assert.equal(records.length, lines.length + 1);
  assert.equal(records[0]!.algorithm, plan.algorithm);
  assert.ok(
    records[0]!.predicted_ms! > 0 && records[0]!.predicted_device === "NVIDIA H200" &&
      records[0]!.amplification > 1,
  );
  assert.equal(records.find(({ algorithm }) => algorithm === "winrs")!.predicted_ms, undefined);
  const named = planConv({ ...REQUEST, algorithm: "direct" });
  assert.deepEqual(rivalLines(named), []);
  assert.equal(rivalRecords(named), undefined);
});
