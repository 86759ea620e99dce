import assert from "#assert";
import { existsSync } from "node:fs";
import { allCommands, commandTree } from "../src/cli/command_tree.ts";
import { wholeProgram } from "../src/cli/program.ts";
import { EXIT } from "../src/errors.ts";
import { ROOT, run, temporaryDirectory } from "./cli.ts";
import { wgconvHere } from "./support/in_process.ts";

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

Deno.test("--color always shows colours, and nothing else of a terminal's controls", async () => {
  using folder = temporaryDirectory();
  const path = `${folder.path}/records.jsonl`;
  Deno.writeTextFileSync(path, `${RECORD}\n`);
  const colored = await wgconvHere(["report", path, "--color", "always"]);
  assert.ok(colored.stdout.includes(`${GREEN}pass`), colored.stdout);
  const compared = await wgconvHere(["compare", path, path, "--color=ALWAYS"]);
  assert.equal(compared.code, EXIT.ok, compared.stderr);
  const wrong = await wgconvHere(["conv", "--problem", "\x1b[32mx", "--color", "always"]);
  assert.ok(wrong.stderr.startsWith(`${RED}wgconv:`), wrong.stderr);
  assert.ok(!wrong.stderr.includes(GREEN), wrong.stderr);
  for (const when of ["never", "auto"]) {
    // This process writes to no terminal.
    const { stdout } = await wgconvHere(["report", path, "--color", when]);
    assert.ok(!stdout.includes("\x1b"), stdout);
  }
  const unknown = await wgconvHere(["report", path, "--color", "sometimes"]);
  assert.equal(unknown.code, EXIT.usage);
  assert.match(unknown.stderr, /expected auto, always, never/);
});

Deno.test({
  name: "a terminal shows which case runs, and how long the others will take",
  ignore: !existsSync("/usr/bin/script"),
  async fn() {
    const line = `run -A --quiet --cached-only "${ROOT}main.ts" bench mb1ic4,6,8ih9oc4kh3 --op all`;
    const { stdout } = await run(
      "script",
      ["-qec", `${Deno.execPath()} ${line}`, "/dev/null"],
      { env: { XDG_RUNTIME_DIR: "/tmp", NO_COLOR: "" } },
    );
    assert.match(stdout, /\r.\[Kcase \d of 9, about \d+ s left: /);
    assert.ok(stdout.includes(`${GREEN}pass`), stdout);
  },
});

Deno.test("every command has --quiet and --color, and all but the script of completions --json", async () => {
  const all = allCommands(commandTree(await wholeProgram()))
    .filter(({ path }) => path.at(-1) !== "help");
  const lacking = all.flatMap(({ path, options, commands }) => {
    const names = options.flatMap((option) => option.names);
    const wanted = ["--quiet", "--color", ...(commands.length === 0 ? ["--json"] : [])];
    return wanted.filter((name) => !names.includes(name)).map((name) => [...path, name].join(" "));
  });
  assert.deepEqual(lacking, ["wgconv completions --json"]);
});

Deno.test("commands print JSON where they print tables", async () => {
  using folder = temporaryDirectory();
  const path = `${folder.path}/records.jsonl`;
  Deno.writeTextFileSync(path, `${RECORD}\n`);
  const lines = [
    ["report", path],
    ["compare", path, path],
    ["man"],
    ["transform", "F(2,3)"],
    ["plan", "--problem", "mb1ic3ih8oc4kh3"],
  ];
  for (const line of lines) {
    const { code, stdout, stderr } = await wgconvHere([...line, "--json"]);
    assert.equal(code, EXIT.ok, stderr);
    assert.equal(typeof JSON.parse(stdout), "object", line.join(" "));
  }
});
