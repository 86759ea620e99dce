/** Streams that break off, and what is left of them. */
import assert from "#assert";
import { exitCodeOf } from "../../src/errors.ts";
import { openDevice } from "../../src/gpu/device.ts";
import { writeNpyParts } from "../../src/npy/mod.ts";
import { gpuExecutor } from "../../src/run/executor.ts";
import { runStream, type StreamJob } from "../../src/run/stream.ts";
import { type Case, GEMM, jobOf, spoilt, withFiles } from "../stream_case.ts";

/** Runs a stream into a file; what it throws, when nothing is left of it. */
async function failed(one: Case, run: (job: StreamJob, folder: string) => Promise<unknown>) {
  let error: unknown;
  await withFiles(one, async (files, folder) => {
    const { whole } = jobOf(one, files).subject;
    const before = [...Deno.readDirSync(folder)].map(({ name }) => name);
    try {
      await writeNpyParts(`${folder}/y.npy`, { ...whole.result, axis: 0 }, async (take) => {
        await run({ ...jobOf(one, files), take }, folder);
      });
    } catch (thrown) {
      error = thrown;
    }
    assert.deepEqual([...Deno.readDirSync(folder)].map(({ name }) => name), before);
  });
  if (!(error instanceof Error)) throw new Error("The stream did not fail");
  return { code: exitCodeOf(error), message: error.message };
}

Deno.test("a device that is lost, a file cut short or a full disk amid a stream leave nothing", async () => {
  const one = { problem: "mb12ic4ih9oc4kh3", images: 1, planning: GEMM } as const;
  {
    const gpu = await openDevice();
    using executor = gpuExecutor(gpu);
    const lost = spoilt(executor, 4, () => gpu.device.destroy());
    const { code, message } = await failed(one, async (job) => {
      await runStream(lost, job).catch(async (error) => {
        throw await executor.causeOf(error);
      });
    });
    assert.equal(code, 5);
    assert.match(message, /the device was lost/);
  }
  using executor = gpuExecutor(await openDevice());
  const short = await failed(one, async (job, folder) => {
    await Deno.truncate(`${folder}/input.npy`, 128 + 5 * 4 * 81 * 4 + 3);
    await runStream(executor, job);
  });
  assert.equal(short.code, 2);
  assert.match(
    short.message,
    /input\.npy: byte 6611: expected 1293 more bytes, found the end of the file$/,
  );
  const full = await failed(one, async (job) => {
    let parts = 0;
    const take: StreamJob["take"] = async (data, part) => {
      if (parts++ === 5) throw new Deno.errors.WriteZero("Cannot write y.npy: the disk is full");
      await job.take!(data, part);
    };
    await runStream(executor, { ...job, take });
  });
  assert.deepEqual(full, { code: 2, message: "Cannot write y.npy: the disk is full" });
});
