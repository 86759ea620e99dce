import { algorithmNames } from "../src/algorithms/registry.ts";
import assert from "#assert";
import { timeRecord } from "../src/run/timing.ts";
import { readNpz } from "../src/npy/mod.ts";
import { deno, NO_DRIVER, ROOT, temporaryDirectory, wgconv } from "./cli.ts";

const FAULTS = `${ROOT}tests/faults.ts`;

/** Runs `wgconv <args>` with a fault put into its plans. */
function faulty(fault: string, args: readonly string[]) {
  return deno(["run", "-A", FAULTS, fault, ...args]);
}

/** A few cases of the built-in suite; the fault is in normal_3x3. */
const SOME = ["--op", "fwd", "--layout", "nhwc", "--algorithm", "implicit-gemm"];
const FEW = [...SOME, "--match", '"(normal_3x3|pointwise|filter_1x7)"'];
const CASE = `fwd nhwc f32 implicit-gemm mb2ic32ih10oc32oh10kh3ph1n"normal_3x3"`;

Deno.test("wgconv check holds the built-in suite against the built-in baseline", async () => {
  const args = ["--algorithm", "direct,implicit-gemm", "--match", "odd_channels|groups_4"];
  const { code, stdout, stderr } = await wgconv(["check", ...args]);
  assert.equal(code, 0, stdout + stderr);
  assert.match(stdout, /\n24 cases on .*: 24 as exact as the baseline or the gate asks\n$/);
  // A line a case, where no terminal shows how far it is.
  const lines = stdout.split("\n").filter((line) =>
    /^pass: (fwd|bwd-data|bwd-filter) n/.test(line)
  );
  assert.equal(lines.length, 24);
});

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

Deno.test("wgconv check --quick reaches every algorithm, and only its problems are missed", async () => {
  const { code, stdout, stderr } = await wgconv(["check", "--quick", "--json"]);
  assert.equal(code, 0, stderr);
  const [, ...cases] = stdout.trimEnd().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(new Set(cases.map(({ algorithm }) => algorithm)), new Set(algorithmNames()));
  const other = await wgconv(["check", "--quick", "--match", "pointwise"]);
  assert.equal(other.code, 2);
  assert.match(other.stderr, /--quick chooses the problems, --match must go\n$/);
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

Deno.test("wgconv check names the case of an injected fault, saves it, and exits 1", async () => {
  using temporary = temporaryDirectory();
  const faults: [string, RegExp][] = [
    [
      "wrong-channel",
      /RMS error of channel 5 over the typical \d+ is above 2\.\d+\n {2}worst elements:\n {4}\[\d,5,/,
    ],
    ["nan", /200 outputs are NaN or infinite .*\n(.*\n)* {4}\[0,5,0,0\]: got NaN/],
    ["fourfold-error", /^ {2}RMS error of channel 5 over the typical [34567]\.\d+ is/m],
  ];
  for (const [fault, message] of faults) {
    const folder = `${temporary.path}/${fault}`;
    const junit = `${temporary.path}/${fault}.xml`;
    const save = ["--save-failures", folder, "--junit", junit];
    const { code, stdout } = await faulty(fault, ["check", ...FEW, ...save]);
    assert.equal(code, 1, stdout);
    assert.ok(stdout.includes(`\nfail: ${CASE}\n`), stdout);
    assert.match(stdout, message);
    assert.match(stdout, /^3 cases on .*: 2 as exact .*, 1 failed\n$/m);
    const repro = /again: wgconv conv --problem '(.*)' --op fwd --algorithm implicit-gemm/.exec(
      stdout,
    );
    assert.equal(repro?.[1], CASE.split(" ").at(-1));
    const [file] = [...Deno.readDirSync(folder)];
    const tensors = await readNpz(`${folder}/${file!.name}`);
    assert.deepEqual(tensors["input"]!.shape, [2, 10, 10, 32]);
    assert.deepEqual(tensors["filter"]!.shape, [32, 3, 3, 32]);
    assert.deepEqual(tensors["index"]!.shape, [6400, 4]);
    const worst = (tensors["got"]!.data as Float32Array).findIndex((got, i) =>
      !(Math.abs(got - Number(tensors["ref"]!.data[i])) < (fault === "fourfold-error" ? 3e-5 : 0.1))
    );
    assert.equal(Number(tensors["index"]!.data[4 * worst + 1]), 5);
    const xml = await Deno.readTextFile(junit);
    assert.match(xml, /<testsuites tests="3" failures="1" errors="0"/);
    assert.match(
      xml,
      /classname="wgconv\.fwd\.implicit-gemm" name="nhwc f32 mb2.*&quot;normal_3x3/,
    );
  }
  const { code } = await faulty("none", ["check", ...FEW]);
  assert.equal(code, 0);
});

Deno.test("wgconv check --update writes the baseline and shows what changes", async () => {
  using temporary = temporaryDirectory();
  const path = `${temporary.path}/baseline.json`;
  const suite = `${temporary.path}/suite`;
  await Deno.writeTextFile(suite, 'mb1ic8ih9oc8kh3n"a"\nmb1ic8ih9oc8kh1n"b"\n');
  const args = ["check", "--suite", suite, ...SOME, "--baseline", path];

  const none = await wgconv(args);
  assert.equal(none.code, 2);
  assert.match(none.stderr, /^wgconv: Cannot read .*baseline\.json: there is no such file\n$/);
  const first = await wgconv([...args, "--update"]);
  assert.equal(first.code, 0, first.stderr);
  assert.match(first.stdout, /^\+ fwd nhwc f32 implicit-gemm mb1ic8ih9oc8oh7kh3n"a" \{"max_bound/m);
  assert.match(first.stdout, /baseline\.json: 2 cases, 2 changed\n/);
  const text = await Deno.readTextFile(path);
  assert.equal((await wgconv([...args, "--update"])).code, 0);
  assert.equal(await Deno.readTextFile(path), text);

  // A more exact past, and a case that is gone.
  const baseline = JSON.parse(text);
  const [one, two] = Object.keys(baseline.cases) as [string, string];
  baseline.cases[one].rel_l2 /= 4;
  baseline.cases[two.replace('"b"', '"c"')] = baseline.cases[two];
  delete baseline.cases[two];
  await Deno.writeTextFile(path, JSON.stringify(baseline, null, 1));
  const worse = await wgconv(args);
  assert.equal(worse.code, 1);
  assert.match(worse.stdout, /^regressed: (.*)\n {2}relative L2 error .* was .* in the baseline/);
  assert.ok(worse.stdout.includes(`regressed: ${one}\n`));
  assert.match(worse.stdout, /^missing: .*n"c": the baseline has it, it did not run$/m);
  assert.match(worse.stdout, /: 1 new, 1 less exact than the baseline, 1 missing\n$/m);
  const rows = await wgconv([...args, "--columns", "problem,verdict,message"]);
  assert.equal(rows.code, 1);
  assert.match(rows.stdout, /^problem +verdict +message$/m);
  assert.match(rows.stdout, /^a +regressed +relative L2 error .* was .* in the baseline/m);
  assert.match(rows.stdout, /^b +pass +-$/m);
  const mended = await wgconv([...args, "--update"]);
  assert.equal(mended.code, 0);
  assert.match(mended.stdout, /^- .*n"c"$/m);
  assert.match(mended.stdout, /^~ .* rel_l2 .* -> /m);
  assert.equal(await Deno.readTextFile(path), text);

  await Deno.writeTextFile(path, text.slice(0, -60));
  const broken = await wgconv(args);
  assert.equal(broken.code, 2);
  assert.match(
    broken.stderr,
    /^wgconv: Cannot read the baseline: .*baseline\.json:10: the file ends in the middle\n$/,
  );
  const seed = await wgconv([...args, "--seed", "2"]);
  assert.deepEqual([seed.code, broken.stdout], [2, ""]);
});

Deno.test("wgconv check exits 2 where nothing matched or nothing ran", async () => {
  const cases: [string[], RegExp][] = [
    [["--match", "nothing"], /^wgconv: Cannot check: \/nothing\/ matches none of 24 problems\n$/],
    [["--baseline", "none", "--update"], /^wgconv: Cannot update the baseline: --baseline says/],
    [["--algorithm", "x"], /expected direct, /],
  ];
  for (const [args, message] of cases) {
    const { code, stderr } = await wgconv(["check", ...args]);
    assert.equal(code, 2, args.join(" "));
    assert.match(stderr, message);
  }
});

Deno.test("a kernel slowed down by 30 % is a regression to wgconv compare: exit 4", async () => {
  using temporary = temporaryDirectory();
  const path = `${temporary.path}/both.jsonl`;
  // The same plan twice, sampled in turn; the second one is slowed down.
  const bench = ["bench", "mb1ic32ih14oc64kh3ph1", "--policy", "auto,tiny", "--check", "none"];
  const timing = ["--runs", "200", "--spread", "0", "--fill-ms", "3", "--jsonl", path, "--force"];
  let last = "";
  // Other work on the machine only adds to times: the quietest samples count, of several attempts if need be.
  for (let attempt = 0; attempt < 4; attempt++) {
    assert.equal((await faulty("slow", [...bench, ...timing])).code, 0);
    const lines = (await Deno.readTextFile(path)).trimEnd().split("\n");
    const files = ["base", "new"].map((name) => `${temporary.path}/${name}.jsonl`);
    for (const [index, file] of files.entries()) {
      const { policy: _, ...record } = JSON.parse(lines[1 + index]!);
      const { samples, repeats, clock } = record.time_ms;
      const quietest: number[] = samples.toSorted((a: number, b: number) => a - b).slice(0, 9);
      const time_ms = timeRecord(quietest.map((ms) => 1e6 * ms), repeats, clock);
      await Deno.writeTextFile(file, `${JSON.stringify({ ...record, time_ms })}\n`);
    }
    const { code, stdout } = await wgconv(["compare", ...files]);
    last = stdout;
    if (code !== 4) continue;
    assert.match(stdout, /mb1ic32ih14oc64.*SLOWER/);
    return;
  }
  assert.fail(last);
});

Deno.test("wgconv bench finds a few zeroed outputs that its sample misses", async () => {
  const bench = ["bench", "mb2ic32ih64oc96kh3ph1", "--runs", "1", "--algorithm", "implicit-gemm"];
  const sampled = await faulty("zeroed-places", [...bench, "--check", "sample"]);
  assert.equal(sampled.code, 0, sampled.stdout);
  const whole = await faulty("zeroed-places", [...bench, "--json"]);
  assert.equal(whole.code, 1, whole.stderr);
  const { verdict, message } = JSON.parse(whole.stdout.trim().split("\n").at(-1)!);
  assert.equal(verdict, "fail");
  assert.match(message, /projection over channels at \[[01],·,15,4\d\] is .* times its noise/);
});
