import assert from "#assert";
import { NO_DRIVER, temporaryDirectory, wgconv } from "./cli.ts";

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
  assert.equal(old.names.length, 4);
  assert.match(old.stderr, /^wgconv: --filter is called --match now\n/);
  const both = await run("both", ["--filter", "one", "--match", "one"]);
  assert.equal(both.code, 2);
  assert.match(both.stderr, /^wgconv: --filter is the old name of --match, give one\n$/);
  const none = await run("none", ["--match", "kh5"]);
  assert.equal(none.code, 2);
  assert.match(none.stderr, /^wgconv: Cannot bench: \/kh5\/ matches none of 4 problems/);
  const empty = await run("empty", ["--shard", "9/9"]);
  assert.equal(empty.code, 2);
  assert.match(empty.stderr, /part 9 of 9 holds no case/);
  const other = await run("other", ["--algorithm", "winrs"], "fwd");
  assert.equal(other.code, 2);
  assert.match(other.stderr, /^skipped: winrs: .*\nwgconv: Cannot bench: nothing ran, what was /);
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
