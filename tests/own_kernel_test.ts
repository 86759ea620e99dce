import assert from "#assert";
import fc from "fast-check";
import { join } from "node:path";
import { ROOT, temporaryDirectory } from "./cli.ts";
import { succeeds, wgconvHere } from "./support/in_process.ts";

const EXAMPLES = join(ROOT, "examples/kernels");
const PROBLEM = "mb2ic5ih9iw11oc33kh3kw2ph1sh2dw1";

/** A kernel's JSON beside the WGSL of the examples, with fields changed. */
const NAIVE = JSON.parse(Deno.readTextFileSync(join(EXAMPLES, "naive.json")));
const WGSL = Deno.readTextFileSync(join(EXAMPLES, "naive.wgsl"));

/** Runs a command with a kernel of these fields and this WGSL. */
async function withKernel(
  fields: unknown,
  wgsl = WGSL,
  args: readonly string[] = ["conv", "--problem", PROBLEM, "--runs", "1"],
) {
  using temporary = temporaryDirectory();
  const path = join(temporary.path, "mine.json");
  await Deno.writeTextFile(path, typeof fields === "string" ? fields : JSON.stringify(fields));
  await Deno.writeTextFile(join(temporary.path, "naive.wgsl"), wgsl);
  const { code, stdout, stderr } = await wgconvHere([...args, "--kernel", path]);
  return { code, stdout, stderr: stderr.replaceAll(path, "mine.json") };
}

Deno.test("the examples' kernels are run, timed and checked, each beside auto", async () => {
  const kernels = ["naive", "tiled"].flatMap((name) => [
    "--kernel",
    join(EXAMPLES, `${name}.json`),
  ]);
  const args = ["bench", PROBLEM, "--check", "full", "--runs", "1", "--fill-ms", "0", "--json"];
  const { stdout } = await succeeds([...args, ...kernels]);
  const cases = stdout.trim().split("\n").map((line) => JSON.parse(line))
    .filter(({ kind }) => kind === "case");
  assert.deepEqual(
    cases.map(({ requested, algorithm, verdict }) => [requested ?? algorithm, verdict]),
    [
      ["auto", "pass"],
      ["naive", "pass"],
      ["tiled", "pass"],
    ],
  );
  const product = ["gemm", "--size", "17,33,20", "--batch", "2", "--runs", "1"];
  const made = await succeeds([...product, "--kernel", join(EXAMPLES, "product.json")]);
  assert.match(made.stdout, /^kernel +product$/m);
  assert.match(made.stdout, /^verdict +pass$/m);
});

Deno.test("a kernel of several passes has buffers, entries, values and f16 of its own", async () => {
  const { code, stdout, stderr } = await withKernel(
    {
      ...NAIVE,
      let: { size: "mb*oc*oh*ow" },
      buffers: { twice: "4 * size" },
      passes: [
        { ...NAIVE.passes[0], bindings: ["input", "filter", "twice"] },
        {
          wgsl: "naive.wgsl",
          entry: "halve",
          workgroups: ["ceil(size / 64)"],
          bindings: ["twice", "input", "output"],
          overrides: { SIZE: "size" },
        },
      ],
    },
    WGSL.replace("= sum;", "= 2 * sum;") + `
override SIZE: u32 = 1;
@compute @workgroup_size(64)
fn halve(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < SIZE) { y[id.x] = x[id.x] / 2; }
}`,
  );
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^verdict +pass$/m);
});

Deno.test("a kernel of bf16 finds two values in each word", async () => {
  const brain = WGSL.replaceAll("read> x: array<f32>", "read> x: array<u32>")
    .replace("read> w: array<f32>", "read> w: array<u32>")
    .replace("y: array<f32>", "y: array<atomic<u32>>")
    .replace("x[pixel] * w[((k", "value(x[pixel / 2u], pixel) * weight(((k")
    .replace("* KW + s]", "* KW + s)")
    .replace("] = sum;", " + 0u;\n  store(at, sum);")
    .replace("y[(n * OC", "let at = (n * OC") + `
fn value(word: u32, i: u32) -> f32 {
  return bitcast<f32>((word << (16u - i % 2u * 16u)) & 0xffff0000u);
}
fn weight(i: u32) -> f32 { return value(w[i / 2u], i); }
fn store(i: u32, sum: f32) {
  let bits = bitcast<u32>(sum);
  let rounded = (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
  atomicAnd(&y[i / 2u], 0xffff0000u >> (i % 2u * 16u));
  atomicOr(&y[i / 2u], rounded << (i % 2u * 16u));
}`;
  const kernel = { ...NAIVE, dtype: "bf16" };
  const args = ["conv", "--problem", PROBLEM, "--runs", "1", "--dtype", "bf16"];
  const { code, stdout, stderr } = await withKernel(kernel, brain, args);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^verdict +pass$/m);
  const fuzzed = await withKernel(kernel, brain, [
    "verify",
    ...["--ranges", "groups=1 axes=2 size=1:12 channels=1:9", "--random", "4"],
  ]);
  assert.match(fuzzed.stdout, /^4 cases of naive: 4 passed$/m, fuzzed.stderr);
});

Deno.test("a wrong kernel fails the check", async () => {
  const { code, stdout } = await withKernel(
    NAIVE,
    WGSL.replace("r = 0u; r < KH", "r = 1u; r < KH"),
  );
  assert.equal(code, 1);
  assert.match(stdout, /^verdict +fail/m);
});

Deno.test("verify --kernel fuzzes a kernel: a right one passes, a fault is named", async () => {
  const ranges = ["--ranges", "groups=1 axes=2 size=1:12 channels=1:9", "--random", "6"];
  const right = await withKernel(NAIVE, WGSL, ["verify", ...ranges]);
  assert.equal(right.code, 0, right.stdout + right.stderr);
  assert.match(right.stdout, /^6 cases of naive: 6 passed$/m);
  const product = join(EXAMPLES, "product.json");
  const multiplied = await wgconvHere(["verify", "gemm", "--kernel", product, "--random", "4"]);
  assert.match(multiplied.stdout, /^4 cases of product: 4 passed$/m);
  const wrong = await withKernel(
    NAIVE,
    WGSL.replace(
      "w[((k * IC + c) * KH + r) * KW + s]",
      "w[((k * IC + c) * KH + KH - 1 - r) * KW + KW - 1 - s]",
    ),
    [
      ...["verify", "--problem", "mb1ic3ih6oc2kh3ph1", "--data", "normal"],
    ],
  );
  assert.equal(wrong.code, 1, wrong.stdout);
  assert.match(wrong.stdout, /the filter flipped/);
  assert.match(
    wrong.stdout,
    /repeat: wgconv verify --kernel \S+mine.json --problem mb1ic3ih6oc2oh6kh3ph1 --data/,
  );
  // A program computes where it likes, and a kernel in one command.
  for (
    const [args, said] of [
      [["verify", "--op", "fwd"], /the kernel's file says what it computes, --op must go\n$/],
      [["verify", "gemm"], /it convolves, wgconv verify takes it\n$/],
      [["verify", "--worker", "true"], /--worker and --kernel are too many, expected one\n$/],
    ] as const
  ) {
    const { code, stderr } = await withKernel(NAIVE, WGSL, args);
    assert.equal(code, 2);
    assert.match(stderr, said);
  }
});

Deno.test("what does not go is said in one sentence", async () => {
  const [pass] = NAIVE.passes;
  const refused = async (
    fields: unknown,
    expected: RegExp,
    { wgsl = WGSL, code = 2, args }: { wgsl?: string; code?: number; args?: string[] } = {},
  ) => {
    const got = await withKernel(fields, wgsl, args);
    assert.match(got.stderr, expected);
    assert.equal(got.code, code, got.stderr);
  };
  const changed = (fields: object) => ({ ...NAIVE, ...fields });
  const passOf = (fields: object) => changed({ passes: [{ ...pass, ...fields }] });
  await refused("{", /Cannot read mine\.json: line 1 ends in the middle/);
  await refused("[]", /mine\.json: name is missing/);
  await refused(changed({ speed: 1 }), /a kernel has no speed/);
  await refused(changed({ op: "up" }), /op is "up", expected /);
  await refused(changed({ name: "direct" }), /there is an algorithm of that name/);
  await refused(changed({ name: "a b" }), /name is "a b", expected a name of letters/);
  await refused(changed({ passes: [] }), /passes has 0 entries, expected at least 1/);
  await refused(changed({ let: { ic: 3 } }), /let\.ic is a size's name/);
  await refused(changed({ buffers: { input: 3 } }), /buffers\.input is a tensor's name/);
  await refused(changed({ when: "ic >" }), /when "ic >": expected a number or a name/);
  await refused(changed({ when: "ic == 6" }), /does not support this problem: it asks for ic == 6/);
  await refused(changed({ layout: "nhwc" }), /its layout is nhwc, --layout nhwc asks for that/);
  await refused(changed({ activation: "relu" }), /its activation is relu/);
  await refused(changed({ op: "bwd-data" }), /its op is bwd-data/);
  await refused(
    changed({ op: "gemm", when: "m > 0" }),
    /passes\.0\.bindings has input, expected a, b/,
  );
  await refused(passOf({ bindings: ["input", "filter"] }), /has 2, naive\.wgsl declares 3/);
  await refused(
    passOf({ bindings: ["input", "x", "output"] }),
    /bindings has x, expected input, f/,
  );
  await refused(passOf({ workgroups: ["oh / 64", 1] }), /workgroups x is 0\.\d+, expected a whole/);
  await refused(passOf({ workgroups: ["1 / 0"] }), /workgroups x is Infinity/);
  await refused(passOf({ workgroups: [65536] }), /needs 65536 workgroups along one axis/, {
    code: 3,
  });
  await refused(passOf({ overrides: { IC: "0 / 0" } }), /override IC is NaN/);
  await refused(passOf({ wgsl: "none.wgsl" }), /none\.wgsl/);
  await refused(passOf({ entry: "other" }), /naive\.wgsl has no fn other/);
  await refused(NAIVE, /declares binding 0 a uniform/, {
    wgsl: WGSL.replace("<storage, read> x: array<f32>", "<uniform> x: vec4f"),
  });
  await refused(NAIVE, /declares no binding 1/, { wgsl: WGSL.replace("binding(1)", "binding(3)") });
  await refused(NAIVE, /Cannot compile naive\.wgsl, line 23, column 18: [^\n]*accessor/, {
    wgsl: WGSL.replace("let place = id.x;", "let place = id.q;"),
  });
  await refused(passOf({ overrides: {} }), /Cannot compile naive\.wgsl: [^\n]*/);
  await refused(NAIVE, /Cannot compile naive\.wgsl, line 21, column/, {
    wgsl: WGSL.replace("@workgroup_size(64)", "@workgroup_size(many)"),
  });
  await refused(NAIVE, /naive\.wgsl/, { wgsl: WGSL.replace("(64)", "(4096)"), code: 2 });
  await refused(NAIVE, /--kernel says what runs, --algorithm must go/, {
    args: ["conv", "--problem", PROBLEM, "--algorithm", "direct"],
  });
  await refused(NAIVE, /--kernel must go/, {
    args: ["conv", "--problem", PROBLEM, "--device", "cpu"],
  });
  const product = {
    ...NAIVE,
    op: "gemm",
    when: 1,
    passes: [{ ...pass, bindings: ["a", "b", "output"], overrides: {}, workgroups: [1] }],
  };
  await refused(product, /--kernel says what runs, --splits must go/, {
    args: ["gemm", "--size", "4,4,4", "--splits", "2"],
  });
  await refused(NAIVE, /it convolves, wgconv conv takes it/, { args: ["gemm", "--size", "4,4,4"] });
});

Deno.test("no file of a kernel does worse than a sentence", async () => {
  const text = JSON.stringify(NAIVE);
  const mutations = fc.tuple(fc.nat(text.length), fc.nat(12), fc.string({ maxLength: 6 }));
  await fc.assert(
    fc.asyncProperty(mutations, async ([at, count, put]) => {
      const { code, stderr } = await withKernel(text.slice(0, at) + put + text.slice(at + count));
      assert.ok(code < 5, `${code} ${stderr}`);
    }),
    { numRuns: 60, seed: 20261129 },
  );
});
