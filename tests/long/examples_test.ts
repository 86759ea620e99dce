import assert from "#assert";
import { deno, ROOT, run, temporaryDirectory, wgconv } from "../cli.ts";
import { pythonWith } from "../python.ts";

const EXAMPLES = `${ROOT}examples/`;

Deno.test("examples/library.ts convolves, checks and writes", async () => {
  using temporary = temporaryDirectory();
  const output = `${temporary.path}/y.npy`;
  const { code, stdout, stderr } = await deno(["run", "-A", `${EXAMPLES}library.ts`, output]);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^pass: 200704 outputs checked, MARE /m);
  assert.match(stdout, /^direct: direct_fwd_f32_.*, 1 passes, 0 bytes of workspace$/m);
  const info = await wgconv(["tensor", "info", output]);
  assert.match(info.stdout, /f32 +\[4, 28, 28, 64\]/);
});

Deno.test("examples/train.ts trains by every way to convolve, along FP64's curve", async () => {
  using temporary = temporaryDirectory();
  const svg = `${temporary.path}/curves.svg`;
  const args = ["--runs", "fp64,auto,winrs", "--epochs", "2", "--svg", svg];
  const { code, stdout, stderr } = await deno(["run", "-A", `${EXAMPLES}train.ts`, ...args]);
  assert.equal(code, 0, stderr);
  const losses = [...stdout.matchAll(/^(\w+) +seed 1: loss (\S+),/gm)];
  assert.deepEqual(losses.map(([, run]) => run), ["fp64", "auto", "winrs"]);
  const [exact, ...others] = losses.map(([, , loss]) => Number(loss));
  // Of ten classes nothing that is learned has a loss of log 10.
  assert.ok(exact! < 2.2, stdout);
  for (const loss of others) assert.ok(Math.abs(loss - exact!) < 0.01 * exact!, stdout);
  assert.match(await Deno.readTextFile(svg), /aria-label="Loss of a small network on handwritten/);
});

Deno.test("examples refuse wrong options in a sentence, before any work", async () => {
  const refused: [string, string[], RegExp][] = [
    [
      "train.ts",
      ["--epoch", "3"],
      /^Cannot train: Unknown option '--epoch', the usage is deno run/,
    ],
    ["train.ts", ["--svg"], /^Cannot train: Option '--svg <value>' argument missing, the usage/],
    ["train.ts", ["more"], /^Cannot train: Unexpected argument 'more', the usage is /],
    [
      "train.ts",
      ["--epochs", "0"],
      /^Cannot train: --epochs is "0", expected a whole number >= 1$/,
    ],
    ["train.ts", ["--svg", "no/x.svg"], /^Cannot train: --svg is no\/x.svg, but there is no dir/],
    ["train.ts", ["--digits", "none.npz"], /^Cannot train: no digits can be read: .*none\.npz/],
    ["web/build.ts", ["--serve", "x"], /^Cannot build: --serve is "x", expected a whole number/],
  ];
  const all = refused.map(async ([script, args, sentence]) => {
    const { code, stdout, stderr } = await deno(["run", "-A", `${EXAMPLES}${script}`, ...args]);
    assert.deepEqual([code, stdout], [2, ""], stderr);
    assert.match(stderr.trimEnd(), sentence);
    assert.ok(!stderr.trimEnd().includes("\n"), stderr);
  });
  await Promise.all(all);
  for (const script of ["train.ts", "web/build.ts"]) {
    const { code, stdout } = await deno(["run", "-A", `${EXAMPLES}${script}`, "--help"]);
    assert.equal(code, 0);
    assert.match(stdout, /^deno run -A examples\/.*\]$/m);
  }
});

for (
  const [script, module, checks] of [["numpy_check.py", "numpy", 4], [
    "pytorch_check.py",
    "torch",
    7,
  ]] as const
) {
  Deno.test(`examples/${script} finds results right, where Python has ${module}`, async () => {
    const python = await pythonWith(module);
    if (python === undefined) return console.log(`left out: no Python has ${module}`);
    const args = [`${EXAMPLES}${script}`, Deno.execPath(), "run", "-A", `${ROOT}main.ts`];
    const { code, stdout, stderr } = await run(python, args);
    assert.equal(code, 0, stdout + stderr);
    assert.equal(stdout.match(/: relative L2 error \d\.\d\de-\d\d$/gm)?.length, checks, stdout);
  });
}

/** Runs a shell script with the program on its path as `wgconv`. */
async function shell(script: string, args: string[], cwd: string, env: Record<string, string>) {
  const bin = `${cwd}/bin`;
  await Deno.mkdir(bin, { recursive: true });
  const wrapper = `#!/bin/sh\nexec "$DENO" run --quiet --cached-only -A "$MAIN" "$@"\n`;
  await Deno.writeTextFile(`${bin}/wgconv`, wrapper, { mode: 0o755 });
  const program = { DENO: Deno.execPath(), MAIN: `${ROOT}main.ts` };
  const path = `${bin}:${Deno.env.get("PATH")}`;
  return await run("bash", [`${EXAMPLES}${script}`, ...args], {
    cwd,
    env: { ...env, ...program, NO_COLOR: "1", XDG_RUNTIME_DIR: "/tmp", PATH: path },
  });
}

Deno.test("the SLURM array's tasks make parts that one report puts together, and go on", async () => {
  using temporary = temporaryDirectory();
  const { path } = temporary;
  await Deno.writeTextFile(`${path}/suite.txt`, "mb1ic4ih8oc4kh3\nmb1ic4ih9oc8kh1\n");
  const task = (part: number) =>
    shell("slurm_array.sh", ["suite.txt", "results"], path, {
      SLURM_ARRAY_TASK_ID: String(part),
      SLURM_ARRAY_TASK_COUNT: "2",
      SLURM_SUBMIT_DIR: ROOT,
    });
  for (const part of [1, 2]) {
    const { code, stderr } = await task(part);
    assert.equal(code, 0, stderr);
  }
  assert.match(await Deno.readTextFile(`${path}/results/part1.log`), /^GPU -: wgconv bench /);
  const before = await Deno.readTextFile(`${path}/results/part1.jsonl`);
  assert.equal((await task(1)).code, 0);
  assert.equal(await Deno.readTextFile(`${path}/results/part1.jsonl`), before);
  const files = [`${path}/results/part1.jsonl`, `${path}/results/part2.jsonl`];
  const { stdout } = await wgconv(["report", ...files, "--format", "csv"]);
  assert.equal(stdout.trim().split("\n").length, 1 + 6);
});

Deno.test("the line for GNU parallel is bash, and its commands exist", async () => {
  const check = await run("bash", ["-n", `${EXAMPLES}parallel.sh`]);
  assert.equal(check.code, 0, check.stderr);
  const script = await Deno.readTextFile(`${EXAMPLES}parallel.sh`);
  const bench = await wgconv(["bench", "--help"]);
  const command = /" bench (.*) :::/.exec(script)?.[1] ?? "";
  const options = command.match(/--[a-z]+/g) ?? [];
  assert.deepEqual(options, ["--suite", "--op", "--shard", "--jsonl", "--resume"]);
  for (const option of options) assert.ok(bench.stdout.includes(` ${option} `), option);
});

Deno.test("a suite is spread over GPUs by GNU parallel, each process has its log, and a part that ended early goes on", async () => {
  if ((await run("sh", ["-c", "command -v parallel"])).code !== 0) {
    console.log("left out: there is no GNU parallel");
    return;
  }
  using temporary = temporaryDirectory();
  const { path } = temporary;
  await Deno.writeTextFile(`${path}/suite.txt`, "mb1ic4ih8oc4kh3\nmb1ic4ih9oc8kh1\n");
  const args = [`${path}/bin/wgconv`, "suite.txt", "results", "-,-", "--op", "fwd"];
  const spread = () => shell("gpus.sh", args, path, {});
  const { code, stderr, stdout } = await spread();
  assert.equal(code, 0, stderr);
  // The part with more to move comes first.
  assert.match(stdout, / made by [^]*mb1ic4ih9oc8oh9kh1[^]*mb1ic4ih8oc4oh6kh3/);
  const part = (number: number) => Deno.readTextFile(`${path}/results/part${number}.jsonl`);
  const before = await Promise.all([part(1), part(2)]);
  for (const number of [1, 2]) {
    const log = await Deno.readTextFile(`${path}/results/part${number}.log`);
    assert.match(log, new RegExp(`^GPU -: .*wgconv bench .* --shard ${number}/2 `));
  }
  // The environment's line alone is what a process leaves that was killed in its first case.
  await Deno.writeTextFile(`${path}/results/part2.jsonl`, before[1].split("\n")[0] + "\n");
  assert.equal((await spread()).code, 0);
  assert.equal(await part(1), before[0]);
  assert.equal((await part(2)).match(/"kind":"case"/g)?.length, 1);
});

Deno.test("one_gpu.sh refuses a GPU that is not there, and ends as its command does", async () => {
  using temporary = temporaryDirectory();
  const { path } = temporary;
  const gpu = (...args: string[]) => run("bash", [`${EXAMPLES}one_gpu.sh`, ...args], { cwd: path });
  const missing = await gpu("77", "log", "true");
  assert.deepEqual([missing.code, missing.stderr], [2, "one_gpu.sh: there is no /dev/nvidia77\n"]);
  assert.equal((await gpu("-", "log", "sh", "-c", "exit 3")).code, 3);
});
