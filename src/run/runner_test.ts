import assert from "#assert";
import { openDevice } from "../gpu/device.ts";
import { type Executor, gpuExecutor } from "./executor.ts";
import { runSubject } from "./runner.ts";
import { timeline } from "./timeline.ts";
import { plainSubject } from "../../tests/support/plain_subject.ts";

/** One sample of a plan by name, checked. */
const RUN = {
  source: { files: {}, fill: "uniform11", seed: 1 },
  planning: { algorithm: "direct" },
  algorithm: "direct",
  device: "a device",
  check: "auto",
  protocol: { samples: 1, fillMs: 0 },
} as const;

/** Runs a convolution whose check takes a sample and a projection, and notes when what began. */
async function runProjected(executor: Executor) {
  const subject = plainSubject("mb1ic64ih64oc64kh3ph1", {
    epilogue: { bias: true, activation: "relu" },
  });
  const { during, timings } = timeline();
  const begun: string[] = [];
  const { record, result } = await runSubject(executor, {
    ...RUN,
    subject,
    onResult: () => void begun.push("result"),
    during(part, work) {
      begun.push(part);
      return during(part, work);
    },
  });
  return { record, result, begun: [...new Set(begun)], timings: timings() };
}

Deno.test("runSubject() computes the reference while a GPU with a clock of its own runs; the verdict is the same", async () => {
  using executor = gpuExecutor(await openDevice());
  assert.equal(executor.undisturbed, false);
  const after = await runProjected(executor);
  const beside = await runProjected({ ...executor, undisturbed: true });
  const order = (begun: readonly string[], ...parts: string[]) =>
    assert.deepEqual(begun.filter((part) => parts.includes(part)), parts);
  order(after.begun, "plan", "read", "pipelines", "upload", "run", "result", "reference", "check");
  order(beside.begun, "plan", "read", "pipelines", "reference", "run", "result", "check");
  assert.equal(after.record.verdict, "pass");
  assert.ok(after.record.projection!.places > 0);
  const judged = ({ record: { verdict, accuracy, projection } }: typeof after) => {
    const { seconds: _, reference_seconds: __, read_seconds: ___, ...held } = projection!;
    return { verdict, accuracy, held };
  };
  assert.deepEqual(judged(beside), judged(after));
  assert.deepEqual(beside.result, after.result);
});

Deno.test("runSubject() throws what a reference throws that began early, and nothing else is left to throw", async () => {
  using executor = gpuExecutor(await openDevice());
  const subject = plainSubject("mb1ic3ih8oc8kh3ph1");
  const of = () => Promise.reject(new RangeError("no reference"));
  const failing = { ...subject, reference: { ...subject.reference, of } };
  const running = runSubject({ ...executor, undisturbed: true }, { ...RUN, subject: failing });
  await assert.rejects(running, /^RangeError: no reference$/);
});
