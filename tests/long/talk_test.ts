import assert from "#assert";
import { existsSync } from "node:fs";
import { stripVTControlCharacters } from "node:util";
import { allCommands, commandTree } from "../../src/cli/command_tree.ts";
import { wholeProgram } from "../../src/cli/program.ts";
import { EXIT } from "../../src/errors.ts";
import { writeNpy } from "../../src/npy/mod.ts";
import { fillTensor } from "../../src/tensor/fill.ts";
import { ROOT, run, temporaryDirectory } from "../cli.ts";
import { refuses, succeeds, wgconvHere } from "../support/in_process.ts";

const CONV = ["conv", "--problem", "mb1ic3ih8oc4kh3", "--device", "cpu"];
const RED = "\x1b[31m";
const GREEN = "\x1b[32m";

/** A record of a case that passes. */
const RECORD = JSON.stringify({
  schema: 1,
  kind: "case",
  provider: "wgconv",
  problem: "mb1ic3ih8oc4oh6kh3",
  op: "fwd",
  algorithm: "direct",
  dtype: "f32",
  layout: "nchw",
  time_ms: { median: 1, samples: [1] },
  verdict: "pass",
});

Deno.test("--quiet leaves out reports and notes, not errors and not what was asked for", async () => {
  const loud = await wgconvHere(CONV);
  assert.match(loud.stdout, /^problem /);
  assert.deepEqual(await wgconvHere([...CONV, "--quiet"]), {
    code: EXIT.ok,
    stdout: "",
    stderr: "",
  });
  const { stdout } = await wgconvHere(["--quiet", ...CONV, "--json"]);
  assert.equal(JSON.parse(stdout).kind, "case");
  const planned = await wgconvHere(["plan", "--problem", "mb1ic3ih8oc4kh3", "--quiet"]);
  assert.match(planned.stdout, /^problem /);
  const wrong = await wgconvHere(["conv", "--problem", "x", "--quiet"]);
  assert.match(wrong.stderr, /^wgconv: Cannot parse problem/);
});

Deno.test("--quiet hides no verdict: what failed is a line on stderr", async () => {
  using folder = temporaryDirectory();
  const at = (name: string) => `${folder.path}/${name}`;
  const problem = "mb1ic32ih28oc8kh3ph1";
  // A tile whose results are no use.
  const bad = [
    ...["--algorithm", "winograd2d-nonfused", "--tile", "F(14x14,3x3)"],
    ...["--max-bound-ratio", "1e9", "--runs", "1", "--quiet"],
  ];
  const lines: [args: string[], said: RegExp][] = [
    [
      ["conv", "--problem", problem, "--fill", "normal", ...bad],
      /^fail: fwd mb1ic32ih28oc8oh28kh3ph1 winograd2d-nonfused: error over [^\n]+\n$/,
    ],
    [
      ["bench", problem, "--fill", "normal", "--jsonl", at("out.jsonl"), ...bad],
      /^fail: fwd mb1ic32ih28oc8oh28kh3ph1 winograd2d-nonfused: error over [^\n]+\n$/,
    ],
  ];
  await writeNpy(at("x.npy"), fillTensor("f32", [1, 3, 8, 8], "uniform01", 1));
  await writeNpy(at("w.npy"), fillTensor("f32", [4, 5, 3, 3], "uniform01", 1));
  const many = ["--input", at("x*.npy"), "--filter", at("w.npy"), "--output", at("out")];
  lines.push([
    ["conv", ...many, "--device", "cpu", "--quiet"],
    /^error: .*x\.npy: Cannot convolve: filter has 5 input channels, .*\n$/,
  ]);
  for (const [args, said] of lines) {
    const { code, stdout, stderr } = await wgconvHere(args);
    assert.equal(code, EXIT.accuracy, stderr);
    assert.equal(stdout, "");
    assert.match(stderr, said);
  }
});

Deno.test("--quiet checks say what a baseline was more exact at", async () => {
  using folder = temporaryDirectory();
  const at = (name: string) => `${folder.path}/${name}`;
  Deno.writeTextFileSync(at("suite"), "mb1ic8ih9oc8kh3\n");
  const held = ["--baseline", at("base.json"), "--op", "fwd", "--layout", "nchw"];
  const args = ["check", "--suite", at("suite"), "--algorithm", "direct", ...held];
  assert.equal((await wgconvHere([...args, "--update", "--quiet"])).code, EXIT.ok);
  const baseline = JSON.parse(Deno.readTextFileSync(at("base.json")));
  for (const one of Object.values<{ rel_l2: number }>(baseline.cases)) one.rel_l2 /= 4;
  Deno.writeTextFileSync(at("base.json"), JSON.stringify(baseline));
  const { code, stdout, stderr } = await wgconvHere([...args, "--quiet"]);
  assert.equal(code, EXIT.accuracy, stderr);
  assert.equal(stdout, "");
  assert.match(stderr, /^regressed: fwd nchw f32 direct mb1[^\n]*: relative L2 error [^\n]+\n$/);
});

Deno.test("--color always shows colours, and nothing else of a terminal's controls", async () => {
  using folder = temporaryDirectory();
  const path = `${folder.path}/records.jsonl`;
  Deno.writeTextFileSync(path, `${RECORD}\n`);
  const colored = await wgconvHere(["report", path, "--color", "always"]);
  assert.ok(colored.stdout.includes(`${GREEN}pass`), colored.stdout);
  await succeeds(["compare", path, path, "--color=ALWAYS"]);
  const wrong = await wgconvHere(["conv", "--problem", "\x1b[32mx", "--color", "always"]);
  assert.ok(wrong.stderr.startsWith(`${RED}wgconv:`), wrong.stderr);
  assert.ok(!wrong.stderr.includes(GREEN), wrong.stderr);
  for (const when of ["never", "auto"]) {
    // This process writes to no terminal.
    const { stdout } = await wgconvHere(["report", path, "--color", when]);
    assert.ok(!stdout.includes("\x1b"), stdout);
  }
  await refuses(["report", path, "--color", "sometimes"], /expected auto, always, never/);
});

Deno.test({
  name: "a terminal shows which case runs, and how long the others will take",
  ignore: !existsSync("/usr/bin/script"),
  async fn() {
    const line =
      `run -A --quiet --cached-only "${ROOT}main.ts" bench mb1ic4,6,8ih9oc4kh3 --op all --fill-ms 50`;
    const { stdout } = await run(
      "script",
      ["-qec", `stty cols 60; ${Deno.execPath()} ${line}`, "/dev/null"],
      { env: { XDG_RUNTIME_DIR: "/tmp", NO_COLOR: "" } },
    );
    const lines = stdout.replaceAll("\r\x1b[K", "\n").split(/\r?\n/)
      .map((text) => stripVTControlCharacters(text));
    // Of sentences a terminal may make several lines.
    const shown = lines.filter((text) => /^(case|problem|mb1ic)/.test(text));
    assert.ok(shown.length >= 18, stdout);
    assert.ok(shown.every(({ length }) => length <= 60), shown.join("\n"));
    assert.match(stdout, /\r.\[Kcase \d of 9, about \d+ s left: mb1ic\dih9oc4oh7kh3 (fwd|bwd-)/);
    assert.ok(stdout.includes(`${GREEN}pass`), stdout);
  },
});

Deno.test({
  name: "a terminal shows which rival of how many tune tries",
  ignore: !existsSync("/usr/bin/script"),
  async fn() {
    using folder = temporaryDirectory();
    const tune = "tune mb1ic8ih20oc16kh3 --algorithm direct,im2win --policy auto --runs 9";
    const line = `run -A --quiet --cached-only "${ROOT}main.ts" ${tune} --output ${folder.path}/t`;
    const { stdout } = await run(
      "script",
      ["-qec", `stty cols 200; ${Deno.execPath()} ${line}`, "/dev/null"],
      { env: { XDG_RUNTIME_DIR: "/tmp" } },
    );
    assert.match(
      stdout,
      /\r.\[Kproblem 1 of 1: mb1ic8ih20oc16oh18kh3 fwd, [a-z ]+: \d of \d, (auto|direct|im2win)/,
    );
  },
});

Deno.test("every command has --quiet and --color, and all but completions and suites, which other programs read, --json", async () => {
  const all = allCommands(commandTree(await wholeProgram()))
    .filter(({ path }) => path.at(-1) !== "help");
  const lacking = all.flatMap(({ path, options, commands }) => {
    const names = options.flatMap((option) => option.names);
    const wanted = ["--quiet", "--color", ...(commands.length === 0 ? ["--json"] : [])];
    return wanted.filter((name) => !names.includes(name)).map((name) => [...path, name].join(" "));
  });
  assert.deepEqual(lacking.sort(), ["wgconv completions --json", "wgconv layers --json"]);
});

Deno.test("commands print JSON where they print tables", async () => {
  using folder = temporaryDirectory();
  const path = `${folder.path}/records.jsonl`;
  Deno.writeTextFileSync(path, `${RECORD}\n`);
  const lines = [
    ["report", path],
    ["compare", path, path],
    ["transform", "F(2,3)"],
    ["plan", "--problem", "mb1ic3ih8oc4kh3"],
  ];
  for (const line of lines) {
    const { stdout } = await succeeds([...line, "--json"]);
    assert.equal(typeof JSON.parse(stdout), "object", line.join(" "));
  }
});
