import assert from "#assert";
import { startWgconv, temporaryDirectory, until, wgconv } from "./cli.ts";

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
  const more = ["--cache", "hot,cold", "--provider", "mine", "--runs", "10", "--jsonl", path];
  const { code, stdout, stderr } = await wgconv(
    ["bench", 'mb1ic4ih12oc8kh3n"net:a*3"', ...args, ...more],
  );
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^problem .* kernel +cache /);
  assert.match(stdout, /^total fwd nchw direct hot: .* for 3 layers/m);
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

Deno.test("wgconv bench: --filter and --shard choose cases, parts add up, nothing exits 2", async () => {
  using temporary = temporaryDirectory();
  await Deno.writeTextFile(`${temporary.path}/all`, "--batch=some\nmb1ic8ih9oc4kh3\n");
  await Deno.writeTextFile(`${temporary.path}/some`, 'mb1ic4,6ih9oc4kh3n"one"\nmb1ic5ih9oc4kh1\n');
  const run = async (name: string, args: string[]) => {
    const path = `${temporary.path}/${name}.jsonl`;
    const suite = ["--suite", `${temporary.path}/all`, "--op", "fwd,bwd-data", "--runs", "1"];
    const { code, stderr } = await wgconv(["bench", ...suite, "--jsonl", path, ...args]);
    return { code, stderr, names: code === 0 ? caseNames(await records(path)) : [] };
  };
  const parts = await Promise.all(["1/2", "2/2"].map((part) => run(part[0]!, ["--shard", part])));
  const whole = await run("whole", []);
  assert.equal(whole.names.length, 8);
  assert.deepEqual(parts.flatMap(({ names }) => names).sort(), whole.names);
  assert.ok(parts.every(({ names }) => names.length === 4));
  assert.equal((await run("filter", ["--filter", 'kh3.*"one"'])).names.length, 4);
  const none = await run("none", ["--filter", "kh5"]);
  assert.equal(none.code, 2);
  assert.match(none.stderr, /^wgconv: Cannot bench: \/kh5\/ matches none of 4 problems/);
  const empty = await run("empty", ["--shard", "9/9"]);
  assert.equal(empty.code, 2);
  assert.match(empty.stderr, /part 9 of 9 holds no case/);
  const other = await run("other", ["--op", "fwd", "--algorithm", "winrs"]);
  assert.equal(other.code, 2);
  assert.match(other.stderr, /^skipped: winrs: .*\nwgconv: Cannot bench: nothing ran, what was /);
});

Deno.test("wgconv bench, killed in the middle, resumes and ends with the same cases", async () => {
  using temporary = temporaryDirectory();
  const suite = `${temporary.path}/suite`;
  await Deno.writeTextFile(suite, "mb1ic4,8,12,16,20,24ih14oc16kh3ph1");
  const path = `${temporary.path}/out.jsonl`;
  const args = ["bench", "--suite", suite, "--op", "all", "--runs", "9", "--jsonl", path];
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
    "wgconv: Cannot resume: the run is another one: seed is 7, was 1; " +
      "--check is full, was sample\n",
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
  assert.match(broken.stderr, /^wgconv: Cannot resume: .*out\.jsonl:1: the line is no JSON\n$/);
});
