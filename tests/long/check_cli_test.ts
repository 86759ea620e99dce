import assert from "#assert";
import { timeRecord } from "../../src/run/timing.ts";
import { readNpz } from "../../src/npy/mod.ts";
import { temporaryDirectory, wgconv } from "../cli.ts";
import { CASE, faulty, FEW } from "../support/faulty_check.ts";

Deno.test("wgconv check holds the built-in suite against the built-in baseline", async () => {
  const args = ["--algorithm", "direct,implicit-gemm", "--match", "odd_channels|groups_4"];
  const { code, stdout, stderr } = await wgconv(["check", ...args]);
  assert.equal(code, 0, stdout + stderr);
  assert.match(stdout, /\n24 cases on .*: 24 passed\n$/);
  // A line a case, where no terminal shows how far it is.
  const lines = stdout.split("\n").filter((line) =>
    /^pass: (fwd|bwd-data|bwd-filter) n/.test(line)
  );
  assert.equal(lines.length, 24);
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
    assert.match(stdout, /^3 cases on .*: 2 passed, 1 failed\n$/m);
    const repro = /repeat: wgconv conv --problem '(.*)' --op fwd --algorithm implicit-gemm/.exec(
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
