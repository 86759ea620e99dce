import assert from "#assert";
import { temporaryDirectory, wgconv } from "../cli.ts";
import { refuses, succeeds, wgconvHere } from "../support/in_process.ts";

const PROBLEM = "mb1ic8ih12oc16kh3ph1";

Deno.test("wgconv tune measures what auto then takes, on its device and as long as kernels are the same", async () => {
  using temporary = temporaryDirectory();
  // The user's own file.
  const env = { XDG_CACHE_HOME: temporary.path };
  const path = `${temporary.path}/wgconv/tuning.jsonl`;
  const rivals = ["--algorithm", "direct,implicit-gemm", "--policy", "auto,small"];
  const tune = () => wgconv(["tune", PROBLEM, ...rivals, "--runs", "9"], { env });
  const auto = async (...args: string[]) => {
    const run = await wgconv(["conv", "--problem", PROBLEM, "--json", ...args], { env });
    assert.equal(run.code, 0, run.stderr);
    return { algorithm: JSON.parse(run.stdout).algorithm as string, stderr: run.stderr };
  };
  const tuned = await tune();
  assert.equal(tuned.code, 0, tuned.stderr);
  assert.match(
    tuned.stdout,
    /^problem .* over auto +kernel\nmb1ic8ih12oc16oh12kh3ph1 .*tuning\.jsonl: 1 class/s,
  );
  const records = (await Deno.readTextFile(path)).trimEnd().split("\n").map((line) =>
    JSON.parse(line)
  );
  // And what auto takes without a tuning, which may be a third.
  const untuned = await auto("--tuning", "none");
  assert.notEqual(untuned.algorithm, "direct");
  assert.deepEqual(
    new Set(records.map(({ algorithm }) => algorithm)),
    new Set(["direct", "implicit-gemm", untuned.algorithm]),
  );
  assert.deepEqual(records.filter(({ chosen }) => chosen).map(({ policy }) => policy), [undefined]);
  assert.equal(records.filter(({ winner }) => winner).length, 1);
  assert.ok(
    records.every(({ verdict, time_ms }) => verdict === "pass" && time_ms.samples.length === 9),
  );

  const write = (change: Record<string, unknown>) => {
    const lines = records.map((record) =>
      JSON.stringify({ ...record, winner: record.algorithm === "direct", ...change })
    );
    return Deno.writeTextFile(path, lines.join("\n"));
  };
  await write({});
  assert.deepEqual(await auto(), { algorithm: "direct", stderr: "" });
  const bench = await wgconv(["bench", PROBLEM, "--runs", "1", "--json"], { env });
  assert.equal(JSON.parse(bench.stdout.trimEnd().split("\n")[1]!).algorithm, "direct");
  await write({ kernels: ["what it was before"] });
  const outdated = await auto();
  assert.equal(outdated.algorithm, untuned.algorithm);
  const changed = `ignoring the tuning of 1 case in ${path}: its kernels have changed, `;
  assert.equal(outdated.stderr, `${changed}run wgconv tune again\n`);
  const outdatedBench = await wgconv(["bench", PROBLEM, "--runs", "1", "--json"], { env });
  assert.ok(outdatedBench.stderr.includes(changed), outdatedBench.stderr);
  await write({ device: "Another GPU" });
  const moved = await auto();
  assert.equal(moved.algorithm, untuned.algorithm);
  assert.match(moved.stderr, /^ignoring .*tuning\.jsonl: it is of Another GPU.* \(wgpu\), this is/);
});

Deno.test("the user's tuning is a cache: damaged or unreadable, it costs a note and nothing else", async () => {
  using temporary = temporaryDirectory();
  const env = { XDG_CACHE_HOME: temporary.path };
  const path = `${temporary.path}/wgconv/tuning.jsonl`;
  await Deno.mkdir(`${temporary.path}/wgconv`);
  const record = {
    ...{ schema: 1, kind: "tuning", backend: "wgpu", device: "x", driver: "", problem: "nonsense" },
    ...{ op: "fwd", dtype: "f32", layout: "nchw", filter_layout: "kcrs", algorithm: "direct" },
    ...{ kernels: [], winner: true, verdict: "pass" },
  };
  const cache = /^ignoring .*wgconv.tuning\.jsonl.*deleting (it|the file) is safe$/;
  const damages: [() => Promise<void>, RegExp][] = [
    [() => Deno.writeTextFile(path, "nonsense"), /, as line 1: the line is no JSON; /],
    [
      () => Deno.writeTextFile(path, `# mine\n${JSON.stringify(record)}\n`),
      /, as line 2: the problem: Cannot parse problem: /,
    ],
    [async () => {
      await Deno.remove(path);
      await Deno.mkdir(path);
    }, /: it is a directory; /],
  ];
  for (const [damage, message] of damages) {
    await damage();
    for (const command of [["conv", "--problem"], ["bench"]]) {
      const { code, stderr } = await wgconv([...command, PROBLEM, "--runs", "1"], { env });
      assert.equal(code, 0, stderr);
      const notes = stderr.trimEnd().split("\n");
      assert.match(notes[0]!, cache);
      assert.match(notes[0]!, message);
      assert.equal(notes.length, 1);
    }
  }
  await Deno.remove(path);
  // What is measured next mends it.
  const learn = ["conv", "--problem", PROBLEM, "--tune-budget", "5", "--runs", "1"];
  const told = async () => (await wgconv(learn, { env })).stderr;
  assert.match(await told(), /; remembered in .*tuning\.jsonl$/m);
  assert.equal(await told(), "");
  const good = await Deno.readTextFile(path);
  await Deno.writeTextFile(path, `{"cut\n# mine\n${good}`);
  assert.match((await told()).trimEnd(), cache);
  await Deno.writeTextFile(path, `# mine\n${good.slice(0, -40)}`);
  const tune = ["tune", PROBLEM, "--algorithm", "direct", "--policy", "auto"];
  assert.equal((await wgconv(tune, { env })).code, 0);
  assert.equal(await told(), "");
  assert.match(await Deno.readTextFile(path), /^# mine$/m);
  const foreign = `${temporary.path}/foreign.jsonl`;
  await Deno.writeTextFile(foreign, `${JSON.stringify({ ...record, schema: 2 })}\n`);
  const named = await succeeds(["conv", "--problem", PROBLEM, "--tuning", foreign]);
  assert.equal(
    named.stderr,
    `ignoring 1 line of ${foreign}: of another version of wgconv\n`,
  );
  await Deno.writeTextFile(foreign, "nonsense");
  await refuses(
    ["conv", "--problem", PROBLEM, "--tuning", foreign],
    /^wgconv: Cannot read the tuning: .*:1: the line is no JSON; without the line it can be read\n$/,
  );
});

Deno.test("wgconv tune keeps the lines that it does not know, and those of another tune beside it", async () => {
  using temporary = temporaryDirectory();
  const path = `${temporary.path}/tuning.jsonl`;
  const kept = [
    '{"schema":1,"kind":"environment","adapter":"GPU"}',
    "# measured at night",
    '{"schema":1,"kind":"tuning","op":"gemm","problem":"8 8 8"}',
    '{"schema":2,"kind":"tuning","op":"fwd"}',
    '{"schema":1,"kind":"case","cut o',
  ];
  await Deno.writeTextFile(path, kept.join("\n"));
  const problems = ["mb1ic4ih6oc4kh3", "mb1ic6ih6oc4kh3", "mb1ic8ih6oc4kh3"];
  const rivals = ["--algorithm", "direct", "--policy", "auto", "--runs", "1", "--output", path];
  const runs = await Promise.all(
    problems.map((problem) => wgconv(["tune", problem, ...rivals])),
  );
  runs.forEach(({ code, stderr }) => assert.equal(code, 0, stderr));
  const lines = (await Deno.readTextFile(path)).trimEnd().split("\n");
  assert.deepEqual(lines.slice(0, kept.length), kept);
  const winners = lines.slice(kept.length).map((line) => JSON.parse(line))
    .filter(({ winner }) => winner);
  assert.equal(winners.length, problems.length);
  assert.deepEqual([...Deno.readDirSync(temporary.path)].map(({ name }) => name), [
    "tuning.jsonl",
  ]);
});

Deno.test("wgconv tune measures WinRS with each of its pairs, which auto then takes", async () => {
  using temporary = temporaryDirectory();
  const path = `${temporary.path}/tuning.jsonl`;
  const run = ["--op", "bwd-filter", "--algorithm", "winrs", "--policy", "auto"];
  const tuned = await succeeds(["tune", PROBLEM, ...run, "--runs", "3", "--output", path]);
  const records = (await Deno.readTextFile(path)).trimEnd().split("\n").map((line) =>
    JSON.parse(line)
  );
  const paired = records.filter(({ pair }) => pair !== undefined);
  assert.ok(paired.length > 1, tuned.stdout);
  assert.ok(paired.every(({ algorithm, verdict }) => algorithm === "winrs" && verdict === "pass"));
  const last = paired.at(-1);
  const lines = records.map((record) => JSON.stringify({ ...record, winner: record === last }));
  await Deno.writeTextFile(path, lines.join("\n"));
  const auto = await wgconvHere(
    ["conv", "--problem", PROBLEM, "--op", "bwd-filter", "--tuning", path, "--json"],
  );
  assert.equal(JSON.parse(auto.stdout).kernel, last.kernel, auto.stderr);
});

Deno.test("wgconv tune measures WinRS with other numbers of segments, which auto then takes", async () => {
  using temporary = temporaryDirectory();
  const env = { XDG_CACHE_HOME: temporary.path };
  const path = `${temporary.path}/wgconv/tuning.jsonl`;
  const problem = "mb4ic8ih16oc8kh3sh2ph1";
  const run = ["--op", "bwd-filter", "--algorithm", "winrs", "--policy", "auto"];
  const tuned = await wgconv(["tune", problem, ...run, "--runs", "3"], { env });
  assert.equal(tuned.code, 0, tuned.stderr);
  const records = (await Deno.readTextFile(path)).trimEnd().split("\n").map((line) =>
    JSON.parse(line)
  );
  const counted = records.filter(({ segments }) => segments !== undefined);
  assert.ok(counted.length > 0, tuned.stdout);
  assert.ok(counted.every(({ algorithm, verdict }) => algorithm === "winrs" && verdict === "pass"));
  const winner = counted.at(-1);
  const lines = records.map((record) => JSON.stringify({ ...record, winner: record === winner }));
  await Deno.writeTextFile(path, lines.join("\n"));
  const plan = async (...args: string[]) => {
    const asked = ["plan", "--problem", problem, "--op", "bwd-filter", "--device", "gpu"];
    const { code, stdout, stderr } = await wgconv([...asked, ...args], { env });
    assert.equal(code, 0, stderr);
    return stdout;
  };
  const named = ["--algorithm", "winrs", "--segments"];
  const counts = (text: string) => /^note +segments of the gradient.*$/m.exec(text)?.[0];
  const auto = await plan();
  assert.match(auto, /measured to be the fastest on this device/);
  assert.equal(counts(auto), counts(await plan(...named, `${winner.segments}`)));
  assert.equal(await plan("--segments", "auto", "--tuning", path), auto);
  assert.doesNotMatch(await plan("--tuning", "none"), /measured to be/);
  const model = await plan(...named, "auto");
  assert.notEqual(counts(auto), counts(model));
  const conv = await wgconv(
    ["conv", "--problem", problem, "--op", "bwd-filter", "--segments", "auto", "--json"],
    { env },
  );
  assert.equal(JSON.parse(conv.stdout).kernel, winner.kernel, conv.stderr);
});

Deno.test("wgconv tune refuses to run on nothing", async () => {
  await refuses(
    ["tune"],
    /^wgconv: Cannot tune: no problem, give descriptors, --suite or --model\n$/,
  );
  await refuses(
    ["conv", "--problem", PROBLEM, "--tuning", "no/such"],
    /^wgconv: Cannot read no\/such: there is no such file\n$/,
  );
});
