import assert from "#assert";
import { temporaryDirectory } from "../cli.ts";
import { readNpy, writeNpy } from "../../src/npy/mod.ts";
import { fillTensor } from "../../src/tensor/fill.ts";
import { succeeds, wgconvHere } from "../support/in_process.ts";
import { Draw } from "../attack/draw.ts";
import { mutateBytes } from "../attack/mutate.ts";
import { onnxModel, type TestGraph, type TestNode } from "../support/onnx_model.ts";

const GRAPH: TestGraph = {
  inputs: { x: ["N", 4, 12, 12] },
  weights: { w: [8, 4, 3, 3], b: [8], v: [8, 2, 3, 3], u: [8, 4, 2, 2], f: [32, 64], c: [32] },
  indices: { sizes: [0, 4, -1] },
  nodes: [
    { op: "Conv", inputs: ["x", "w", "b"], output: "a", attributes: { pads: [1, 1, 1, 1] } },
    { op: "Relu", inputs: ["a"], output: "r" },
    { op: "Conv", inputs: ["r", "v"], output: "g", name: "deep/groups", attributes: { group: 4 } },
    { op: "ConvTranspose", inputs: ["g", "u"], output: "t", attributes: { strides: [2, 2] } },
    { op: "ConvTranspose", inputs: ["g", "u", "k"], output: "t2", attributes: { strides: [2, 2] } },
    { op: "Reshape", inputs: ["t", "sizes"], output: "s" },
    { op: "Transpose", inputs: ["s"], output: "st", attributes: { perm: [0, 2, 1] } },
    { op: "MatMul", inputs: ["s", "st"], output: "m" },
    { op: "Flatten", inputs: ["g"], output: "n", attributes: { axis: 2 } },
    { op: "Gemm", inputs: ["n", "h", "c"], output: "o", attributes: { transB: 1 } },
    { op: "Einsum", inputs: ["s", "m"], output: "e", attributes: { equation: "bcx,bcd->dbx" } },
  ],
  outputs: ["m", "o", "t2", "e"],
};
const graph: TestGraph = {
  ...GRAPH,
  weights: { ...GRAPH.weights, k: [4], h: [32, 100] },
};

Deno.test("a runtime's layers are written and pass; one that is wrong is named, exit 1", async () => {
  using temporary = temporaryDirectory();
  const folder = temporary.path;
  const [model, dump, x] = [`${folder}/net.onnx`, `${folder}/dump`, `${folder}/x.npy`];
  await Deno.writeFile(model, onnxModel(graph));
  await writeNpy(x, fillTensor("f32", [2, 4, 12, 12], "normal", 3));
  const args = ["layers", model, "--batch", "2", "--dump", dump, "--feed", `x=${x}`];
  const written = await wgconvHere(args);
  assert.deepEqual([written.code, written.stdout.split(";")[0]], [
    0,
    `${dump}/manifest.json: 7 of 7 layers`,
  ]);
  assert.match((await wgconvHere(args)).stderr, /Cannot write into .*dump: it has /);
  assert.deepEqual(await readNpy(`${dump}/001_a.npz:input`), await readNpy(x));
  const verify = () => wgconvHere(["verify", "--manifest", `${dump}/manifest.json`]);
  const right = await verify();
  assert.equal(right.code, 0, right.stdout + right.stderr);
  assert.match(right.stdout, /^pass: layer 1 of 7, a: f32/);
  assert.match(right.stdout, /\n7 of 7 layers of net\.onnx by onnxruntime \S+ cpu pass\n$/);
  const own = await succeeds(["conv", "--manifest", `${dump}/manifest.json`, "--json"]);
  const records = own.stdout.trim().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(records.map(({ op, verdict }) => [op, verdict].join(" ")), [
    ...["fwd pass", "fwd pass", "bwd-data pass", "bwd-data pass"],
    ...["gemm pass", "gemm pass", "gemm pass"],
  ]);
  const wrong = `${dump}/002_deep-groups.npz:result`;
  const result = await readNpy(wrong);
  (result.data as Float32Array)[17]! *= 1.01;
  await writeNpy(wrong, result);
  const found = await verify();
  assert.equal(found.code, 1);
  assert.match(found.stdout, /\nfail: layer 2 of 7, deep\/groups: /);
  assert.match(found.stdout, /\n6 of 7 layers of net\.onnx /);
  const cases: [string[], RegExp][] = [
    [["layers", model, "--feed", `x=${x}`], /only --dump runs the model, --feed must go/],
    [["layers", model, "--runtime", "cpu"], /only --dump runs the model, --runtime must go/],
    [["layers", x, "--dump", dump], /onnxruntime runs \.onnx files alone/],
    [[...args, "--feed", `y=${x}`, "--force"], /there is no input y, there are x$/],
    [
      ["layers", model, "--dump", `${dump}2`, "--feed", `x=${x}`],
      /is f32 \[1, 4, 12, 12\], it is/,
    ],
    [["verify", "--manifest", x], /it is no manifest of wgconv layers --dump|no text/],
    [["verify", "--manifest", `${dump}/manifest.json`, "--output", x], /--output must go$/],
    [["conv", "--manifest", `${dump}/manifest.json`, "--input", x], /--input must go$/],
  ];
  for (const [words, message] of cases) {
    const { code, stderr } = await wgconvHere(words);
    assert.equal(code, 2, stderr);
    assert.match(stderr.trimEnd(), message);
  }
});

/** A graph within a node. */
function inner(nodes: readonly TestNode[], more: Partial<TestGraph> = {}): TestGraph {
  return { nodes, inputs: {}, weights: {}, outputs: nodes.map(({ output }) => output), ...more };
}

const BRANCHES: TestGraph = {
  inputs: { x: ["N", 4, 6, 6], flag: [] },
  types: { flag: 9 },
  weights: { w: [8, 4, 1, 1], v: [8, 4, 1, 1], f: [6, 6] },
  indices: { times: [3], sizes: [2, 144] },
  truths: { on: true },
  nodes: [
    { op: "Not", inputs: ["flag"], output: "other" },
    {
      op: "If",
      inputs: ["other"],
      output: "y",
      attributes: {
        then_branch: inner([{ op: "Conv", inputs: ["x", "w"], output: "t", name: "then" }]),
        else_branch: inner([{ op: "Conv", inputs: ["x", "v"], output: "t", name: "else" }]),
      },
    },
    {
      op: "Loop",
      inputs: ["times", "on", "x"],
      output: "l",
      attributes: {
        body: inner([
          { op: "Identity", inputs: ["go"], output: "again" },
          { op: "MatMul", inputs: ["part", "f"], output: "p", name: "looped" },
        ], { inputs: { i: [], go: [], part: ["N", 4, 6, 6] }, types: { i: 7, go: 9 } }),
      },
    },
    {
      op: "Scan",
      inputs: ["x", "x"],
      output: "s",
      attributes: {
        num_scan_inputs: 1,
        scan_input_axes: [1],
        body: inner([
          { op: "MatMul", inputs: ["part", "f"], output: "q", name: "scanned" },
          { op: "Identity", inputs: ["sum"], output: "more" },
        ], {
          inputs: { sum: ["N", 4, 6, 6], part: ["N", 6, 6] },
          outputs: ["more"],
        }),
      },
    },
  ],
  outputs: ["y", "l", "s"],
};

Deno.test("the branch that runs and the first iteration of loops are written", async () => {
  using temporary = temporaryDirectory();
  const folder = temporary.path;
  const [model, dump] = [`${folder}/branches.onnx`, `${folder}/dump`];
  await Deno.writeFile(model, onnxModel(BRANCHES));
  const listed = await wgconvHere(["layers", model]);
  assert.match(listed.stdout, /4 layers of 3 sizes/);
  const written = await succeeds(["layers", model, "--dump", dump, "--batch", "2"]);
  assert.match(written.stderr, /: If y: its condition is false, the else branch is listed/);
  const right = await succeeds(["verify", "--manifest", `${dump}/manifest.json`]);
  assert.deepEqual(
    [...right.stdout.matchAll(/^pass: layer \d of 3, (\w+)/gm)].map(([, name]) => name),
    ["else", "looped", "scanned"],
  );
});

const BYTES: TestGraph = {
  inputs: { x: ["N", 4, 6, 6] },
  weights: { w: [8, 4, 3, 3], u: [8, 4, 1, 1], uz: [], m: [6, 9], mz: [9] },
  types: { w: 3, u: 2, uz: 2, m: 3, mz: 3 },
  indices: { rows: [-1, 6] },
  nodes: [
    { op: "DynamicQuantizeLinear", inputs: ["x"], output: "q", others: ["s", "z"] },
    { op: "ConvInteger", inputs: ["q", "w", "z"], output: "c", attributes: { pads: [1, 1, 1, 1] } },
    { op: "QLinearConv", inputs: ["q", "s", "z", "u", "s", "uz", "s", "z"], output: "l" },
    { op: "Reshape", inputs: ["q", "rows"], output: "r" },
    { op: "MatMulInteger", inputs: ["r", "m", "z", "mz"], output: "p" },
  ],
  outputs: ["c", "l", "p"],
};

Deno.test("layers of int8 are written with their zero points and scales, and equal", async () => {
  using temporary = temporaryDirectory();
  const folder = temporary.path;
  const [model, dump] = [`${folder}/bytes.onnx`, `${folder}/dump`];
  await Deno.writeFile(model, onnxModel(BYTES));
  const written = await wgconvHere(["layers", model, "--dump", dump, "--batch", "2"]);
  assert.match(written.stdout, /: 3 of 3 layers;/, written.stderr);
  const right = await wgconvHere(["verify", "--manifest", `${dump}/manifest.json`]);
  assert.match(right.stdout, /\n3 of 3 layers of bytes.onnx by onnxruntime/, right.stderr);
  const own = await wgconvHere(["conv", "--manifest", `${dump}/manifest.json`, "--json"]);
  const records = own.stdout.trim().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(
    records.map(({ dtype, out_dtype, verdict }) => [dtype, out_dtype, verdict].join(" ")),
    ["i8  pass", "i8 u8 pass", "i8  pass"],
  );
});

Deno.test("onnxruntime's WebGPU provider runs a model, or says that there is no GPU for it", async () => {
  using temporary = temporaryDirectory();
  const folder = temporary.path;
  const [model, dump] = [`${folder}/branches.onnx`, `${folder}/dump`];
  await Deno.writeFile(model, onnxModel(BRANCHES));
  const args = ["layers", model, "--dump", dump, "--runtime", "webgpu"];
  const { code, stderr } = await wgconvHere(args);
  if (code === 3) {
    assert.match(stderr, /onnxruntime's WebGPU provider takes no GPU driver of this machine$/m);
    return;
  }
  assert.equal(code, 0, stderr);
  const right = await wgconvHere(["verify", "--manifest", `${dump}/manifest.json`]);
  assert.match(right.stdout, /\n3 of 3 layers of branches.onnx by onnxruntime \S+ webgpu pass/);
});

Deno.test("damaged models are dumped, or refused by a sentence", async () => {
  using temporary = temporaryDirectory();
  const folder = temporary.path;
  const [model, dump] = [`${folder}/damaged.onnx`, `${folder}/dump`];
  for (const [at, graph] of [BRANCHES, BYTES].entries()) {
    const bytes = onnxModel(graph);
    for (let seed = 1; seed <= 250; seed++) {
      await Deno.writeFile(model, mutateBytes(new Draw(1, "models", seed), bytes, bytes));
      const { code, stderr } = await wgconvHere(["layers", model, "--dump", dump, "--force"]);
      assert.ok(code === 0 || code === 2, `graph ${at}, seed ${seed}: ${code}: ${stderr}`);
      assert.ok(code === 0 || /^wgconv: Cannot /m.test(stderr), `seed ${seed}: ${stderr}`);
    }
  }
});
