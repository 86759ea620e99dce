import assert from "#assert";
import { startWgconv, temporaryDirectory, until, wgconv } from "../cli.ts";

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
    "wgconv: Cannot resume: the run is another one: seed is 7, was 1; " +
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
  assert.match(printed.stdout, /single outputs off by .*; every activation compared$/m);
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
