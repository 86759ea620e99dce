import assert from "#assert";
import { NO_DRIVER, temporaryDirectory, wgconv } from "../cli.ts";

Deno.test("wgconv gemm --suite writes a record a product and goes on after one that cannot run", async () => {
  using temporary = temporaryDirectory();
  const [suite, jsonl] = [`${temporary.path}/s.txt`, `${temporary.path}/out.jsonl`];
  await Deno.writeTextFile(suite, "# m n k\n33 35 37 t n\n400000 400000 1\n8 8 0 # no depth\n");
  const args = ["gemm", "--suite", suite, "--jsonl", jsonl, "--runs", "2", "--fill-ms", "0"];
  const { code, stdout } = await wgconv([...args, "--activation", "gelu"]);
  assert.equal(code, 5);
  assert.match(stdout, /^error: gemm 400000 400000 1: /m);
  const lines = (await Deno.readTextFile(jsonl)).trimEnd().split("\n");
  const [environment, ...cases] = lines.map((line) => JSON.parse(line));
  assert.equal(environment.kind, "environment");
  assert.deepEqual(
    cases.map(({ problem, op, layout, verdict }) => [problem, op, layout, verdict]),
    [
      ["33 35 37 t n", "gemm", "tn", "pass"],
      ["400000 400000 1", "gemm", "nn", "error"],
      ["8 8 0", "gemm", "nn", "pass"],
    ],
  );
  assert.equal(cases[0].time_ms.samples.length, 2);
  assert.equal(cases[0].epilogue, "gelu");
});

/** Problems and caches of the cases of a record file, and its environments. */
async function casesOf(path: string): Promise<{ environments: number; cases: string[] }> {
  const lines = (await Deno.readTextFile(path)).trimEnd().split("\n");
  const records = lines.map((line) => JSON.parse(line));
  const cases = records.filter(({ kind }) => kind === "case");
  return {
    environments: records.length - cases.length,
    cases: cases.map(({ problem, cache, verdict }) => `${problem} ${cache} ${verdict}`).sort(),
  };
}

Deno.test("wgconv gemm --suite runs hot and cold in turn, in parts, and goes on where it ended", async () => {
  using temporary = temporaryDirectory();
  const at = (name: string) => `${temporary.path}/${name}`;
  await Deno.writeTextFile(at("s.txt"), "64 32 16\n33 35 37 t n\n64 32 16 # again\n8 8 8 x3\n");
  const suite = ["gemm", "--suite", at("s.txt"), "--runs", "2", "--fill-ms", "0"];
  const run = async (jsonl: string, ...args: string[]) =>
    await wgconv([...suite, "--jsonl", at(jsonl), ...args]);
  const both = ["--cache", "hot,cold"];
  const whole = await run("whole", ...both);
  assert.equal(whole.code, 0, whole.stderr);
  assert.match(whole.stdout, /^problem +op +layout +cache +algorithm +time /);
  const all = await casesOf(at("whole"));
  const sizes = ["33 35 37 t n", "64 32 16", "8 8 8 n n x3"];
  assert.deepEqual(
    all.cases,
    sizes.flatMap((size) => [`${size} cold pass`, `${size} hot pass`]).sort(),
  );

  const parts = await Promise.all([1, 2].map((part) => run(`${part}`, "--shard", `${part}/2`)));
  assert.deepEqual(parts.map(({ code }) => code), [0, 0]);
  const shards = await Promise.all(["1", "2"].map((part) => casesOf(at(part))));
  assert.ok(shards.every(({ cases }) => cases.length > 0));
  assert.deepEqual(
    shards.flatMap(({ cases }) => cases).sort(),
    sizes.map((size) => `${size} hot pass`),
  );

  const lines = (await Deno.readTextFile(at("whole"))).split("\n");
  await Deno.writeTextFile(at("cut"), `${lines.slice(0, 4).join("\n")}\n{"schema":1,"ki`);
  const refused = await run("cut", ...both);
  assert.match(
    refused.stderr,
    /it is not empty, --resume continues it, --force overwrites it\n$/,
  );
  const other = await run("cut", ...both, "--resume", "--policy", "tiny");
  assert.equal(other.code, 2);
  assert.match(other.stderr, /the earlier run differs: --policy is tiny, was not given\n$/);
  const activated = await run("cut", ...both, "--resume", "--activation", "relu");
  assert.match(activated.stderr, /^resuming: 6 of 6 cases are left\n/);
  await Deno.writeTextFile(at("cut"), `${lines.slice(0, 4).join("\n")}\n{"schema":1,"ki`);
  const resumed = await run("cut", ...both, "--resume");
  assert.equal(resumed.code, 0, resumed.stderr);
  assert.match(resumed.stderr, /^resuming: 3 of 6 cases are left\n/);
  assert.deepEqual(await casesOf(at("cut")), all);
});

Deno.test("wgconv gemm --suite --device cpu times the reference, without a driver and a verdict", async () => {
  using temporary = temporaryDirectory();
  const [suite, jsonl] = [`${temporary.path}/s.txt`, `${temporary.path}/out.jsonl`];
  await Deno.writeTextFile(suite, "33 35 37 t n\n8 8 0\n");
  const args = ["--device", "cpu", "--dtype", "f16", "--runs", "3", "--jsonl", jsonl];
  const { code, stderr } = await wgconv(["gemm", "--suite", suite, ...args], { env: NO_DRIVER });
  assert.equal(code, 0, stderr);
  const cases = (await Deno.readTextFile(jsonl)).trimEnd().split("\n").slice(1)
    .map((line) => JSON.parse(line));
  assert.deepEqual(
    cases.map(({ problem, algorithm, dtype, verdict }) => [problem, algorithm, dtype, verdict]),
    [["33 35 37 t n", "reference", "f16", "none"], ["8 8 0", "reference", "f16", "none"]],
  );
  assert.deepEqual(cases[0].time_ms.clock, "wall");
});

Deno.test("wgconv gemm --search ranks the policies, checks each and marks the planner's", async () => {
  // A software device has workgroups in flight for each core: where these are many, so are the tiles that stream-K cuts.
  const size = navigator.hardwareConcurrency <= 10 ? "250,240,64" : "4130,268,360";
  const args = ["--size", size, "--runs", "1", "--fill-ms", "0"];
  const text = await wgconv(["gemm", "--search", ...args]);
  assert.equal(text.code, 0, text.stderr);
  assert.match(text.stdout, /^policy +splits +balance +time +GFLOP\/s +predicted/m);
  assert.match(text.stdout, /^tiny \*? +\d+ .* pass /m);
  const json = await wgconv(["gemm", "--search", "--json", ...args]);
  const [environment, ...ranking] = json.stdout.trimEnd().split("\n").map((line) =>
    JSON.parse(line)
  );
  assert.equal(environment.kind, "environment");
  assert.equal(ranking.filter(({ chosen }) => chosen).length, 1);
  assert.deepEqual(ranking.map(({ winner }) => winner), ranking.map((_, place) => place === 0));
  for (const { version, backend, device, algorithm, layout, kernel, kernels } of ranking) {
    const { adapter } = environment;
    assert.deepEqual([version, backend, device], [environment.version, "wgpu", adapter]);
    assert.deepEqual([algorithm, layout], ["gemm", "nn"]);
    assert.ok(kernels.some((name: string) => name.startsWith(kernel)), `${kernels}`);
  }
  for (const balance of ["none", "split-k", "stream-k"]) {
    const some = ranking.filter((record) => record.balance === balance);
    assert.ok(some.length > 0, balance);
    for (const { kernel } of some) assert.equal(/_streamk/.test(kernel), balance === "stream-k");
  }
  let last = 0;
  for (const { kind, verdict, time_ms, predicted_gflops } of ranking) {
    assert.equal(kind, "tuning");
    assert.equal(verdict, "pass");
    assert.ok(time_ms.median >= last && predicted_gflops > 0);
    last = time_ms.median;
  }
});
