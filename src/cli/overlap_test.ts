import assert from "#assert";
import { temporaryDirectory } from "../../tests/cli.ts";
import { openNpy, writeNpy } from "../npy/mod.ts";
import { parseDescriptor } from "../problem/descriptor.ts";
import { convSubject } from "../run/conv_subject.ts";
import { timeline } from "../run/timeline.ts";
import { tensor } from "../tensor/tensor.ts";
import { isHeld, readAhead } from "./overlap.ts";
import { plainSubject } from "../../tests/support/plain_subject.ts";

Deno.test("readAhead() reads once, into memory that workers share, what is asked for later", async () => {
  using temporary = temporaryDirectory();
  const folder = temporary.path;
  const [x, w] = [`${folder}/x.npy`, `${folder}/w.npy`];
  const data = Float32Array.from({ length: 50 }, (_, i) => i - 20);
  await writeNpy(x, tensor("f32", [1, 2, 5, 5], data));
  await writeNpy(w, tensor("f32", [1, 2, 3, 3], new Float32Array(18).fill(1)));
  using input = await openNpy(x);
  using filter = await openNpy(w);
  const { during, timings } = timeline();
  const ahead = readAhead(plainSubject("mb1ic2ih5oc1kh3"), { input, filter }, {
    wanted: ({ role }) => role === "input",
    during,
  });
  assert.equal(ahead.filter, filter);
  const read = await ahead.input.readAs("f32");
  assert.deepEqual([...read.data], [...data]);
  assert.ok((read.data.buffer as unknown) instanceof SharedArrayBuffer);
  assert.equal((await ahead.input.readAs("f32")).data, read.data);
  assert.deepEqual(await Array.fromAsync(ahead.input.chunksAs("f32")), [read.data]);
  assert.deepEqual([...(await ahead.input.readAs("f64")).data], [...data]);
  assert.deepEqual(timings().parts.map(({ part }) => part), ["modules", "read"]);
});

Deno.test("readAhead() keeps a failure until somebody waits for the data", async () => {
  const path = await Deno.makeTempFile({ suffix: ".npy" });
  try {
    await writeNpy(path, tensor("f64", [1, 1, 1, 2], Float64Array.of(1.5, NaN)));
    using input = await openNpy(path);
    const { problem } = plainSubject("mb1ic1ih1iw2oc1kh1").traits;
    const integers = convSubject({
      problem: parseDescriptor(problem, "fwd"),
      layout: "nhwc",
      filterLayout: "krsc",
      dtype: "i8",
    });
    const ahead = readAhead(integers, { input });
    await new Promise((done) => setTimeout(done, 20));
    await assert.rejects(ahead.input.readAs("i8"), /Cannot convert/);
  } finally {
    await Deno.remove(path);
  }
});

Deno.test("isHeld() is of what is read whole: for a check or the CPU, up to a GiB", () => {
  const gpu = { check: "auto", device: "gpu" };
  assert.ok(isHeld(plainSubject("mb2ic2ih5oc1kh3"), gpu));
  assert.ok(!isHeld(plainSubject("mb2ic2ih5oc1kh3"), { ...gpu, check: "none" }));
  assert.ok(isHeld(plainSubject("mb2ic2ih5oc1kh3"), { check: "none", device: "cpu" }));
  assert.ok(!isHeld(plainSubject("mb128ic64ih224oc64kh3ph1"), gpu));
});
