import assert from "#assert";
import { succeeds, wgconvHere } from "./support/in_process.ts";
import { onnxModel, type TestGraph } from "./support/onnx_model.ts";
import { inFolder } from "./cli.ts";

const GRAPH: TestGraph = {
  inputs: { x: ["N", 3, 8, 8] },
  weights: { w: [4, 3, 3, 3], v: [4, 4, 3, 3], f: [4, 10] },
  nodes: [
    { op: "Conv", inputs: ["x", "w"], output: "a", name: "stem" },
    { op: "Conv", inputs: ["b", "v"], output: "c", attributes: { pads: [1, 1, 1, 1] } },
    { op: "Conv", inputs: ["b", "v"], output: "d", attributes: { pads: [1, 1, 1, 1] } },
    { op: "MatMul", inputs: ["g", "f"], output: "head" },
    { op: "Odd", inputs: ["head"], output: "e", domain: "my.own" },
  ],
  values: { b: ["N", 4, 6, 6], g: ["N", 4] },
  outputs: ["e"],
};

Deno.test("a model's layers are a suite that bench, plan and tune take, as the model itself", async () => {
  await inFolder(async (folder) => {
    const path = `${folder}/small_net`;
    const [model, suite] = [`${path}.onnx`, `${path}.txt`];
    await Deno.writeFile(model, onnxModel(GRAPH));
    const listed = await wgconvHere(`layers ${model} --batch 2`);
    assert.equal(
      listed.stdout,
      `# Layers of small_net: 4 layers of 3 sizes
mb2ic3ih8oc4oh6kh3n"small-net_stem"
# c, d
mb2ic4ih6oc4oh6kh3ph1n"small-net_c*2"
2 10 4 n"small-net_head"
`,
    );
    assert.match(listed.stderr, /^wgconv: .*: not listed: e: Odd is of the domain my\.own\n$/);
    await Deno.writeTextFile(suite, listed.stdout);
    const measure = "--device cpu --runs 1 --fill-ms 0 --json";
    const problems = async (args: string) => {
      const { stdout } = await succeeds(`bench ${args} ${measure}`);
      return stdout.trim().split("\n").slice(1).map((line) => JSON.parse(line))
        .map(({ problem, op, algorithm }) => [problem, op, algorithm].join(" "));
    };
    const ran = [
      'mb2ic3ih8oc4oh6kh3n"small-net_stem" fwd reference',
      'mb2ic4ih6oc4oh6kh3ph1n"small-net_c*2" fwd reference',
      '2 10 4 n"small-net_head" gemm reference',
    ];
    assert.deepEqual(await problems(`--suite ${suite}`), ran);
    assert.deepEqual(await problems(`--model ${model} --batch 2`), ran);
    assert.deepEqual(await problems(`--suite ${suite} --match head`), ran.slice(2));
    const plan = await wgconvHere(`plan --model ${model} --training --json`);
    const rows = plan.stdout.trim().split("\n").map((line) => JSON.parse(line));
    assert.deepEqual(rows.map(({ op, count }) => `${op} ${count}`), [
      ...["fwd 1", "bwd-filter 1", "fwd 2", "bwd-data 2", "bwd-filter 2"],
      ...["gemm 1", "gemm 1", "gemm 1"],
    ]);
    assert.ok(rows.every(({ predicted_ms }) => predicted_ms > 0));
    const table = await wgconvHere(`plan --suite ${suite}`);
    assert.match(table.stderr, /unknown option '--suite'/);
  });
});

Deno.test("bench, report and compare say where a network's time goes", async () => {
  await inFolder(async (folder) => {
    const path = `${folder}/small_net`;
    const [model, records, trace, page] = [
      `${path}.onnx`,
      `${path}.jsonl`,
      `${path}.json`,
      `${path}.html`,
    ];
    await Deno.writeFile(model, onnxModel(GRAPH));
    const measure = "--device cpu --runs 1 --fill-ms 0";
    const ran = await wgconvHere(`bench --model ${model} ${measure} --jsonl ${records}`);
    assert.match(ran.stdout, /\nlayer +op +times +time +share /);
    assert.match(
      ran.stdout,
      /\nnetwork wgconv \(small-net, CPU .*\): \S+ [mu]s for 4 layers\n {2}/,
    );
    const report = (more: string) => wgconvHere(`report ${records} ${more}`);
    const table = await report(`--network --trace ${trace}`);
    assert.match(table.stdout, /\n(c +fwd +2|stem +fwd +1) /);
    assert.match(table.stdout, / {2}gemm: .*, 1 layer\n/);
    assert.equal(JSON.parse(await Deno.readTextFile(trace)).traceEvents.length, 2 + 4);
    assert.match((await report("--network --format markdown")).stdout, /\n- network wgconv/);
    const refused = await report("--network --format csv");
    assert.deepEqual([refused.code, refused.stdout], [2, ""]);
    assert.match(
      refused.stderr,
      /--network is a table or Markdown, not csv; the HTML page shows it/,
    );
    assert.equal((await report(`--output ${page}`)).code, 0);
    const html = await Deno.readTextFile(page);
    assert.match(html, /<h3>Time by layer, small-net, CPU \(FP64 reference\)<\/h3>/);
    assert.match(html, /<summary>network wgconv \(small-net, CPU .*\): /);
    const weighted = await wgconvHere(`compare ${records} ${records} --weighted`);
    assert.match(weighted.stdout, /total speed-up/);
    assert.match(weighted.stdout, /\nall +3 +1\.000 +1\.000 /);
  });
});

Deno.test("mistakes with models are answered by a sentence and exit 2", async () => {
  await inFolder(async (folder) => {
    const path = `${folder}/small_net`;
    const [model, weights, text] = [`${path}.onnx`, `${path}.pt`, `${path}.txt`];
    await Deno.writeFile(model, onnxModel(GRAPH));
    await Deno.writeTextFile(weights, "x");
    await Deno.writeTextFile(text, "1 2 3\n");
    const cases: [string, RegExp][] = [
      [`layers ${weights}`, /: \.pt is not read, export the model as ONNX, or use /],
      [`layers ${text}`, /: it is no \.onnx file and holds neither lines of ONEDNN_VERBOSE nor /],
      [`layers ${path}_.onnx`, /Cannot read .*small_net_\.onnx: there is no such file/],
      [`bench ${model}`, /is a model, did you mean --model /],
      ["bench --batch 2 mb1ic1ih3oc1kh3", /--training go with --model; a descriptor says/],
      [
        `layers ${model} --input-shape x`,
        /--input-shape x, expected a name and a value such as x=1x3x/,
      ],
      [
        `layers ${model} --input-shape x=1x3x8x8 --input-shape x=2x3x8x8`,
        /--input-shape names x twice, one must go/,
      ],
      [
        `layers ${model} --input-shape x=1x3x8x8 --input-shape y=1`,
        /there is no input y, there are x$/,
      ],
      [`plan --model ${model} --all`, /--model says the problems, --all must go$/],
      [`check --suite ${text}`, /ignored in suites: a product, which wgconv bench runs$/],
    ];
    for (const [args, message] of cases) {
      const { code, stdout, stderr } = await wgconvHere(args);
      assert.deepEqual([code, stdout, stderr.split("\n").length], [2, "", 2], args);
      assert.match(stderr.trimEnd(), message);
    }
  });
});
