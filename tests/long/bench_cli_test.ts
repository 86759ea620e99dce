import assert from "#assert";
import { NO_DRIVER, startWgconv, temporaryDirectory, until, wgconv } from "../cli.ts";

/** Records of a JSONL file. */
async function records(path: string): Promise<Record<string, unknown>[]> {
  const text = await Deno.readTextFile(path);
  return text.trimEnd().split("\n").map((line) => JSON.parse(line));
}

/** What tells the cases of a run apart. */
function caseNames(all: readonly Record<string, unknown>[]): string[] {
  return all.filter(({ kind }) => kind === "case")
    .map(({ problem, op, algorithm, cache }) => `${problem} ${op} ${algorithm} ${cache}`)
    .sort();
}

Deno.test("wgconv bench, killed in the middle, resumes and ends with the same cases", async () => {
  using temporary = temporaryDirectory();
  const suite = `${temporary.path}/suite`;
  await Deno.writeTextFile(suite, "mb1ic4,8,12,16,20,24ih14oc16kh3ph1");
  const path = `${temporary.path}/out.jsonl`;
  const args = ["bench", "--suite", suite, "--op", "all", "--runs", "9", "--jsonl", path];
  args.push("--algorithm", "implicit-gemm");
  const child = startWgconv(args, { stdout: "null", stderr: "null" });
  const lines = async () => (await Deno.readTextFile(path).catch(() => "")).split("\n").length - 1;
  await until(async () => await lines() >= 5, child);
  child.kill("SIGKILL");
  assert.equal((await child.status).signal, "SIGKILL");
  const before = await lines();
  assert.ok(before >= 5 && before < 19, `${before} of 19 lines`);
  // What a machine that went down may leave of the last line.
  await Deno.writeTextFile(path, '{"schema":1,"kind":"case","pro', { append: true });

  const changed = await wgconv([...args, "--resume", "--seed", "7", "--check", "full"]);
  assert.equal(changed.code, 2);
  assert.equal(
    changed.stderr,
    "wgconv: Cannot resume: the earlier run differs: seed is 7, was 1; " +
      "--check is full, was auto\n",
  );
  const resumed = await wgconv([...args, "--resume"]);
  assert.equal(resumed.code, 0, resumed.stderr);
  assert.match(resumed.stderr, new RegExp(`^resuming: ${19 - before} of 18 cases are left\n`));
  const all = await records(path);
  assert.equal(all.filter(({ kind }) => kind === "environment").length, 1);
  const expected = [4, 8, 12, 16, 20, 24].flatMap((channels) =>
    ["bwd-data", "bwd-filter", "fwd"].map((op) =>
      `mb1ic${channels}ih14oc16oh14kh3ph1 ${op} implicit-gemm hot`
    )
  ).sort();
  assert.deepEqual(caseNames(all), expected);
  const again = await wgconv([...args, "--resume"]);
  assert.deepEqual([again.code, (await records(path)).length], [0, 19]);
  await Deno.writeTextFile(path, "nonsense\n");
  const broken = await wgconv([...args, "--resume"]);
  assert.equal(broken.code, 2);
  assert.match(
    broken.stderr,
    /^wgconv: Cannot read .*out\.jsonl:1: the line is no JSON: nonsense\n$/,
  );
});

Deno.test("wgconv conv, bench and gemm project what is large, and say so", async () => {
  using temporary = temporaryDirectory();
  const large = "mb1ic32ih64oc96kh3ph1";
  const printed = await wgconv(["conv", "--problem", large, "--activation", "gelu", "--runs", "1"]);
  assert.equal(printed.code, 0, printed.stderr);
  assert.match(printed.stdout, /^projected +393,216 outputs in 4,096 sums: .* times the noise/m);
  assert.match(printed.stdout, /one output that is wrong by .*; every activation compared$/m);
  assert.match(printed.stdout, /^ +reference .* s, result .* s, read back in .* s$/m);
  const path = `${temporary.path}/out.jsonl`;
  const args = ["--op", "fwd,bwd-filter", "--algorithm", "implicit-gemm,winograd2d-nonfused"];
  const bench = await wgconv(["bench", large, ...args, "--runs", "1", "--jsonl", path]);
  assert.equal(bench.code, 0, bench.stderr);
  const cases = (await records(path)).slice(1);
  assert.equal(cases.length, 4);
  for (const { verdict, projection, op } of cases) {
    assert.equal(verdict, "pass");
    const { places, members, limit, max_ratio } = projection as Record<string, number>;
    assert.deepEqual([places, members], op === "fwd" ? [4096, 96] : [9, 96 * 32]);
    assert.ok(max_ratio! > 0 && max_ratio! < limit!);
  }
  const sampled = await wgconv(["conv", "--problem", large, "--check", "sample", "--json"]);
  assert.equal(JSON.parse(sampled.stdout).projection, undefined);
  const size = ["--size", "470,480,490", "--runs", "1", "--json"];
  for (const dtype of ["f32", "i8"]) {
    const { stdout, stderr } = await wgconv(
      ["gemm", ...size, "--dtype", dtype, "--activation", "relu"],
    );
    const { projection, verdict } = JSON.parse(stdout);
    assert.equal(verdict, "pass", stderr);
    assert.deepEqual(
      [projection.places, projection.members, projection.activated],
      [480, 470, 470 * 480],
    );
    assert.equal(projection.limit === 0, dtype === "i8");
  }
});

Deno.test("wgconv bench: descriptors, lists, hot and cold, a provider's tag", async () => {
  using temporary = temporaryDirectory();
  const path = `${temporary.path}/out.jsonl`;
  const args = ["--op", "fwd,bwd-filter", "--algorithm", "direct,implicit-gemm"];
  const more = [
    "--cache",
    "hot,cold",
    "--provider",
    "mine",
    "--runs",
    "10",
    "--jsonl",
    path,
    "--wide",
  ];
  const { code, stdout, stderr } = await wgconv(
    ["bench", 'mb1ic4ih12oc8kh3n"net:a*3"', ...args, ...more],
  );
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^problem +op +layout +cache +algorithm +time .* kernel\n/);
  assert.match(stdout, /^total mine fwd f32 nchw direct hot: .* for 3 layers/m);
  const [environment, ...cases] = await records(path);
  assert.equal(environment!.kind, "environment");
  assert.equal((environment!.options as Record<string, unknown>).provider, "mine");
  assert.equal(new Set(caseNames(cases)).size, 8);
  for (const { provider, verdict, time_ms } of cases) {
    assert.deepEqual([provider, verdict], ["mine", "pass"]);
    const { samples, mad, median } = time_ms as
      & Record<"samples", number[]>
      & Record<string, number>;
    assert.ok(samples.length >= 9 && samples.length <= 10);
    assert.ok(mad! >= 0 && median! > 0);
  }
});

Deno.test("wgconv bench: --match and --shard choose cases, parts add up, nothing exits 2", async () => {
  using temporary = temporaryDirectory();
  await Deno.writeTextFile(`${temporary.path}/all`, "--batch=some\nmb1ic8ih9oc4kh3\n");
  await Deno.writeTextFile(`${temporary.path}/some`, 'mb1ic4,6ih9oc4kh3n"one"\nmb1ic5ih9oc4kh1\n');
  const run = async (name: string, args: string[], op = "fwd,bwd-data") => {
    const path = `${temporary.path}/${name}.jsonl`;
    const suite = ["--suite", `${temporary.path}/all`, "--op", op, "--runs", "1"];
    const { code, stderr } = await wgconv(["bench", ...suite, "--jsonl", path, ...args]);
    return { code, stderr, names: code === 0 ? caseNames(await records(path)) : [] };
  };
  const parts = await Promise.all(["1/2", "2/2"].map((part) => run(part[0]!, ["--shard", part])));
  const whole = await run("whole", []);
  assert.equal(whole.names.length, 8);
  assert.deepEqual(parts.flatMap(({ names }) => names).sort(), whole.names);
  assert.ok(parts.every(({ names }) => names.length === 4));
  assert.equal((await run("filter", ["--match", 'kh3.*"one"'])).names.length, 4);
  const old = await run("old", ["--filter", 'kh3.*"one"']);
  assert.equal(old.code, 2);
  assert.match(old.stderr, /^wgconv: unknown option '--filter', did you mean --match\?\n$/);
  const none = await run("none", ["--match", "kh5"]);
  assert.equal(none.code, 2);
  assert.match(none.stderr, /^wgconv: Cannot bench: \/kh5\/ matches none of 4 problems/);
  const empty = await wgconv(["bench", "mb1ic4ih9oc4kh3", "--op", "fwd", "--shard", "9/9"]);
  assert.equal(empty.code, 0);
  assert.match(empty.stderr, /note: part 9 of 9 has no problem to run\n$/);
  const other = await run("other", ["--algorithm", "winrs"], "fwd");
  assert.equal(other.code, 2);
  assert.match(other.stderr, /^skipped: winrs: .*\nwgconv: Cannot bench: nothing ran, /);
});

Deno.test("wgconv bench --device cpu times the reference without a driver, and claims no check", async () => {
  using temporary = temporaryDirectory();
  const path = `${temporary.path}/out.jsonl`;
  const args = ["bench", "mb1ic4,6ih9oc4kh3", "--op", "all", "--device", "cpu", "--runs", "9"];
  const bench = (...more: string[]) =>
    wgconv([...args, "--jsonl", path, ...more], { env: NO_DRIVER });
  const { code, stdout, stderr } = await bench();
  assert.equal(code, 0, stderr);
  assert.match(stdout, / reference +\d/);
  const [environment, ...cases] = await records(path);
  assert.deepEqual([environment!.backend, environment!.adapter], ["cpu", "CPU (FP64 reference)"]);
  assert.equal((environment!.options as Record<string, unknown>).check, "none");
  assert.equal(new Set(caseNames(cases)).size, 6);
  for (const { algorithm, verdict, accuracy, message, time_ms } of cases) {
    assert.deepEqual([algorithm, verdict, accuracy], ["reference", "none", null]);
    assert.match(message as string, /^computed by the reference itself, in FP64/);
    const { clock, samples } = time_ms as { clock: string; samples: number[] };
    assert.deepEqual([clock, samples.length], ["wall", 9]);
    assert.ok(samples.every((sample) => sample > 0));
  }
  const text = await Deno.readTextFile(path);
  await Deno.writeTextFile(path, text.split("\n").slice(0, 4).join("\n"));
  const resumed = await bench("--resume");
  assert.equal(resumed.code, 0, resumed.stderr);
  assert.match(resumed.stderr, /^resuming: 3 of 6 cases are left\n/);
  const refused = await bench("--force", "--algorithm", "direct", "--cache", "cold");
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /with the reference itself, --algorithm, --cache must go\n$/);
});
