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

Deno.test("the SLURM array's tasks make parts that are put together, and go on", async () => {
  using temporary = temporaryDirectory();
  const { path } = temporary;
  await Deno.writeTextFile(`${path}/suite.txt`, "mb1ic4ih8oc4kh3\nmb1ic4ih9oc8kh1\n");
  const task = (part: number, command = ["bench", "--suite", "suite.txt", "--op", "all"]) =>
    shell("slurm_array.sh", ["results", ...command], path, {
      SLURM_ARRAY_TASK_ID: String(part),
      SLURM_ARRAY_TASK_COUNT: "2",
      SLURM_SUBMIT_DIR: ROOT,
    });
  for (const part of [1, 2]) {
    const { code, stderr } = await task(part);
    assert.equal(code, 0, stderr);
  }
  assert.match(await Deno.readTextFile(`${path}/results/part1.log`), /^GPU -: .* wgconv bench /);
  const before = await Deno.readTextFile(`${path}/results/part1.jsonl`);
  assert.equal((await task(1)).code, 0);
  assert.equal(await Deno.readTextFile(`${path}/results/part1.jsonl`), before);
  const merged = await shell("merge.sh", ["results", "2"], path, {});
  assert.equal(merged.code, 0, merged.stderr);
  assert.match(merged.stdout, /^results\.jsonl: 2 of 2 parts\n +6 "verdict":"pass"$/m);
  assert.equal((await shell("merge.sh", ["results", "3"], path, {})).code, 5);
  const wrong = await task(1, ["check", "--frobnicate"]);
  assert.equal(wrong.code, 0, "part 1 is done");
});

Deno.test("a sweep of any command is spread over processes, and goes on where it ended", async () => {
  using temporary = temporaryDirectory();
  const { path } = temporary;
  await Deno.writeTextFile(`${path}/suite.txt`, "mb1ic4ih8oc4kh3\nmb1ic4ih9oc8kh1\n");
  const worker = `'${Deno.execPath()}' run -A '${ROOT}tests/support/reference_worker.ts'`;
  const sweep = (results: string, parts: number, ...command: string[]) =>
    shell("gpus.sh", [results, "-,-", `${path}/bin/wgconv`, ...command], path, {
      PARTS: String(parts),
    });
  const cpu = ["--suite", "suite.txt", "--op", "fwd", "--device", "cpu"];
  const runs: [name: string, parts: number, cases: number, command: string[]][] = [
    ["bench", 3, 2, ["bench", ...cpu, "--runs", "1", "--fill-ms", "0"]],
    ["check", 3, 2, ["check", ...cpu, "--layout", "nchw", "--baseline", "none"]],
    ["verify", 3, 2, ["verify", "--worker", worker, "--op", "fwd", "--random", "2"]],
  ];
  for (const [name, parts, cases, command] of runs) {
    const { code, stdout, stderr } = await sweep(name, parts, ...command);
    assert.equal(code, 0, stderr);
    assert.match(stdout, new RegExp(`^${name}\\.jsonl: ${parts} of ${parts} parts$`, "m"));
    const merged = () => Deno.readTextFile(`${path}/${name}.jsonl`);
    const problems = (text: string) =>
      text.split("\n").filter((line) => line.includes('"kind":"case"'))
        .map((line) => JSON.parse(line)).map(({ problem, fill, seed }) => [problem, fill, seed]);
    const before = problems(await merged());
    assert.equal(new Set(before.map(String)).size, cases);
    // The environment's line alone is what a process leaves that was killed in its first case.
    const part = `${path}/${name}/part2`;
    await Deno.remove(`${part}.done`);
    const [first] = (await Deno.readTextFile(`${part}.jsonl`)).split("\n");
    await Deno.writeTextFile(`${part}.jsonl`, `${first}\n`);
    assert.equal((await shell("merge.sh", [name, String(parts)], path, {})).code, 5);
    assert.equal((await sweep(name, parts, ...command)).code, 0);
    assert.deepEqual(problems(await merged()), before);
  }
  const faulty = ["verify", "--worker", `${worker} --fault`, "--op", "fwd", "--random", "4"];
  assert.equal((await sweep("faulty", 2, ...faulty)).code, 1);
  const skipped = ["bench", "--suite", "suite.txt", "--op", "fwd", "--algorithm", "winrs"];
  assert.equal((await sweep("skipped", 2, ...skipped)).code, 2);
  const { code, stderr } = await sweep("many", 9, ...runs[2]![3], "--random", "2");
  assert.deepEqual([code, /--random <n>' is given twice/.test(stderr)], [5, true]);
});

Deno.test("a sweep over machines by GNU parallel copies what it needs", async () => {
  if ((await run("sh", ["-c", "command -v parallel"])).code !== 0) {
    console.log("left out: there is no GNU parallel");
    return;
  }
  using temporary = temporaryDirectory();
  const { path } = temporary;
  await Deno.writeTextFile(`${path}/suite.txt`, "mb1ic4ih8oc4kh3\nmb1ic4ih9oc8kh1\n");
  await Deno.symlink(EXAMPLES, `${path}/examples`);
  const args = [":", "results", "bin/wgconv", "bench", "--suite", "suite.txt", "--device", "cpu"];
  const env = { FILES: "suite.txt", PARTS: "3" };
  const { code, stdout, stderr } = await shell("parallel.sh", args, path, env);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^results\.jsonl: 3 of 3 parts$/m);
});

Deno.test("one_gpu.sh refuses a GPU that is not there, and ends as its command does", async () => {
  using temporary = temporaryDirectory();
  const { path } = temporary;
  const gpu = (...args: string[]) => run("bash", [`${EXAMPLES}one_gpu.sh`, ...args], { cwd: path });
  const missing = await gpu("77", "log", "true");
  assert.deepEqual([missing.code, missing.stderr], [2, "one_gpu.sh: there is no /dev/nvidia77\n"]);
  assert.equal((await gpu("-", "log", "sh", "-c", "exit 3")).code, 3);
});
