/** Loss-scaled gradients from the command line: made ones, those of files, in records, and where there are none. */
import assert from "#assert";
import { temporaryDirectory } from "./cli.ts";
import { openNpy, readNpy, writeNpy } from "../src/npy/mod.ts";
import { chunkedOperands, fillOperand, readOperands } from "../src/run/operands.ts";
import { convSubject } from "../src/run/conv_subject.ts";
import { parseDescriptor } from "../src/problem/descriptor.ts";
import { fillTensor } from "../src/tensor/fill.ts";
import { refuses, succeeds } from "./support/in_process.ts";

const DESCRIPTOR = "mb2ic3ih9oc4kh3ph1";
const PROBLEM = `--problem ${DESCRIPTOR}`;
const subject = convSubject({
  problem: parseDescriptor(DESCRIPTOR, "bwd-filter"),
  layout: "nhwc",
  filterLayout: "krsc",
  dtype: "f16",
});
const [input, gradient] = subject.operands;

Deno.test("a made gradient is multiplied before it is rounded, other operands are not", () => {
  const made = { fill: "uniform01", seed: 3 } as const;
  const whole = fillTensor("f32", gradient!.shape, "uniform01", 3 + 2).data;
  const expected = Float16Array.from(whole, (value) => value * 0.01);
  assert.deepEqual(fillOperand(gradient!, { ...made, lossScale: 0.01 }), expected);
  assert.deepEqual(fillOperand(input!, { ...made, lossScale: 0.01 }), fillOperand(input!, made));
});

Deno.test("a gradient of a file is multiplied in f32, read whole and in chunks", async () => {
  const path = await Deno.makeTempFile({ suffix: ".npy" });
  try {
    // Larger than f16 holds, until it is scaled.
    const values = fillTensor("f32", gradient!.shape, "uniform01", 5);
    values.data.forEach((value, i) => values.data[i] = value * 1e6);
    await writeNpy(path, values);
    using file = await openNpy(path);
    const from = { fill: "uniform01", seed: 3, lossScale: 0.01, files: { output: file } } as const;
    const expected = Float16Array.from(values.data, (value) => value * 0.01);
    assert.ok(expected.every(Number.isFinite));
    assert.deepEqual((await readOperands(subject, from)).output, expected);
    const chunks = chunkedOperands(subject, from).output as () => AsyncIterable<Float16Array>;
    const parts = await Array.fromAsync(chunks());
    assert.deepEqual(Float16Array.from(parts.flatMap((part) => [...part])), expected);
  } finally {
    await Deno.remove(path);
  }
});

Deno.test("the result is scaled as the gradient is, and the record says by what", async () => {
  using temporary = temporaryDirectory();
  const folder = temporary.path;
  const run = `conv ${PROBLEM} --op bwd-filter --device cpu`;
  const results = [];
  for (const scale of ["", "--loss-scale 0.25"]) {
    const path = `${folder}/scaled${scale.length}.npy`;
    const { stdout } = await succeeds(`${run} ${scale} --output ${path} --json`);
    assert.equal(JSON.parse(stdout).loss_scale, scale === "" ? undefined : 0.25);
    results.push((await readNpy(path)).data as Float32Array);
  }
  assert.ok(results[0]!.some((value) => value !== 0));
  assert.deepEqual(results[1], results[0]!.map((value) => value / 4));
});

Deno.test("bench scales what has gradients, and says so of those cases alone", async () => {
  const run = "--device cpu --op fwd,bwd-filter --loss-scale 0.01 --json";
  const { stdout } = await succeeds(`bench ${PROBLEM} ${run} --runs 1`);
  const records = stdout.trim().split("\n").map((line) => JSON.parse(line));
  assert.equal(records[0].options["loss-scale"], 0.01);
  const scales = records.filter(({ kind }) => kind === "case").map((
    { op, loss_scale },
  ) => [op, loss_scale]);
  assert.deepEqual(scales, [["fwd", undefined], ["bwd-filter", 0.01]]);
});

Deno.test("a loss scale of nothing exits 2", async () => {
  for (const command of ["conv", "bench"]) {
    await refuses(
      `${command} ${PROBLEM} --loss-scale 2`,
      /--loss-scale multiplies the output's gradient, and fwd has none/,
    );
  }
  await refuses(`conv ${PROBLEM} --op bwd-data --loss-scale 0`, /number > 0/);
});
