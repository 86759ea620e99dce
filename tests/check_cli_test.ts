import assert from "#assert";
import { supportedAlgorithms } from "../src/algorithms/planner.ts";
import { algorithmNames } from "../src/algorithms/registry.ts";
import { parseSuite } from "../src/bench/suite.ts";
import { QUICK } from "../src/cli/check.ts";
import { OPERATIONS } from "../src/problem/conv_problem.ts";
import { printDescriptor } from "../src/problem/descriptor.ts";
import { NO_DRIVER, ROOT, temporaryDirectory, wgconv } from "./cli.ts";
import { CASE, faulty, FEW, SOME } from "./support/faulty_check.ts";
import { refuses, succeeds, wgconvHere } from "./support/in_process.ts";
import { request } from "./plan_request.ts";

Deno.test("wgconv check --sort shows a table of all cases, and why some failed as ever", async () => {
  const { code, stdout, stderr } = await faulty("wrong-channel", [
    ...["check", ...FEW, "--sort", "-bound"],
  ]);
  assert.equal(code, 1, stderr);
  const [failed, ...rest] = stdout.trimEnd().split("\n");
  assert.equal(failed, `fail: ${CASE}`);
  assert.equal(rest.filter((line) => /^ {2}bound ratio/.test(line)).length, 1);
  const table = rest.slice(rest.findIndex((line) => line.startsWith("problem ")));
  assert.match(
    table[0]!,
    /^problem +op +dtype +layout +algorithm +MARE +relative L2 +bound +verdict/,
  );
  assert.match(table[1]!, /^normal_3x3 .* fail$/);
  const bounds = table.slice(1, 4).map((line) => Number(line.split(/ {2,}/).at(-2)));
  assert.deepEqual(bounds, bounds.toSorted((a, b) => b - a));
  assert.match(table[4]!, /^3 cases on /);
});

Deno.test("wgconv check --device cpu holds the reference against sums taken one by one, without a driver", async () => {
  using temporary = temporaryDirectory();
  const path = `${temporary.path}/out.jsonl`;
  const check = (...args: string[]) =>
    wgconv(["check", "--device", "cpu", "--layout", "nhwc", ...args], { env: NO_DRIVER });
  const { code, stdout, stderr } = await check("--jsonl", path);
  assert.equal(code, 0, stdout + stderr);
  assert.match(stdout, /\n72 cases on CPU \(FP64 reference\): 72 new\n$/);
  const lines = (await Deno.readTextFile(path)).trimEnd().split("\n").slice(1);
  for (const { verdict, accuracy } of lines.map((line) => JSON.parse(line))) {
    // One rounding to f32, of all outputs.
    assert.equal(verdict, "pass");
    assert.equal(accuracy.checked, accuracy.total);
    assert.ok(accuracy.rel_l2 < 2 ** -24);
  }
  const refused = await check("--algorithm", "direct");
  assert.deepEqual(
    [refused.code, refused.stderr],
    [2, "wgconv: Cannot check: the CPU computes with the reference itself, --algorithm must go\n"],
  );
});

Deno.test("wgconv check --update writes the baseline and shows what changes", async () => {
  using temporary = temporaryDirectory();
  const path = `${temporary.path}/baseline.json`;
  const suite = `${temporary.path}/suite`;
  await Deno.writeTextFile(suite, 'mb1ic8ih9oc8kh3n"a"\nmb1ic8ih9oc8kh1n"b"\n');
  const args = ["check", "--suite", suite, ...SOME, "--baseline", path];

  const none = await wgconvHere(args);
  assert.equal(none.code, 2);
  const unwritten =
    /^wgconv: Cannot read .*baseline\.json: there is no such file, --update writes it\n$/;
  assert.match(none.stderr, unwritten);
  const first = await succeeds([...args, "--update"]);
  assert.match(first.stdout, /^\+ fwd nhwc f32 implicit-gemm mb1ic8ih9oc8oh7kh3n"a" \{"max_bound/m);
  assert.match(first.stdout, /baseline\.json: 2 cases, 2 changed\n/);
  const text = await Deno.readTextFile(path);
  assert.equal((await wgconvHere([...args, "--update"])).code, 0);
  assert.equal(await Deno.readTextFile(path), text);

  // A more exact past, and a case that is gone.
  const baseline = JSON.parse(text);
  const [one, two] = Object.keys(baseline.cases) as [string, string];
  baseline.cases[one].rel_l2 /= 4;
  baseline.cases[two.replace('"b"', '"c"')] = baseline.cases[two];
  delete baseline.cases[two];
  await Deno.writeTextFile(path, JSON.stringify(baseline, null, 1));
  const worse = await wgconvHere(args);
  assert.equal(worse.code, 1);
  assert.match(worse.stdout, /^regressed: (.*)\n {2}relative L2 error .* was .* in the baseline/);
  assert.ok(worse.stdout.includes(`regressed: ${one}\n`));
  assert.match(worse.stdout, /^missing: .*n"c": it is in the baseline, but did not run$/m);
  assert.match(worse.stdout, /: 1 new, 1 less exact than the baseline, 1 missing\n$/m);
  const rows = await wgconvHere([...args, "--columns", "problem,verdict,message"]);
  assert.equal(rows.code, 1);
  assert.match(rows.stdout, /^problem +verdict +message$/m);
  assert.match(rows.stdout, /^a +regressed +relative L2 error .* was .* in the baseline/m);
  assert.match(rows.stdout, /^b +pass +-$/m);
  const mended = await succeeds([...args, "--update"]);
  assert.match(mended.stdout, /^- .*n"c"$/m);
  assert.match(mended.stdout, /^~ .* rel_l2 .* -> /m);
  assert.equal(await Deno.readTextFile(path), text);

  await Deno.writeTextFile(path, text.slice(0, -60));
  const broken = await wgconvHere(args);
  assert.equal(broken.code, 2);
  assert.match(
    broken.stderr,
    /^wgconv: Cannot read the baseline: .*baseline\.json:10: the line ends in the middle\n$/,
  );
  const seed = await wgconvHere([...args, "--seed", "2"]);
  assert.deepEqual([seed.code, broken.stdout], [2, ""]);
});

Deno.test("wgconv check exits 2 where nothing matched or nothing ran", async () => {
  const cases: [string[], RegExp][] = [
    [["--match", "nothing"], /^wgconv: Cannot check: \/nothing\/ matches none of 24 problems\n$/],
    [["--baseline", "none", "--update"], /^wgconv: Cannot update the baseline: --baseline says/],
    [["--algorithm", "x"], /expected direct, /],
  ];
  for (const [args, message] of cases) {
    await refuses(["check", ...args], message);
  }
});

Deno.test("the problems of wgconv check --quick reach every algorithm, and no others are chosen beside it", async () => {
  const quick = parseSuite(await Deno.readTextFile(`${ROOT}fixtures/check.txt`), "check.txt")
    .filter((problem) => QUICK.test(printDescriptor(problem)));
  assert.equal(quick.length, 5);
  const reached = quick.flatMap((problem) =>
    OPERATIONS.flatMap((op) => supportedAlgorithms(request({ ...problem, op })))
  ).filter(({ reason }) => reason === undefined);
  assert.deepEqual(new Set(reached.map(({ name }) => name)), new Set(algorithmNames()));
  await refuses(
    ["check", "--quick", "--match", "pointwise"],
    /--quick chooses the problems, --match must go\n$/,
  );
});

Deno.test("wgconv check --shard misses no case of another part", async () => {
  using folder = temporaryDirectory();
  const [suite, baseline] = [`${folder.path}/suite.txt`, `${folder.path}/base.json`];
  await Deno.writeTextFile(suite, "mb1ic1ih4oc1kh1\nmb1ic2ih4oc1kh1\nmb1ic3ih4oc1kh1\n");
  const check = (...args: string[]) =>
    wgconvHere([
      ...["check", "--device", "cpu", "--suite", suite, "--op", "fwd", "--layout", "nchw"],
      ...["--baseline", baseline, ...args],
    ]);
  assert.equal((await check("--update")).code, 0);
  for (const [part, count] of [["1/2", 2], ["2/2", 1]] as const) {
    const { code, stdout } = await check("--shard", part);
    assert.equal(code, 0, stdout);
    assert.match(stdout, new RegExp(`^${count} cases? on CPU .*: ${count} passed$`, "m"));
  }
  const empty = await check("--shard", "4/4");
  assert.equal(empty.code, 0);
  assert.match(empty.stderr, /note: part 4 of 4 has no problem to run\n$/);
});
