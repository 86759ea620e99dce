import assert from "#assert";
import { ACCURACY, SAMPLES, stream, timeOf } from "./support/test_records.ts";
import { temporaryDirectory } from "./cli.ts";
import { succeeds, wgconvHere } from "./support/in_process.ts";

type Changes = Record<string, unknown>;

/** Runs `wgconv compare` on two made runs. */
async function compare(base: string | Changes[], next: string | Changes[], ...more: string[]) {
  using folder = temporaryDirectory();
  const files = ["base", "new"].map((name) => `${folder.path}/${name}.jsonl`);
  [base, next].forEach((run, side) =>
    Deno.writeTextFileSync(files[side]!, typeof run === "string" ? run : stream(...run))
  );
  const found = await wgconvHere(["compare", ...files, ...more]);
  return { ...found, stderr: found.stderr.replaceAll(`${folder.path}/`, "") };
}

Deno.test("wgconv compare gives every verdict, geomeans and exit 4 on a regression", async () => {
  const noisy = SAMPLES.map((sample, i) => sample + (i - 4) / 10);
  const problems = ["ic1", "ic2", "ic3", "ic4", "ic5"].map((start) => `${start}ih8oc4kh3`);
  const run = (...times: unknown[]) =>
    times.map((time_ms, i) => ({ problem: `${problems[i]}n"L${i}"`, time_ms }));
  const found = await compare(
    run(timeOf(1), timeOf(1), timeOf(1), timeOf(1), timeOf(1)),
    run(timeOf(1.01), timeOf(0.5), timeOf(1.03), timeOf(1.3), timeOf(1.2, noisy)),
  );
  assert.equal(found.code, 4, found.stderr);
  const row = (name: string) => found.stdout.split("\n").find((line) => line.startsWith(name))!;
  assert.match(row("L0"), /1\.000 ms +1\.010 ms +0\.990 +SAME +same$/);
  assert.match(row("L1"), /2\.000 +FASTER +same$/);
  assert.match(row("L2"), /0\.971 +SLOWER +same$/);
  assert.match(row("L3"), /0\.769 +SLOWER \(regression\) +same$/);
  assert.match(row("L4"), /0\.833 +AMBIGUOUS: the noise intervals overlap: /);
  assert.match(row("all"), /^all +5 +1\.043 +1 +1 +2 +1$/);
  assert.match(
    found.stdout,
    /^speed regression: fwd ic4ih8oc4kh3n"L3" f32 nchw \(wgconv implicit-gemm\): takes 30 % longer, 5 % allowed$/m,
  );
});

Deno.test("wgconv compare exits 0 within the threshold, as JSON and Markdown too", async () => {
  const next = [{ time_ms: timeOf(1.3) }];
  const wide = await compare([{}], next, "--threshold", "40%", "--json");
  assert.equal(wide.code, 0, wide.stderr);
  const data = JSON.parse(wide.stdout);
  assert.equal(data.cases[0].speed.verdict, "SLOWER");
  assert.equal(data.cases[0].regression, false);
  assert.equal(data.exit_code, 0);
  assert.equal(data.summaries[0].verdicts.SLOWER, 1);
  const markdown = await compare([{}], next, "--markdown");
  assert.equal(markdown.code, 4);
  assert.match(markdown.stdout, /^\| LayerN2 \| fwd \| f32 +\| nchw/m);
  assert.match(markdown.stdout, /^- speed regression: /m);
});

Deno.test("wgconv compare exits 1 on accuracy, whatever the speed", async () => {
  const slow = { time_ms: timeOf(2) };
  const fail = { verdict: "fail", message: "channel 3 is 4 times the median" };
  const failed = await compare([{}, { op: "bwd-data" }], [fail, { op: "bwd-data", ...slow }]);
  assert.equal(failed.code, 1);
  assert.match(failed.stdout, /^accuracy regression: fwd mb2ic4.*pass became fail: channel 3/m);
  assert.match(failed.stdout, /^speed regression: bwd-data /m);
  const beyond = { accuracy: { ...ACCURACY, rel_l2: 2e-6, rel_l2_limit: 1 } };
  assert.equal((await compare([{}], [beyond])).code, 1);
  const error = { verdict: "error", time_ms: null, accuracy: null, message: "lost" };
  assert.equal((await compare([{}], [error])).code, 1);
  const still = await compare([fail], [fail]);
  assert.equal(still.code, 1);
  assert.match(still.stdout, /^wrong result: fwd mb2ic4.*: channel 3 is 4 times the median$/m);
});

Deno.test("wgconv compare pairs providers by problem and op", async () => {
  const peer = { provider: "cudnn", algorithm: undefined, kernel: undefined, fill: undefined };
  const base = [
    { ...peer, accuracy: { mare: 1e-7 }, verdict: undefined, time_ms: timeOf(2) },
    { ...peer, accuracy: { mare: 1e-7 }, verdict: undefined, time_ms: timeOf(3), layout: "nhwc" },
  ];
  const next = [{}, { layout: "nhwc", time_ms: timeOf(0.5) }];
  const found = await compare(base, next);
  assert.equal(found.code, 0, found.stderr);
  assert.match(found.stdout, /nchw -> nhwc +cudnn -> wgconv implicit-gemm +2\.000 ms +500\.0 us/);
  const one = await compare([...base, ...next], [...base, ...next], "--provider", "wgconv,cudnn");
  assert.equal(one.code, 4);
  assert.match(one.stdout, /wgconv implicit-gemm -> cudnn/);
});

Deno.test("wgconv compare exits 2 where nothing matched or a file is not whole", async () => {
  const none = await compare([{}], [{ op: "bwd-data" }]);
  assert.equal(none.code, 2);
  assert.match(
    none.stderr,
    /^wgconv: Cannot compare: no case of new\.jsonl \(1 case\) matches one of base\.jsonl \(1 case\): 1 of 1 case of the new run is not compared \(1: the other side has the problem in another operation\)\n$/,
  );
  assert.equal((await compare([], [])).code, 2);
  const whole = stream({}, {});
  const cut = await compare([{}], whole.slice(0, -40));
  assert.equal(cut.code, 2);
  assert.match(cut.stderr, /^wgconv: Cannot read new\.jsonl:3: the last record is cut off after/);
  const other = await compare([{}], '{"schema":9,"kind":"case"}\n');
  assert.match(
    other.stderr,
    /^wgconv: Cannot read new\.jsonl:1: the record is of version 9, this wgconv reads 1\n$/,
  );
  const missing = await wgconvHere(["compare", "no.jsonl", "no.jsonl"]);
  assert.equal(missing.code, 2);
  assert.equal(missing.stderr, "wgconv: Cannot read no.jsonl: there is no such file\n");
});

Deno.test("wgconv compare takes a folder of shards for a run, and says what gave way", async () => {
  using folder = temporaryDirectory();
  const { path } = folder;
  Deno.mkdirSync(`${path}/shards`);
  Deno.writeTextFileSync(`${path}/shards/1.jsonl`, stream({ time_ms: timeOf(9) }));
  Deno.writeTextFileSync(`${path}/shards/2.jsonl`, stream({}, { op: "bwd-data" }));
  Deno.writeTextFileSync(`${path}/new.jsonl`, stream({}, { op: "bwd-data" }, { dtype: "f16" }));
  const found = await succeeds(["compare", `${path}/shards`, `${path}/new.jsonl`]);
  assert.match(found.stdout, /^all +2 +1\.000 +2 +0 +0 +0$/m);
  assert.match(found.stdout, /^1 record was replaced by a later one of the same case$/m);
  assert.match(found.stdout, /^only in the new run, not compared: fwd mb2.* f16 nchw/m);
});

Deno.test("wgconv compare says how many cases it does not compare, and why, in every format", async () => {
  const layouts = [{ layout: "nchw" }, { layout: "nhwc" }];
  const next = [{}, { layout: "chwn" }, { dtype: "f16" }];
  const line = "2 of 3 cases of the new run are not compared " +
    "(1: the other side has the problem in another layout; " +
    "1: the other side has the problem in another dtype)";
  for (const format of [[], ["--markdown"]]) {
    const { code, stdout } = await compare(layouts, next, ...format);
    assert.equal(code, 0);
    assert.ok(stdout.includes(line), stdout);
  }
  const { code, stdout, stderr } = await compare(layouts, next, "--json");
  assert.equal(code, 0);
  assert.ok(stderr.includes(line), stderr);
  assert.deepEqual(JSON.parse(stdout).not_compared.map((one: { side: string }) => one.side), [
    "base",
    "new",
    "new",
  ]);
  const other = await compare([{}], [{}], "--provider", "wgconv,cudnn");
  assert.equal(other.code, 2);
  assert.match(other.stderr, /no case of .*new.jsonl has --provider "cudnn", only "wgconv"\n$/);
});
