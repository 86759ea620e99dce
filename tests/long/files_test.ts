/** What becomes of files and verdicts when runs are refused, meet each other, are interrupted or cannot write. */
import assert from "#assert";
import { writeNpy } from "../../src/npy/mod.ts";
import { tensor } from "../../src/tensor/tensor.ts";
import {
  type CliOptions,
  deno,
  NO_DRIVER,
  ROOT,
  run,
  startWgconv,
  temporaryDirectory,
  until,
  wgconv,
} from "../cli.ts";

const FAULTS = `${ROOT}tests/faults.ts`;
const PROBLEM = "mb1ic4ih9oc4kh3";

/** Runs a line of bash in which `deno` stands for the program with its options; `$1`, `$2` … are `args`. */
function shell(line: string, args: readonly string[] = [], options: CliOptions = {}) {
  const script = `deno() { "$DENO" run --quiet --cached-only -A "$@"; }\n${line}`;
  const env = { DENO: Deno.execPath(), NO_COLOR: "1", XDG_RUNTIME_DIR: "/tmp", ...options.env };
  return run("bash", ["-c", script, "bash", ...args], { cwd: ROOT, ...options, env });
}

function names(folder: string): string[] {
  return [...Deno.readDirSync(folder)].map(({ name }) => name).sort();
}

/** One case of the built-in suite, which a fault spoils. */
const CHECK = [
  ...["check", "--op", "fwd", "--layout", "nhwc", "--algorithm", "implicit-gemm"],
  ...["--match", '"(normal_3x3|pointwise)"'],
];

Deno.test("without a driver no file of records is emptied or made", async () => {
  using temporary = temporaryDirectory();
  const path = `${temporary.path}/out.jsonl`;
  const suite = `${temporary.path}/suite`;
  await Deno.writeTextFile(suite, "8 8 8\n");
  const commands = [
    ["bench", PROBLEM, "--jsonl", path],
    [...CHECK, "--jsonl", path],
    ["gemm", "--suite", suite, "--jsonl", path],
    ["gemm", "--size", "8,8,8", "--search", "--jsonl", path],
  ];
  for (const command of commands) {
    const { code, stderr } = await wgconv(command, { env: NO_DRIVER });
    assert.equal(code, 3, stderr);
    assert.deepEqual(names(temporary.path), ["suite"]);
    await Deno.writeTextFile(path, "what was measured\n");
    const refused = await wgconv(command, { env: NO_DRIVER });
    assert.equal(refused.code, 2);
    const resumable = command[0] === "bench" || command[1] === "--suite";
    const resume = resumable ? "--resume continues it, " : "";
    assert.equal(
      refused.stderr,
      `wgconv: Cannot write ${path}: it is not empty, ${resume}--force overwrites it\n`,
    );
    const forced = await wgconv([...command, "--force"], { env: NO_DRIVER });
    assert.equal(forced.code, 3, forced.stderr);
    assert.equal(await Deno.readTextFile(path), "what was measured\n");
    await Deno.remove(path);
  }
});

Deno.test("an output that is an input is refused", async () => {
  using temporary = temporaryDirectory();
  const at = (name: string) => `${temporary.path}/${name}`;
  const inputs: Record<string, string> = {
    suite: `--batch=inner\n${PROBLEM}\n`,
    inner: `${PROBLEM}\n`,
    gemm: "8 8 8\n",
    "run.jsonl": '{"schema":1,"kind":"case","provider":"p","problem":"q","op":"o","dtype":"d"}\n',
  };
  for (const [name, text] of Object.entries(inputs)) await Deno.writeTextFile(at(name), text);
  await writeNpy(at("x.npy"), tensor("f32", [1, 1, 3, 3], new Float32Array(9)));
  await Deno.symlink(at("x.npy"), at("y.npy"));
  await Deno.symlink(at("x.npy"), at("p.png"));
  const commands: [string[], string][] = [
    [["bench", "--suite", at("suite"), "--jsonl", at("suite")], "suite"],
    [["bench", "--suite", at("suite"), "--jsonl", at("./inner")], "inner"],
    [["check", "--suite", at("suite"), "--junit", at("suite")], "suite"],
    [["gemm", "--suite", at("gemm"), "--jsonl", at("gemm")], "gemm"],
    [["tune", "--suite", at("suite"), "--output", at("inner")], "inner"],
    [["report", temporary.path, "--output", at("run.jsonl")], "run.jsonl"],
    [["conv", "--input", at("x.npy"), "--filter", at("x.npy"), "--output", at("y.npy")], "y.npy"],
    [["gemm", "--a", at("x.npy"), "--b", at("x.npy"), "--output", at("y.npy")], "y.npy"],
    [["tensor", "convert", at("x.npy"), at("y.npy")], "y.npy"],
    [["tensor", "show", at("x.npy"), at("p.png")], "p.png"],
  ];
  const before = await Deno.readFile(at("x.npy"));
  for (const [command, name] of commands) {
    const { code, stderr } = await wgconv(command, { env: NO_DRIVER });
    assert.equal(code, 2, command.join(" "));
    assert.match(stderr, /^wgconv: Cannot write .*: it is an input too, --force overwrites it\n$/);
    assert.ok(stderr.includes(`${name}:`), stderr);
  }
  for (const [name, text] of Object.entries(inputs)) {
    assert.equal(await Deno.readTextFile(at(name)), text);
  }
  assert.deepEqual(await Deno.readFile(at("x.npy")), before);
  const forced = await wgconv(["tensor", "convert", at("x.npy"), at("y.npy"), "--force"]);
  assert.equal(forced.code, 0, forced.stderr);
  assert.ok((await Deno.lstat(at("y.npy"))).isSymlink);
});

Deno.test("every output is proven before a device is opened", async () => {
  using temporary = temporaryDirectory();
  const missing = `${temporary.path}/none/x`;
  const commands: string[][] = [
    [...CHECK, "--save-failures", "/dev/full"],
    [...CHECK, "--junit", missing],
    [...CHECK, "--jsonl", missing],
    [...CHECK, "--baseline", `${temporary.path}`, "--update"],
    ["bench", PROBLEM, "--jsonl", missing],
    ["conv", "--problem", PROBLEM, "--output", missing],
    ["conv", "--problem", PROBLEM, "--output", `${temporary.path}/y.npz`],
    ["gemm", "--size", "8,8,8", "--output", missing],
    ["gemm", "--size", "8,8,8", "--search", "--jsonl", missing],
    ["tune", PROBLEM, "--output", "/dev/full/x"],
  ];
  for (const command of commands) {
    const { code, stderr } = await wgconv(command, { env: NO_DRIVER });
    assert.equal(code, 2, `${command.join(" ")}: ${stderr}`);
    assert.match(stderr, /^wgconv: Cannot (write|read) .*\n$/);
    assert.deepEqual(names(temporary.path), []);
  }
});

Deno.test({
  name: "of two benches on one file the second is refused, and the first loses nothing",
  ignore: Deno.build.os === "windows",
  async fn() {
    using temporary = temporaryDirectory();
    const path = `${temporary.path}/out.jsonl`;
    const args = ["mb1ic4,6,8,10ih9oc4kh3", "--op", "all", "--jsonl", path];
    const first = startWgconv(["bench", ...args], { stdout: "null", stderr: "null" });
    const read = () => Deno.readTextFile(path).catch(() => "");
    await until(async () => (await read()).includes("\n"), first);
    // So that it has not ended before the others have started.
    first.kill("SIGSTOP");
    try {
      for (const how of [[], ["--force"], ["--resume"]]) {
        const { code, stderr } = await wgconv(["bench", ...args, ...how]);
        assert.equal(code, 2);
        assert.equal(
          stderr,
          `wgconv: Cannot write ${path}: another program is writing records to it\n`,
        );
      }
    } finally {
      first.kill("SIGCONT");
    }
    assert.equal((await first.status).code, 0);
    assert.equal((await read()).trimEnd().split("\n").length, 1 + 12);
  },
});

Deno.test("two checks that update one baseline keep each other's cases, and fields they do not know", async () => {
  using temporary = temporaryDirectory();
  const path = `${temporary.path}/baseline.json`;
  const check = (name: string, ...more: string[]) =>
    wgconv([...CHECK.slice(0, -1), `"${name}"`, "--baseline", path, "--update", ...more]);
  assert.equal((await check("groups_4")).code, 0);
  const known = JSON.parse(await Deno.readTextFile(path));
  await Deno.writeTextFile(path, JSON.stringify({ ...known, remark: "kept" }));
  const runs = await Promise.all(["normal_3x3", "pointwise"].map((name) => check(name)));
  runs.forEach(({ code, stdout, stderr }) => assert.equal(code, 0, stdout + stderr));
  const baseline = JSON.parse(await Deno.readTextFile(path));
  assert.equal(baseline.remark, "kept");
  const cases = Object.keys(baseline.cases).map((key) => /n"(.*)"$/.exec(key)?.[1]);
  assert.deepEqual(cases.sort(), ["groups_4", "normal_3x3", "pointwise"]);
  const text = await Deno.readTextFile(path);
  const other = await check("pointwise", "--seed", "2");
  assert.equal(other.code, 2);
  assert.match(
    other.stderr,
    /made with uniform01 data and seed 1, not with .* 2, --force replaces it\n$/,
  );
  await Deno.writeTextFile(path, text.replace('"schema": 1', '"schema": 2'));
  const newer = await check("pointwise");
  assert.equal(newer.code, 2);
  assert.match(newer.stderr, /baseline\.json:2: it is of version 2, this wgconv reads 1\n$/);
});

Deno.test({
  name: "bench that is interrupted has printed what it measured, and says how to go on",
  ignore: Deno.build.os === "windows",
  async fn() {
    using temporary = temporaryDirectory();
    const records = ["--jsonl", `${temporary.path}/out.jsonl`];
    const child = startWgconv(
      ["bench", "mb1ic4,6,8,10,12,14,16,18,20,22,24,26ih9oc4kh3", "--op", "all", ...records],
      { stdout: "piped", stderr: "piped" },
    );
    const said = new Response(child.stderr).text();
    let text = "";
    let stopped = false;
    for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      if (stopped || text.split("\n").length < 4) continue;
      stopped = true;
      child.kill("SIGINT");
    }
    assert.equal((await child.status).code, 130);
    assert.match(
      await said,
      /^\nwgconv: stopped, \d+ of 36 cases are left; add --resume to the same command to continue\n$/,
    );
    const [head, ...rows] = text.trimEnd().split("\n");
    assert.match(
      head!,
      /^problem +op +algorithm +time +GFLOP\/s +MARE +verdict$/,
    );
    assert.ok(rows.length >= 2 && rows.length < 36, text);
    // The columns are as wide as they are going to be.
    const at = head!.indexOf("verdict");
    assert.ok(rows.every((row) => row.slice(at).startsWith("pass")), text);
  },
});

Deno.test({
  name: "a failed check exits 1 though its outputs cannot be written, and runs every case",
  ignore: Deno.build.os !== "linux",
  async fn() {
    using temporary = temporaryDirectory();
    const folder = `${temporary.path}/failed`;
    // Where the failure's file would go.
    const file = "fwd_nhwc_f32_implicit-gemm_mb2ic32ih10oc32oh10kh3ph1n_normal_3x3_.npz";
    await Deno.mkdir(`${folder}/${file}`, { recursive: true });
    const outputs: [string[], RegExp][] = [
      [
        ["--save-failures", folder],
        /^wgconv: Cannot write .*normal_3x3_\.npz: it is a directory\n$/,
      ],
      [["--junit", "/dev/full"], /^wgconv: Cannot write \/dev\/full: the disk is full\n$/],
      [["--jsonl", "/dev/full"], /^wgconv: Cannot write \/dev\/full: the disk is full\n$/],
    ];
    for (const [output, message] of outputs) {
      const args = ["run", "-A", FAULTS];
      const failed = await deno([...args, "wrong-channel", ...CHECK, ...output]);
      assert.equal(failed.code, 1, failed.stderr);
      assert.match(failed.stderr, message);
      assert.match(failed.stdout, /^2 cases on .*: 1 passed, 1 failed$/m);
      if (output[0] === "--save-failures") continue;
      const passed = await deno([...args, "none", ...CHECK, ...output]);
      assert.equal(passed.code, 2, passed.stderr);
      assert.match(passed.stderr, message);
      assert.match(passed.stdout, /^2 cases on .*: 2 passed$/m);
    }
  },
});

Deno.test({
  name: "neither stdout nor stderr hides a verdict, whatever became of them",
  ignore: Deno.build.os !== "linux",
  async fn() {
    using temporary = temporaryDirectory();
    const at = (name: string) => `${temporary.path}/${name}.npy`;
    const x = new Float32Array(16 * 16).fill(1);
    x[40] = Infinity;
    await writeNpy(at("x"), tensor("f32", [1, 1, 16, 16], x));
    await writeNpy(at("w"), tensor("f32", [1, 1, 3, 3], new Float32Array(9).fill(1)));
    // Winograd spreads the infinity over a tile, which the check reports.
    const conv = 'deno main.ts conv --input "$1" --filter "$2" --check full --output "$3" ' +
      "--algorithm winograd2d-nonfused --force";
    const check = `deno tests/faults.ts "$1" check --op fwd --layout nhwc --algorithm ` +
      `implicit-gemm --match normal_3x3`;
    const lines: [string, string[], number][] = [
      [`${conv} | true; exit \${PIPESTATUS[0]}`, [at("x"), at("w"), "-"], 1],
      [`${conv} > /dev/full`, [at("x"), at("w"), "-"], 1],
      [`${conv} > /dev/full`, [at("x"), at("w"), at("y")], 1],
      [`${conv} 2> /dev/full`, [at("x"), at("w"), at("y")], 1],
      [`${conv} 2> /dev/full`, [at("w"), at("w"), "-"], 0],
      [`${check} | true; exit \${PIPESTATUS[0]}`, ["wrong-channel"], 1],
      [`${check} > /dev/full`, ["wrong-channel"], 1],
      [`${check} 2> /dev/full`, ["none"], 0],
      [`${check} 2>&-`, ["wrong-channel"], 1],
      ["deno main.ts nonsense 2> /dev/full", [], 2],
      ["deno main.ts tensor info none.npy 2> /dev/full", [], 2],
      [`deno main.ts bench ${PROBLEM} --runs 1 --json 2> /dev/full`, [], 0],
    ];
    for (const [line, args, expected] of lines) {
      const { code, stderr } = await shell(line, args);
      assert.equal(code, expected, `${line}: ${stderr}`);
    }
  },
});
