/** The life of a calibration: measured, shown, used, left aside, damaged. */
import assert from "#assert";
import { join } from "node:path";
import { temporaryDirectory, wgconv } from "../cli.ts";

const PROBLEM = ["--problem", "mb1ic4ih8oc4kh3ph1"];

Deno.test("wgconv calibrate keeps a model that auto goes by, and says where", async () => {
  using temporary = temporaryDirectory();
  const cache = temporary.path;
  const mine = join(cache, "mine.json");
  const run = (...args: string[]) =>
    wgconv(args, { env: { XDG_CACHE_HOME: cache, LOCALAPPDATA: cache } });
  const { code, stdout, stderr } = await run("calibrate", "--output", mine);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^rates\.gathered +[\d.e-]+ +TFLOP\/s/m);
  const path = /^kept +(.*)$/m.exec(stdout)![1]!;
  assert.ok(stdout.includes(`\ncopy        ${mine}, for --device-model\n`), stdout);
  const kept = await Deno.readTextFile(path);
  assert.equal(await Deno.readTextFile(mine), kept);
  const { kind, model, device } = JSON.parse(kept);
  assert.deepEqual([kind, model.name], ["calibration", `${device}, calibrated`]);

  // What is kept is what auto predicts by.
  const algorithmOf = async (...more: string[]) => {
    const planned = await run("plan", ...PROBLEM, "--device", "gpu", "--json", ...more);
    assert.equal(planned.code, 0, planned.stderr);
    const { algorithm, rivals } = JSON.parse(planned.stdout);
    return { algorithm, ms: rivals[0].predicted_ms, note: planned.stderr };
  };
  const before = await algorithmOf();
  const slow = JSON.parse(
    JSON.stringify(model.rates),
    (_, rate) => typeof rate === "number" ? rate / 1e3 : rate,
  );
  const slower = { ...JSON.parse(kept), model: { ...model, rates: slow } };
  await Deno.writeTextFile(path, JSON.stringify(slower));
  assert.ok((await algorithmOf()).ms > before.ms);
  assert.equal((await algorithmOf("--device-model", mine)).ms, before.ms);
  const listed = await run("devices");
  assert.match(listed.stdout, /^ {2}calibrated \d{4}-\d\d-\d\d, .*\.json$/m);

  // Damaged, it costs one line.
  await Deno.writeTextFile(path, kept.slice(0, 100));
  assert.equal((await algorithmOf("--quiet")).note, "");
  const note =
    /^ignoring the calibration: Cannot read .*\.json: it is no calibration; run wgconv calibrate again\n$/;
  assert.match((await algorithmOf()).note, note);
  assert.match((await run("conv", "--problem", "mb1ic8ih8oc8kh3ph1", "--runs", "1")).stderr, note);
});

Deno.test("--adapter opens the adapter that devices lists under the index or name", async () => {
  const { stdout, stderr } = await wgconv(["devices", "--json"]);
  assert.equal(stderr, "");
  const { choices } = JSON.parse(stdout);
  const { index, adapter } = choices.at(-1);
  const shown = await wgconv(["devices", "--adapter", String(index)]);
  assert.match(shown.stdout, /^Adapters, for --adapter$/m);
  assert.ok(shown.stdout.includes(`\n${adapter}\n  backend `), shown.stdout);
  const ran = await wgconv(["conv", ...PROBLEM, "--adapter", adapter, "--check", "none"]);
  assert.equal(ran.code, 0, ran.stderr);
  assert.ok(ran.stdout.includes(`device      ${adapter} (wgpu)`), ran.stdout);
  const none = await wgconv(["conv", ...PROBLEM, "--adapter", "no such GPU"]);
  assert.equal(none.code, 3);
  assert.match(
    none.stderr,
    /^wgconv: Cannot choose adapter no such GPU: expected an index or a part of a name of 0: /,
  );
});
