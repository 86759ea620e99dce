import assert from "#assert";
import { stream, timeOf } from "../support/test_records.ts";
import { temporaryDirectory, wgconv } from "../cli.ts";

type Changes = Record<string, unknown>;

const PEER: Changes = { provider: "cudnn", algorithm: undefined, verdict: undefined };
const LAYERS = [2, 3].flatMap((layer) =>
  [32, 64].map((batch) => `mb${batch}ic4ih8oc${4 * layer}kh3ph1n"Conv${layer}N${batch}"`)
);
const BOTH_OPS = ["fwd", "bwd-filter"].flatMap((op) =>
  LAYERS.flatMap((problem, i) => [
    { problem, op, time_ms: timeOf(i + 1), multiplications: 1e5 },
    { problem, op, time_ms: timeOf(i + 2), algorithm: "direct", workspace_bytes: 3 << 20 },
    { ...PEER, problem, op, time_ms: timeOf(i + 1.5) },
  ])
);

/** Runs `wgconv report` on made records. */
async function report(cases: Changes[], ...more: string[]) {
  using folder = temporaryDirectory();
  const file = `${folder.path}/run.jsonl`;
  Deno.writeTextFileSync(file, stream(...cases));
  const found = await wgconv(["report", file, ...more]);
  return { ...found, stderr: found.stderr.replaceAll(`${folder.path}/`, "") };
}

Deno.test("wgconv report prints a table, and Markdown", async () => {
  const table = await report(BOTH_OPS, "--only", "fwd,Conv2");
  assert.equal(table.code, 0, table.stderr);
  const lines = table.stdout.trimEnd().split("\n");
  assert.equal(lines.length, 7);
  assert.match(lines[0]!, /^problem +op +dtype +layout +made by +kernel +time +GFLOP\/s/);
  assert.match(lines[1]!, /^Conv2N32 +fwd +f32 +nchw +wgconv implicit-gemm +kernel_a +1\.000 ms/);
  assert.match(lines[3]!, /^Conv2N32 +fwd +f32 +nchw +cudnn +kernel_a .* -$/);
  const markdown = await report(BOTH_OPS.slice(0, 1), "--format", "markdown");
  assert.match(markdown.stdout, /^\| problem .*\n\| -+ .*\n\| Conv2N32 \| fwd \| f32 +\|/);
});

Deno.test("wgconv report prints CSV and TSV with every figure, quoted where they must be", async () => {
  const failed = { verdict: "fail", message: 'channel 3, "bad"\nand\tmore' };
  const csv = await report([failed], "--format", "csv");
  assert.equal(csv.code, 0, csv.stderr);
  const [heading, first] = csv.stdout.split("\r\n");
  assert.match(heading!, /^provider,device,name,problem,op,dtype,.*,mare,.*,verdict,message$/);
  assert.match(first!, /^wgconv,TestGPU,LayerN2,"mb2ic4ih8oc4kh3ph1n""LayerN2""",fwd,f32,,,nchw,/);
  assert.match(csv.stdout, /,fail,"channel 3, ""bad""\nand\tmore"\r\n$/);
  const tsv = await report([failed], "--format", "tsv");
  const [titles, cells] = tsv.stdout.trimEnd().split("\n").map((line) => line.split("\t"));
  assert.equal(titles!.length, cells!.length);
  assert.equal(cells![titles!.indexOf("accumulation_length")], "36");
  assert.equal(cells!.at(-1), 'channel 3, "bad" and more');
});

Deno.test("wgconv report makes one page: an SVG a chart, nothing from elsewhere", async () => {
  using folder = temporaryDirectory();
  const page = `${folder.path}/report.html`;
  const evil = "<script>alert('&')</script>";
  const wrong = { problem: LAYERS[0], algorithm: evil, verdict: "fail", message: evil };
  const made = await report(
    [...BOTH_OPS, wrong],
    ...["--format", "html", "--output", page, "--title", `Title ${evil}`],
    ...["--peak-tflops", "0.0001", "--bandwidth", "2"],
  );
  assert.equal(made.code, 0, made.stderr);
  const html = Deno.readTextFileSync(page);
  const titles = [...html.matchAll(/<h3>(.*?)<\/h3>/g)].map(([, title]) => title);
  assert.deepEqual(titles, [
    "wgconv over cudnn, fwd, f32",
    "wgconv over cudnn, bwd-filter, f32",
    "Roofline, f32",
    "MARE, f32",
    "relative L2 error, f32",
    "bound ratio over its limit, f32",
  ]);
  assert.equal(html.match(/<svg /g)!.length, titles.length);
  assert.equal(html.match(/<\/svg>/g)!.length, titles.length);
  // What a page could load or run.
  assert.doesNotMatch(html, /<(script|link|img|iframe|object|image|use)\b/i);
  assert.doesNotMatch(html, /\b(src|href|xlink:href)\s*=|@import|\son\w+\s*=|url\((?!#)/i);
  const addresses = [...html.matchAll(/https?:[^"'\s<]+/g)].map(([address]) => address);
  assert.deepEqual(new Set(addresses), new Set(["http://www.w3.org/2000/svg"]));

  assert.match(html, /&lt;script&gt;alert/);
  const ids = [...html.matchAll(/\bid="([^"]+)"/g)].map(([, id]) => id);
  assert.equal(ids.length, new Set(ids).size);
  for (const id of ["failures", "speed-up", "roofline", "how-it-was-measured", "every-case"]) {
    assert.ok(ids.includes(id), id);
  }
  assert.match(html, /<strong>1\.25 x, 0 of 8 slower<\/strong>/);
  // Ours is half again as fast on Conv2N32.
  assert.match(html, />1\.50<\/text>/);
});

Deno.test("wgconv report compares with the baseline that is asked for", async () => {
  const html = await report(BOTH_OPS, "--format", "html", "--baseline", "wgconv", "--only", "fwd");
  assert.match(html.stdout, /<h3>cudnn over wgconv, fwd, f32<\/h3>/);
  const alone = await report([{}], "--format", "html");
  assert.match(alone.stdout, /<p class="headline"><strong>[\d.]+ GFLOP\/s<\/strong>/);
  assert.doesNotMatch(alone.stdout, /Speed-up/);
  const none = await report(BOTH_OPS, "--format", "html", "--baseline", "miopen");
  assert.equal(none.code, 2);
  assert.equal(none.stderr, 'wgconv: Cannot report: no record has the provider "miopen"\n');
});

Deno.test("wgconv report shows speed against error where there are several precisions", async () => {
  const [problem, other] = LAYERS;
  const ours = [{ problem }, { problem, dtype: "f16", accuracy: { rel_l2: 2e-4 } }];
  const theirs = { ...PEER, problem, dtype: "tf32", accuracy: { rel_l2: 3e-4 } };
  const unchecked = { ...theirs, problem: other, dtype: "f16", accuracy: null };
  const { stdout } = await report([...ours, theirs, unchecked], "--format", "html");
  assert.match(stdout, /<h2 id="speed-against-error">/);
  assert.match(stdout, /<summary>Throughput and relative L2 error, convolutions, uniform01 data</);
  assert.match(stdout, /Not shown, their records have no errors: cudnn f16\./);
  assert.match(stdout, /<th class="n">wgconv f16<\/th><th class="n">cudnn tf32<\/th>/);
  assert.match(
    stdout,
    /<td>Conv2N32 fwd<\/td>(<td class="n">[\d.]+ GFLOP\/s, \d\.00e-\d<\/td>){3}/,
  );
  const alone = await report(ours.slice(0, 1), "--format", "html");
  assert.doesNotMatch(alone.stdout, /speed-against-error|<ul class="key"><\/ul>/);
});

Deno.test("wgconv report refuses what it cannot read or find", async () => {
  assert.match((await report([])).stderr, /^wgconv: Cannot report: no record of a case in run/);
  const word = await report([{}], "--only", "sideways");
  assert.equal(word.code, 2);
  assert.equal(word.stderr, 'wgconv: Cannot report: no case has "sideways"\n');
  using folder = temporaryDirectory();
  assert.equal((await wgconv(["report", folder.path])).code, 2);
  Deno.writeTextFileSync(`${folder.path}/a.jsonl`, stream({}).slice(0, -9));
  const cut = await wgconv(["report", folder.path]);
  assert.equal(cut.code, 2);
  assert.match(cut.stderr, /a\.jsonl:2: the last record is cut off/);
});

Deno.test("wgconv report puts shards together and says what gave way", async () => {
  const merged = await report([{ time_ms: timeOf(5) }, {}]);
  assert.equal(merged.stdout.trimEnd().split("\n").length, 2);
  assert.match(merged.stdout, /1\.000 ms/);
  assert.match(merged.stderr, /^replaced by later records of the same case: 1 record$/m);
});
