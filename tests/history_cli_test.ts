import assert from "#assert";
import { caseLine, ENVIRONMENT, stream, timeOf } from "./support/test_records.ts";
import { temporaryDirectory } from "./cli.ts";
import { wgconvHere } from "./support/in_process.ts";

const run = (commit: string, day: number, ...cases: Record<string, unknown>[]) =>
  JSON.stringify({ ...ENVIRONMENT, tags: { commit }, date: `2026-01-0${day}T00:00:00Z` }) + "\n" +
  cases.map((changes) => `${caseLine(changes)}\n`).join("");

/** Runs `wgconv history` on a folder of made files. */
async function history(files: Record<string, string>, ...more: string[]) {
  using folder = temporaryDirectory();
  for (const [name, text] of Object.entries(files)) {
    Deno.writeTextFileSync(`${folder.path}/${name}`, text);
  }
  const page = `${folder.path}/page.html`;
  const args = more.map((arg) => arg === "PAGE" ? page : arg);
  const found = await wgconvHere(["history", folder.path, ...args]);
  const html = await Deno.readTextFile(page).catch(() => "");
  return { ...found, stderr: found.stderr.replaceAll(`${folder.path}/`, ""), html };
}

const SLOW = { time_ms: timeOf(1.3) };

Deno.test("wgconv history says which run regressed, and writes a page that loads nothing", async () => {
  const found = await history(
    {
      "a.jsonl": run("old", 1, {}),
      "b.jsonl": run("new", 2, SLOW),
      "c.jsonl": run("last", 3, SLOW),
    },
    ...["--output", "PAGE"],
  );
  assert.equal(found.code, 0, found.stderr);
  assert.match(found.stdout, /^new +2026-01-02 +1 +0 +0 +0/m);
  assert.match(found.stdout, /SLOWER by 30 % +new +1\.000 ms +1\.300 ms/);
  assert.match(found.html, /<a href="#case0">LayerN2<\/a>/);
  assert.match(found.html, /<span id="case0">/);
  assert.doesNotMatch(found.html, /<script|https?:(?!\/\/www\.w3\.org)/);
  const wide = await history(
    { "a.jsonl": run("old", 1, {}), "b.jsonl": run("new", 2, SLOW) },
    ...["--threshold", "40%"],
  );
  assert.match(wide.stdout, /^no case changed$/m);
});

Deno.test("wgconv history --json prints runs and changes", async () => {
  const files = { "a.jsonl": run("old", 1, {}), "b.jsonl": run("new", 2, SLOW) };
  const { code, stdout } = await history(files, "--json");
  assert.equal(code, 0);
  const { runs, cases, changes } = JSON.parse(stdout);
  assert.deepEqual([runs.length, cases, changes.length], [2, 1, 1]);
  const [{ kind, op, before, after, stands }] = changes;
  assert.deepEqual([kind, op, before.run, after.run, stands], [
    "SLOWER",
    "fwd",
    "old",
    "new",
    true,
  ]);
  assert.deepEqual([before.time_ms, after.time_ms], [1, 1.3]);
});

Deno.test("wgconv history tells damaged records from none", async () => {
  const damaged = run("new", 2, {}) + caseLine({}).slice(0, 50);
  const found = await history(
    { "a.jsonl": run("old", 1, {}), "b.jsonl": damaged },
    ...["--output", "PAGE"],
  );
  assert.equal(found.code, 0);
  assert.match(found.stderr, /^wgconv: Cannot read b\.jsonl:3: the last record is cut off/m);
  assert.match(found.stdout, /^2 runs of 1 case on TestGPU/);
  assert.match(found.html, /Left out/);
  for (
    const [text, said] of [["{}\n", "no record"], [caseLine({ time_ms: { median: 0 } }), "time_ms"]]
  ) {
    const wrong = await history({ "a.jsonl": run("old", 1, {}), "c.jsonl": text! });
    assert.equal(wrong.code, 2);
    assert.match(
      wrong.stderr,
      new RegExp(`^wgconv: Cannot read c\\.jsonl:1: ${said}.*left out$`, "m"),
    );
    assert.match(wrong.stdout, /^1 run of 1 case on TestGPU/);
  }
  const nothing = await history({ "a.jsonl": "nonsense" });
  assert.equal(nothing.code, 2);
  assert.match(nothing.stderr, /^wgconv: Cannot read a\.jsonl:1: /);
  assert.equal((await history({})).code, 2);
  assert.equal((await history({ "a.jsonl": stream() })).code, 2);
});

Deno.test("what records hold is text on the page of a history", async () => {
  const name = { problem: 'ic4ih8iw8oc4kh3ph1n"<img src=x>"', layout: "<b>" };
  const found = await history(
    { "a.jsonl": run("<i>", 1, name), "b.jsonl": run("<u>", 2, { ...name, ...SLOW }) },
    ...["--output", "PAGE"],
  );
  assert.equal(found.code, 0, found.stderr);
  assert.doesNotMatch(found.html, /<(img|b|i|u)>/);
  assert.match(found.html, /&lt;img src=x&gt;/);
});

Deno.test("bench --tag names a run, which is resumed under the same name alone", async () => {
  using folder = temporaryDirectory();
  const file = `${folder.path}/run.jsonl`;
  const bench = (...more: string[]) =>
    wgconvHere(["bench", "ic1ih4oc1kh1", "--device", "cpu", "--runs", "1", ...more]);
  assert.equal((await bench("--jsonl", file, "--tag", "commit=a", "--tag", "by=me")).code, 0);
  const { stdout } = await wgconvHere(["history", file, "--output", "-"]);
  assert.match(stdout, /<td>a<\/td>/);
  const other = await bench("--jsonl", file, "--resume", "--tag", "commit=b");
  assert.equal(other.code, 2);
  assert.match(other.stderr, /--tag commit is b, was a; --tag by is not given, was me/);
  for (const tags of [["commit"], ["=a"], ["a=1", "--tag", "a=2"]]) {
    const found = await bench("--tag", ...tags);
    assert.equal(found.code, 2);
    assert.match(found.stderr, /^wgconv: Cannot tag: --tag /);
  }
});
