/** Convolutions in chunks of their batch: bits and verdicts. */
import assert from "#assert";
import { openDevice } from "../../src/gpu/device.ts";
import { operandTensors } from "../../src/problem/conv_problem.ts";
import { parseDescriptor } from "../../src/problem/descriptor.ts";
import { convSubject } from "../../src/run/conv_subject.ts";
import { cpuExecutor, gpuExecutor } from "../../src/run/executor.ts";
import type { OperandFiles } from "../../src/run/stream.ts";
import { askedOf, atOnce, type Case, GEMM, spoilt, streamed, withFiles } from "../stream_case.ts";

const F2 = "F(2x2,3x3)";

const PACKED = { ...GEMM, schedule: { ...GEMM.schedule, packedFilter: true } };

const SAME: readonly Case[] = [
  { problem: "mb7ic5ih9iw10oc6kh3sh2ph1", images: 3, planning: GEMM },
  { problem: "mb7ic5ih9iw10oc6kh3sh2ph1", images: 3, planning: GEMM, relu: true },
  { problem: "mb9ic8ih9oc16kh3ph1", images: 4, planning: { algorithm: "winograd2d", tile: F2 } },
  { problem: "mb7ic4id5ih6oc4kd3kh3pd1ph1", images: 2, layout: "nhwc", planning: GEMM },
  { problem: "g4mb6ic8ih9oc8kh3", images: 5, layout: "chwn", planning: { algorithm: "direct" } },
  { problem: "mb12ic8ih12oc8kh3ph1", images: 8, layout: "chwn", planning: { algorithm: "im2win" } },
  {
    problem: "mb5ic8ih9oc12kh3ph1",
    images: 1,
    op: "bwd-data",
    planning: { ...GEMM, schedule: { ...GEMM.schedule, splits: 2 } },
  },
  {
    ...{ problem: "mb7ic16ih8oc8kh3ph1", images: 3, op: "bwd-data", layout: "nhwc" },
    planning: { algorithm: "winograd2d", tile: F2 },
  },
  { problem: "mb7ic5ih9oc7kh3ph1", images: 3, dtype: "bf16", relu: true, planning: PACKED },
  { problem: "mb7ic5ih9oc7kh3ph1", images: 2, dtype: "bf16", layout: "chwn", planning: PACKED },
  // Whether a filter is packed depends on the chunk where nothing is said.
  {
    ...{ problem: "mb7ic8ih9oc8kh3ph1", images: 3, layout: "nhwc", dtype: "i8" },
    planning: PACKED,
  },
  {
    ...{ problem: "mb7ic8ih9oc8kh3ph1", images: 2, layout: "nhwc", dtype: "i8" },
    ...{ scale: 0.002, relu: true, planning: PACKED },
  },
];

Deno.test("chunks of forward and backward-data have the bits of the same plan at once, and pass", async () => {
  using executor = gpuExecutor(await openDevice());
  for (const one of SAME) {
    const what = JSON.stringify(one);
    const { record, result } = await streamed(executor, one);
    assert.equal(record.verdict, "pass", `${what}: ${record.message}`);
    assert.equal(record.accuracy!.checked, result.length, what);
    assert.equal(record.accuracy!.total, result.length, what);
    const whole = await atOnce(executor, one);
    assert.equal(record.kernel, whole.record.kernel, what);
    assert.deepEqual(result, whole.result, what);
    const batch = convSubject(askedOf(one)).shape[0]!;
    assert.equal(record.stream!.chunks, Math.ceil(batch / one.images), what);
    assert.equal(record.stream!.checked_chunks, record.stream!.chunks, what);
  }
});

Deno.test("chunks of backward-filter are added up in doubles: the same bits for the same chunks", async () => {
  using executor = gpuExecutor(await openDevice());
  const cases: Case[] = [
    { problem: "mb7ic6ih11oc5kh3ph1", images: 3, op: "bwd-filter", planning: GEMM },
    {
      ...{ problem: "mb9ic8ih12oc8kh3ph1", images: 4, op: "bwd-filter", layout: "nhwc" },
      planning: { algorithm: "winrs" },
    },
  ];
  for (const one of cases) {
    const { record, result } = await streamed(executor, one);
    assert.equal(record.verdict, "pass", record.message);
    assert.equal(record.accuracy!.checked, result.length);
    assert.deepEqual((await streamed(executor, one)).result, result);
    const sums = new Float64Array(result.length);
    const { batch } = parseDescriptor(one.problem, "bwd-filter");
    await withFiles(one, async (files) => {
      for (let first = 0; first < batch; first += one.images) {
        const parts = Object.fromEntries(
          operandTensors("bwd-filter").map((role) => {
            return [role, files[role]!.part(0, first, one.images)];
          }),
        );
        const part = { ...one, problem: one.problem.replace(/mb\d+/, `mb${one.images}`) };
        const { result } = await atOnce(executor, part, parts as OperandFiles);
        for (let i = 0; i < sums.length; i++) sums[i]! += result[i]!;
      }
    });
    assert.deepEqual(result, Float32Array.from(sums));
  }
});

Deno.test("the CPU takes chunks, too", async () => {
  const executor = cpuExecutor();
  const cases: Case[] = [
    { problem: "mb5ic3ih8oc4kh3ph1", images: 2, layout: "chwn" },
    {
      ...{ problem: "mb5ic3ih8oc4kh3ph1", images: 2, op: "bwd-filter", dtype: "f16" },
      lossScale: 0.25,
    },
  ];
  for (const one of cases) {
    const { record, result } = await streamed(executor, one);
    await withFiles(one, async (files) => {
      assert.deepEqual(result, (await atOnce(executor, one, files)).result);
    });
    assert.equal((record as { loss_scale?: number }).loss_scale, one.lossScale);
    assert.equal(record.verdict, "none");
  }
});

Deno.test("large chunks are projected one by one; a sample looks at some of them", async () => {
  using executor = gpuExecutor(await openDevice());
  const large = { problem: "mb31ic32ih40oc32kh3ph1", images: 8, planning: GEMM } as const;
  const projected = await streamed(executor, large);
  assert.equal(projected.record.verdict, "pass", projected.record.message);
  const { accuracy, projection, stream } = projected.record;
  assert.equal(projection!.places * projection!.members, 31 * 32 * 40 * 40);
  assert.ok(accuracy!.checked >= 4 * 256 && accuracy!.checked < accuracy!.total);
  assert.equal(stream!.checked_chunks, 4);
  // One output of the last, shorter chunk that no sample meets.
  const wrong = spoilt(executor, 3, (result) => result[7 * 32 * 1600 - 1234]! += 0.5);
  const { record } = await streamed(wrong, large);
  assert.equal(record.verdict, "fail");
  assert.match(record.message!, /^images 24 to 30: the projection over channels /);

  const many = { problem: "mb20ic8ih9oc8kh3", images: 1, check: "sample" } as const;
  const sampled = await streamed(executor, many);
  assert.equal(sampled.record.verdict, "pass", sampled.record.message);
  assert.equal(sampled.record.stream!.checked_chunks, 8);
  for (const [chunk, verdict] of [[0, "fail"], [1, "pass"], [19, "fail"]] as const) {
    const { record } = await streamed(spoilt(executor, chunk, (y) => y.fill(3)), many);
    assert.equal(record.verdict, verdict, `image ${chunk}`);
    if (verdict === "fail") assert.match(record.message!, new RegExp(`^image ${chunk}: `));
  }
});

Deno.test("without its activation a chunk is projected, and every output compared with it", async () => {
  using executor = gpuExecutor(await openDevice());
  const one = { problem: "mb15ic32ih40oc32kh3ph1", images: 8, planning: GEMM, relu: true } as const;
  const { record } = await streamed(executor, one);
  assert.equal(record.verdict, "pass", record.message);
  assert.equal(record.projection!.activated, 15 * 32 * 1600);
  // A chunk's share of the sample leaves some of its outputs out, as the whole sample does not.
  const few = { problem: "mb8ic2800ih8oc16kh3ph1", images: 4, planning: GEMM, relu: true } as const;
  const { record: { verdict, message, projection } } = await streamed(executor, few);
  assert.equal(verdict, "pass", message);
  assert.equal(projection!.activated, 8 * 16 * 64);
});
