import assert from "#assert";
import { caseFields, timeOf } from "../../tests/support/test_records.ts";
import { networkLines, networksOf, networkTable, networkTrace } from "./network.ts";
import type { ReadCase } from "./record_schema.ts";

const CEILINGS = () => ({ peak: 1000, bandwidth: 100 });

/** A record of one call that takes `ms`. */
function record(problem: string, ms: number, changes: Partial<ReadCase> = {}): ReadCase {
  return caseFields({
    problem,
    time_ms: timeOf(ms),
    device: "TestGPU",
    ...changes,
  }) as unknown as ReadCase;
}

const STEM = 'mb1ic3ih8oc4kh3n"net_stem"';
const CONV = 'mb1ic64ih8oc64kh3n"net_conv*4"';
const HEAD = '2 10 4 n t n"net_head*2"';
const CASES: readonly ReadCase[] = [
  record(STEM, 2),
  record(STEM, 50, { op: "bwd-data" }),
  record(CONV, 3, { algorithm: "direct" }),
  record(CONV, 1, { algorithm: "winograd2d" }),
  record(CONV, 0.1, { algorithm: "im2col", verdict: "fail" }),
  record(HEAD, 0.5, { op: "gemm", layout: "nt", algorithm: "gemm" }),
  record("mb1ic64ih8oc64oh6kh3", 2, { provider: "cudnn" }),
  record("2 10 4 n t", 0.25, { provider: "cudnn", op: "gemm", device: "" }),
];

Deno.test("a network's layers count as often as their names say, the fastest right record of each", () => {
  const [network, ...more] = networksOf(CASES, CEILINGS);
  assert.deepEqual(more, []);
  const { ms, layers, operations, peers } = network!;
  assert.equal(ms, 2 + 4 * 1 + 2 * 0.5);
  assert.deepEqual(
    layers.map((
      { label, count, ms, share, record },
    ) => [label, count, ms, share, record.algorithm]),
    [
      ["stem", 1, 2, 2 / 7, "implicit-gemm"],
      ["conv", 4, 4, 4 / 7, "winograd2d"],
      ["head", 2, 1, 1 / 7, "gemm"],
    ],
  );
  assert.deepEqual(operations, [["fwd", 6, 5], ["gemm", 1, 2]]);
  assert.deepEqual(peers, [{ maker: "cudnn", ms: 8.5, ours: 5, layers: 6 }]);
  // 2·64·64·9·36 flops at 1000 GFLOP/s are 2.65 us.
  assert.ok(Math.abs(layers[1]!.roofline! - 2 * 64 * 64 * 9 * 36 / 1e9) < 1e-9);
  assert.equal(networksOf(CASES, () => ({}))[0]!.layers[1]!.roofline, null);
});

Deno.test("a network is shown as a table by time, in lines and as a trace", () => {
  const networks = networksOf(CASES, CEILINGS);
  const { columns, rows } = networkTable(networks[0]!);
  assert.equal(
    columns.map(({ title }) => title).join(),
    "layer,op,times,time,share,of roofline,cudnn,speed-up,precision,algorithm",
  );
  assert.deepEqual(rows.map((row) => row.slice(0, 8).join("|")), [
    "conv|fwd|4|4.000 ms|57.1 %|0.27 %|8.000 ms|2.00",
    "stem|fwd|1|2.000 ms|28.6 %|0.00 %|-|-",
    "head|gemm|2|1.000 ms|14.3 %|0.00 %|500.0 us|0.50",
  ]);
  assert.deepEqual(networkLines(networks[0]!), [
    "network wgconv (net, TestGPU): 7.000 ms for 7 layers",
    "  fwd: 6.000 ms, 85.7 %, 5 layers",
    "  gemm: 1.000 ms, 14.3 %, 2 layers",
    "  cudnn: 8.500 ms for 6 of 7 layers, wgconv 5.000 ms: 1.70 times as fast",
  ]);
  const { traceEvents } = JSON.parse(networkTrace(networks));
  const slices = traceEvents.filter(({ ph, tid }: { ph: string; tid: number }) =>
    ph === "X" && tid === 1
  );
  assert.deepEqual(
    slices.map(({ name, ts, dur }: Record<string, unknown>) => [name, ts, dur]),
    [
      ["stem", 0, 2000],
      ...[2000, 3000, 4000, 5000].map((ts) => ["conv", ts, 1000]),
      ...[6000, 6500].map((ts) => ["head", ts, 500]),
    ],
  );
  const named = traceEvents.filter(({ name }: { name: string }) => name === "thread_name");
  assert.deepEqual(named.map(({ args }: { args: unknown }) => args), [
    { name: "wgconv" },
    { name: "cudnn" },
  ]);
});

Deno.test("networks, devices and element types that share layers stand apart", () => {
  const two = [...CASES, record('mb1ic64ih8oc64kh3n"other_conv*3"', 5)];
  assert.deepEqual(networksOf(two, CEILINGS).map(({ title, ms }) => [title, ms]), [
    ["net, TestGPU", 7],
    ["other, TestGPU", 15],
  ]);
  const half = record(CONV, 0.5, { dtype: "f16" });
  assert.deepEqual(networksOf([...CASES, half], CEILINGS).map(({ title, ms }) => [title, ms]), [
    ["net, TestGPU, f32", 7],
    ["net, TestGPU, f16", 2],
  ]);
  // One layer of another type, as in a network that is quantised in parts, is a part of it.
  const mixed = [...CASES, record('mb1ic8ih8oc8kh3n"net_more"', 1, { dtype: "i8" })];
  assert.deepEqual(networksOf(mixed, CEILINGS).map(({ ms }) => ms), [8]);
  assert.deepEqual(networksOf([], CEILINGS), []);
});

Deno.test("a device that two makers spell otherwise is one", () => {
  const ours = record(CONV, 2, { device: "nvidia-h200" });
  const theirs = record(CONV, 3, { device: "NVIDIA H200", provider: "cudnn" });
  const [network, ...more] = networksOf([ours, theirs], CEILINGS);
  assert.deepEqual(more, []);
  assert.deepEqual(network!.peers, [{ maker: "cudnn", ms: 12, ours: 8, layers: 4 }]);
});
