import { algorithmNames } from "../src/algorithms/registry.ts";
import assert from "#assert";
import { readNpy, writeNpy } from "../src/npy/mod.ts";
import { tensor } from "../src/tensor/tensor.ts";
import { VERSION } from "../src/version.ts";
import config from "../deno.json" with { type: "json" };
import { NO_DRIVER, ROOT, run, temporaryDirectory, wgconv } from "./cli.ts";
import { refuses, succeeds, wgconvHere } from "./support/in_process.ts";

Deno.test("wgconv --version prints the version of deno.json", async () => {
  const { stdout } = await succeeds(["--version"]);
  assert.equal(stdout, `${VERSION}\n`);
  assert.equal(VERSION, config.version);
});

Deno.test("wgconv --help lists every command, and help of a command has examples", async () => {
  const { stdout } = await succeeds(["--help"]);
  for (const name of ["conv", "gemm", "bench", "plan", "tensor", "devices"]) {
    assert.match(stdout, new RegExp(`^ {2}${name} `, "m"));
    const help = await succeeds([name, "--help"]);
    assert.match(help.stdout, new RegExp(`Examples:\\n {2}wgconv ${name}`));
  }
});

Deno.test({
  name: "a full disk exits 2 with one sentence, wherever it is met",
  ignore: Deno.build.os !== "linux",
  async fn() {
    for (
      const command of [
        "bench --problem ic1ih4oc1kh3 --jsonl /dev/full",
        "plan --problem ic1ih4oc1kh3 > /dev/full",
        "tensor make - --shape 4 > /dev/full",
      ]
    ) {
      const { code, stderr } = await run(
        "sh",
        ["-c", `"$0" run --quiet --cached-only -A main.ts ${command}`, Deno.execPath()],
        { cwd: ROOT, env: { XDG_RUNTIME_DIR: "/tmp" } },
      );
      assert.match(stderr, /^wgconv: Cannot write (\/dev\/full|stdout): the disk is full\n$/);
      assert.equal(code, 2);
    }
  },
});

Deno.test("--layout takes the names of one and of three spatial axes", async () => {
  for (
    const [problem, name, layout] of [["ic2iw8oc4kw3", "nwc", "nhwc"], [
      "ic2id4oc2kd3",
      "cdhwn",
      "chwn",
    ]]
  ) {
    const { stdout } = await wgconvHere([
      "plan",
      "--problem",
      problem!,
      "--layout",
      name!,
      "--json",
    ]);
    assert.equal(JSON.parse(stdout).layout, layout);
  }
});

Deno.test("texts are read from stdin as from files: limits, suites, records", async () => {
  const input = (text: string) => ({ input: new TextEncoder().encode(text) });
  const plan = ["plan", "--problem", "mb1ic64ih28oc64kh3ph1", "--algorithm", "im2col"];
  const limits = { maxBufferSize: 65536, maxStorageBufferBindingSize: 65536 };
  const limited = await wgconv([...plan, "--limits", "-"], input(JSON.stringify({ limits })));
  assert.equal(limited.code, 3);
  assert.match(limited.stderr, /65536/);
  const none = await wgconv([...plan, "--limits", "-"], input("maxBufferSize = 1"));
  assert.equal(none.code, 2);
  assert.match(none.stderr, /expected a JSON object of device limits/);
  const least = await wgconv([...plan, "--limits", "-"], input('{"maxBufferSize":100}'));
  assert.equal(least.code, 2);
  assert.match(least.stderr, /maxBufferSize is 100, expected a whole number >= 256/);
  const suite = ["bench", "--suite", "-", "--device", "cpu", "--runs", "1", "--json"];
  const { stdout, code } = await wgconv(suite, input("mb1ic4ih8oc4kh3\n"));
  assert.equal(code, 0);
  const reported = await wgconv(["report", "-"], input(stdout));
  assert.match(reported.stdout, /^mb1ic4ih8oc4oh6kh3 .* reference /m);
});

Deno.test("--debug adds the stack to an error", async () => {
  await refuses(["bench", "--debug"], /\n {4}at .*bench\.ts/);
});

Deno.test("wgconv conv convolves files on the GPU: checked, timed, written", async () => {
  using temporary = temporaryDirectory();
  const at = (name: string) => `${temporary.path}/${name}.npy`;
  // A 3 x 3 sum over a ramp, which float32 holds exactly.
  await writeNpy(
    at("x"),
    tensor("f32", [1, 1, 3, 4], Float32Array.from({ length: 12 }, (_, i) => i)),
  );
  await writeNpy(at("w"), tensor("f64", [1, 1, 3, 3], new Float64Array(9).fill(1)));
  await writeNpy(at("b"), tensor("f32", [1], Float32Array.of(-50)));
  const files = ["--input", at("x"), "--filter", at("w")];
  const plain = await succeeds(["conv", ...files, "--output", at("y"), "--check", "full"]);
  assert.match(plain.stdout, /^verdict +pass$/m);
  assert.match(plain.stdout, /^checked +2 of 2 outputs$/m);
  const y = await readNpy(at("y"));
  assert.deepEqual(y, tensor("f32", [1, 1, 1, 2], Float32Array.of(45, 54)));
  const biased = ["--bias", at("b"), "--activation", "relu", "--output", at("z")];
  const streamed = await succeeds(["conv", ...files, ...biased, "--check", "none", "--json"]);
  const record = JSON.parse(streamed.stdout);
  assert.equal(record.kind, "case");
  assert.equal(record.verdict, "none");
  assert.equal(record.accuracy, null);
  assert.deepEqual((await readNpy(at("z"))).data, Float32Array.of(0, 4));
  await writeNpy(at("s"), tensor("f32", [1], Float32Array.of(-3)));
  const sloped = ["--bias", at("b"), "--activation", "prelu", "--slope", at("s")];
  await succeeds(["conv", ...files, ...sloped, "--output", at("p")]);
  assert.deepEqual((await readNpy(at("p"))).data, Float32Array.of(15, 4));
});

Deno.test("wgconv conv takes gradients in every layout and writes their shapes", async () => {
  using temporary = temporaryDirectory();
  const out = `${temporary.path}/out.npy`;
  const problem = "g2mb2ic4ih7iw6oc6kh3sh2ph1";
  const shapes: [string, string, number[]][] = [
    ["fwd", "nhwc", [2, 4, 3, 6]],
    ["bwd-data", "chwn", [4, 7, 6, 2]],
    ["bwd-filter", "nhwc", [6, 3, 3, 2]],
  ];
  for (const [op, layout, shape] of shapes) {
    const args = ["conv", "--problem", problem, "--op", op, "--layout", layout, "--output", out];
    await succeeds([...args, "--force"]);
    assert.deepEqual((await readNpy(out)).shape, shape);
  }
});

Deno.test("wgconv conv says which shapes disagree, and writes nothing", async () => {
  using temporary = temporaryDirectory();
  const at = (name: string) => `${temporary.path}/${name}.npy`;
  await writeNpy(at("x"), tensor("f32", [1, 3, 4, 4], new Float32Array(48)));
  await writeNpy(at("w"), tensor("f32", [1, 2, 2, 2], new Float32Array(8)));
  const args = ["conv", "--input", at("x"), "--filter", at("w"), "--output", at("y")];
  const { code, stderr } = await wgconvHere(args);
  assert.equal(code, 2);
  const sentence = "Cannot convolve: filter has 2 input channels, input has 3 (groups = 1)";
  assert.equal(stderr, `wgconv: ${sentence}\n`);
  await assert.rejects(() => Deno.stat(at("y")), Deno.errors.NotFound);
});

Deno.test("wgconv conv keeps stdout for the tensor with --output -", async () => {
  const args = ["conv", "--problem", "mb1ic1ih3oc1kh3", "--device", "cpu", "--output", "-"];
  const { stdout, stderr } = await succeeds(args);
  assert.equal(stdout.slice(1, 6), "NUMPY");
  assert.match(stderr, /^verdict /m);
});

Deno.test("without a driver, conv exits 3 with a hint, and the CPU computes", async () => {
  const args = ["conv", "--problem", "mb1ic1ih3oc1kh3"];
  const gpu = await wgconv(args, { env: NO_DRIVER });
  assert.equal(gpu.code, 3);
  assert.match(gpu.stderr, /^wgconv: .*; --device cpu computes without a GPU\n$/);
  const cpu = await wgconv([...args, "--device", "cpu"], { env: NO_DRIVER });
  assert.equal(cpu.code, 0);
  assert.match(cpu.stdout, /^device +CPU/m);
  const choices = ["--device", "cpu", "--algorithm", "direct", "--backend", "dawn"];
  const { code, stderr } = await wgconv([...args, ...choices], { env: NO_DRIVER });
  assert.equal(code, 2);
  assert.match(
    stderr,
    /the CPU computes with the reference itself, --algorithm, --backend must go\n$/,
  );
});

Deno.test("an empty batch gives an empty output", async () => {
  using temporary = temporaryDirectory();
  const out = `${temporary.path}/y.npy`;
  const { stdout } = await succeeds([
    "conv",
    ...["--problem", "mb0ic2ih4oc3kh3", "--output", out],
  ]);
  assert.match(stdout, /the result is empty/);
  assert.deepEqual((await readNpy(out)).shape, [0, 3, 2, 2]);
});

Deno.test("wgconv plan prints a plan, its JSON, its shaders, without a driver", async () => {
  const args = ["plan", "--problem", "mb1ic12ih8oc12kh3"];
  const plan = await wgconv(args, { env: NO_DRIVER });
  assert.equal(plan.code, 0, plan.stderr);
  assert.match(plan.stdout, /^algorithm +implicit-gemm$/m);
  const json = await wgconvHere([...args, "--algorithm", "direct", "--json"]);
  assert.equal(JSON.parse(json.stdout).algorithm, "direct");
  const wgsl = await wgconvHere([...args, "--wgsl"]);
  assert.match(wgsl.stdout, /@compute/);
  using temporary = temporaryDirectory();
  const file = `${temporary.path}/kernels.wgsl`;
  assert.equal((await wgconvHere([...args, "--wgsl", file])).stdout, "");
  assert.equal(await Deno.readTextFile(file), wgsl.stdout);
  const again = await wgconvHere([...args, "--wgsl", file]);
  assert.match(again.stderr, /--force overwrites it/);
  const explained = await wgconvHere([...args, "--algorithm", "implicit-gemm", "--explain"]);
  assert.match(explained.stdout, /^plain loop\n +state:\n/m);
  assert.match(explained.stdout, /^after prefetch$[^]*^\+ +\{ \/\/ prefetch$/m);
  const empty = ["plan", "--problem", "mb0ic12ih8oc12kh3"];
  assert.match((await wgconvHere([...empty, "--wgsl"])).stdout, /^\/\/ no kernel: /);
  assert.match((await wgconvHere([...empty, "--explain"])).stdout, /^no kernel: /);
  const all = await wgconvHere([...args, "--all"]);
  const names = all.stdout.split("\n").slice(1).map((line) => line.split(" ")[0]);
  for (const name of algorithmNames()) assert.ok(names.includes(name), name);
  assert.match(all.stdout, /^algorithm .* memory +workspace +predicted ms /);
  const peaks: number[] = JSON.parse((await wgconvHere([...args, "--all", "--json"])).stdout)
    .flatMap((row: { memory_bytes?: { peak: number } }) => row.memory_bytes?.peak ?? []);
  assert.deepEqual(peaks, peaks.toSorted((a, b) => a - b));
  assert.equal(all.stderr, "");
  const large = await succeeds(["plan", "--problem", "mb128ic3ih224oc64kh3", "--all"]);
  assert.match(large.stderr, /^wgconv: note: these are the limits that every device has; /);
  await refuses(
    [...args, "--algorithm", "im2col", "--max-workspace", "16"],
    /bytes of workspace, at most 16 are allowed/,
  );
});

Deno.test("wgconv bench writes an environment line and a record a case", async () => {
  using temporary = temporaryDirectory();
  const jsonl = `${temporary.path}/out.jsonl`;
  const suite = `${temporary.path}/suite.txt`;
  await Deno.writeTextFile(suite, '# one\nmb1ic4ih6oc4kh3n"one"\n');
  const lists = ["--op", "all", "--algorithm", "direct,implicit-gemm", "--runs", "2"];
  const { stdout } = await succeeds([
    "bench",
    ...["--suite", suite, "--jsonl", jsonl, "--fill-ms", "0", ...lists],
  ]);
  assert.equal(stdout.split("\n").filter((line) => /^(problem|one) /.test(line)).length, 1 + 6);
  const lines = (await Deno.readTextFile(jsonl)).trimEnd().split("\n");
  const [environment, ...cases] = lines.map((line) => JSON.parse(line));
  assert.equal(environment.kind, "environment");
  assert.equal(environment.schema, 1);
  assert.deepEqual(
    cases.map(({ op, algorithm, verdict }) => [op, algorithm, verdict]),
    ["fwd", "bwd-data", "bwd-filter"].flatMap((op) => [
      [op, "direct", "pass"],
      [op, "implicit-gemm", "pass"],
    ]),
  );
  for (const { time_ms, problem } of cases) {
    assert.ok(time_ms.median > 0 && time_ms.samples.length === 2);
    assert.equal(problem, 'mb1ic4ih6oc4oh4kh3n"one"');
  }
});

Deno.test("wgconv bench goes on after a case that cannot run, and exits 5", async () => {
  const big = "mb64ic512ih224oc512kh3";
  const { code, stdout } = await wgconvHere([
    "bench",
    ...["--problem", big, "--problem", "mb1ic4ih6oc4kh3", "--runs", "1", "--fill-ms", "0"],
  ]);
  assert.equal(code, 5);
  assert.match(stdout, /^error: fwd mb64ic512.*maxBufferSize/m);
  assert.match(stdout, /^mb1ic4ih6oc4oh4kh3 .* pass$/m);
  const none = await wgconvHere(["bench", "--problem", big, "--runs", "1"]);
  assert.equal(none.code, 2);
});

Deno.test("conv --backend auto says which backend it takes, and why", async () => {
  const { stderr } = await succeeds(
    ["conv", "--problem", "mb1ic3ih5oc5kh3", "--backend", "auto", "--runs", "1"],
  );
  assert.match(stderr, /^--backend auto: wgpu, matrix units are for f16, int8 and --math f16x3$/m);
});
