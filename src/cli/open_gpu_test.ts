import assert from "#assert";
import { succeeds } from "../../tests/support/in_process.ts";
import { usesUnits } from "../run/subject.ts";
import { chosenBackend } from "./open_gpu.ts";

Deno.test("chosenBackend() takes what is asked for, and wgpu where no matrix units would multiply", async () => {
  assert.equal(await chosenBackend({ backend: "dawn" }), "dawn");
  assert.equal(await chosenBackend({ backend: "auto", onUnits: false }), "wgpu");
  assert.deepEqual(["f32", "bf16", "f16", "i8"].map((dtype) => usesUnits(dtype)), [
    ...[false, false, true, true],
  ]);
  assert.ok(usesUnits("f32", "f16x3"));
});

Deno.test("commands that plan, time and tune take --backend auto, and say what it is", async () => {
  const problem = "mb1ic4ih8oc4kh3 --backend auto";
  for (const line of [`plan --device gpu --problem ${problem}`, `bench ${problem} --runs 1`]) {
    const { stderr } = await succeeds(line);
    assert.match(
      stderr,
      /^--backend auto: wgpu, matrix units are for f16, int8 and --math f16x3$/m,
    );
  }
});
