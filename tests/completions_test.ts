import assert from "#assert";
import { commandTree } from "../src/cli/command_tree.ts";
import { offersOf } from "../src/cli/completions.ts";
import { wholeProgram } from "../src/cli/program.ts";
import { ROOT, run as start, temporaryDirectory, wgconv } from "./cli.ts";
import { refuses, succeeds, wgconvHere } from "./support/in_process.ts";

const MAIN = `${ROOT}main.ts`;

const root = commandTree(await wholeProgram());

/** What is offered for the last of these words. */
const offered = (...words: string[]) =>
  offersOf(root, words.slice(0, -1), words.at(-1)!).map(({ word }) => word);

Deno.test("commands, options, choices, lists and files are offered where they may stand", () => {
  const includes = (words: string[], ...expected: string[]) => {
    const got = offered(...words);
    for (const word of expected) assert.ok(got.includes(word), `${words}: ${got}`);
  };
  includes([""], "conv", "bench", "tensor", "completions", "help");
  assert.deepEqual(offered("ben"), ["bench"]);
  includes(["--"], "--version", "--debug", "--help");
  includes(["conv", "--"], "--input", "--algorithm", "--check");
  assert.deepEqual(offered("conv", "--grad"), ["--grad-output"]);
  assert.deepEqual(offered("conv", "--op", "bwd-"), ["bwd-data", "bwd-filter"]);
  assert.deepEqual(offered("conv", "--op", "=", "f"), ["fwd"]);
  assert.deepEqual(offered("conv", "--op=f"), ["--op=fwd"]);
  assert.deepEqual(offered("conv", "--padding", "s"), ["same", "same-lower"]);
  assert.deepEqual(offered("conv", "--op", "="), ["fwd", "bwd-data", "bwd-filter"]);
  includes(["--debug", "conv", "--algorithm", ""], "auto", "direct", "implicit-gemm");
  assert.deepEqual(offered("bench", "--op", "fwd,bwd-d"), ["fwd,bwd-data"]);
  includes(["bench", "--layout", ""], "nhwc", "all");
  assert.deepEqual(offered("conv", "--input", "ph"), ["@file"]);
  assert.deepEqual(offered("conv", "--input=ph"), ["@file"]);
  assert.deepEqual(offered("conv", "--seed", ""), []);
  includes(["gemm", "--bias", "--transpose", ""], "nt");
  includes(["gemm", "--bias", "--tran"], "--transpose");
  includes(["tensor", ""], "make", "info", "convert", "diff", "show");
  includes(["tensor", "make", "x.npy", "--"], "--shape", "--fill");
  includes(["tensor", "make", "--dtype", ""], "f32", "f16");
  assert.deepEqual(offered("tensor", "info", "ph"), ["@file"]);
  assert.deepEqual(offered("report", "a.jsonl", "b.jsonl", ""), ["@file"]);
  assert.deepEqual(offered("completions", "z"), ["zsh"]);
  includes(["help", "c"], "conv", "compare");
  includes(["devices", "--backend", ""], "wgpu", "dawn");
});

Deno.test("the program answers what a script asks, with what is said of it in fish", async () => {
  const bash = await wgconvHere(["completions", "bash", "--", "conv", "--op", ":bwd-"]);
  assert.deepEqual([bash.code, bash.stdout], [0, "bwd-data\nbwd-filter\n"]);
  const fish = await wgconvHere(["completions", "fish", "--", ":devi"]);
  assert.match(fish.stdout, /^devices\tlist [^\n]*, [^\n]+\n$/);
  await refuses(["man"], /^wgconv: Cannot run "man": there is no such command; wgconv help, /);
});

/** Of each shell's script: how it registers itself, asks the program, and completes files. */
const SCRIPT_PARTS = {
  bash: [
    "complete -F _wgconv wgconv",
    '" completions bash -- "${COMP_WORDS[@]:1:COMP_CWORD - 1}" ":$current"',
    "compgen -f --",
  ],
  zsh: [
    "#compdef wgconv\n",
    '" completions zsh -- "${(@)words[2,CURRENT-1]}" ":${words[CURRENT]}"',
    "_files",
  ],
  fish: [
    "complete -c wgconv -f -a '(__wgconv_offers)'",
    'completions fish -- $words[2..-1] ":$current"',
    '__fish_complete_path "$current"',
  ],
  powershell: [
    "Register-ArgumentCompleter -Native -CommandName wgconv",
    `completions powershell '--' @($words | Select-Object -Skip 1) ":$wordToComplete"`,
    "$_ -ne '@file'",
  ],
};

Deno.test("each shell's script registers itself, asks the program and completes files", async () => {
  for (const [shell, parts] of Object.entries(SCRIPT_PARTS)) {
    const { stdout } = await succeeds(["completions", shell]);
    for (const part of parts) assert.ok(stdout.includes(part), `${shell} without ${part}`);
    assert.doesNotMatch(stdout, /undefined|\\\$/);
    const others = Object.keys(SCRIPT_PARTS).filter((other) => other !== shell);
    for (const other of others) assert.ok(!stdout.includes(`completions ${other}`), other);
  }
});

/** Whether a program is on this machine. */
async function installed(command: string): Promise<boolean> {
  try {
    return (await start(command, ["--version"])).code === 0;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/** A folder with a file, the shell's script, and a wgconv for its PATH. */
async function shellFolder(shell: string) {
  const temporary = temporaryDirectory();
  const { path } = temporary;
  const { code, stdout, stderr } = await wgconv(["completions", shell]);
  assert.equal(code, 0, stderr);
  await Deno.mkdir(`${path}/bin`);
  await Deno.writeTextFile(`${path}/photo.npy`, "");
  await Deno.writeTextFile(`${path}/script`, stdout);
  const program = `#!/bin/sh\nexec "${Deno.execPath()}" run -A --no-check "${MAIN}" "$@"\n`;
  await Deno.writeTextFile(`${path}/bin/wgconv`, program, { mode: 0o755 });
  /** Runs the shell; gives the lines it prints. */
  const run = async (...args: string[]): Promise<string[]> => {
    const env = { PATH: `${path}/bin:${Deno.env.get("PATH")}` };
    const { code, stdout, stderr } = await start(shell, args, { cwd: path, env });
    assert.equal(code, 0, stderr);
    assert.equal(stderr, "");
    return stdout.split("\n").filter((line) => line !== "");
  };
  return { run, file: `${path}/script`, [Symbol.dispose]: () => temporary[Symbol.dispose]() };
}

/** What bash offers for the last of these words, split as bash splits them. */
const BASH = `
source "$1"; shift
[[ $(complete -p wgconv) == 'complete -F _wgconv wgconv' ]] || exit 1
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_wgconv
printf '%s\\n' "\${COMPREPLY[@]}"`;

Deno.test({
  name: "bash completes by asking the program",
  ignore: !await installed("bash"),
  fn: async () => {
    using shell = await shellFolder("bash");
    const offered = (...words: string[]) =>
      shell.run("--norc", "-c", BASH, "bash", shell.file, "wgconv", ...words);
    assert.deepEqual(await offered("ben"), ["bench"]);
    assert.deepEqual(await offered("conv", "--tile", "F(2x2,3x3)", "--op", "=", "f"), ["fwd"]);
    assert.deepEqual(await offered("conv", "--input", "ph"), ["photo.npy"]);
    assert.deepEqual(await offered("conv", "--input", "=", "ph"), ["photo.npy"]);
    assert.deepEqual(await offered("conv", "--seed", ""), []);
  },
});

/** A terminal in which zsh completes the line `$2`: what it shows until it shows `$3`, for 20 s at most. */
const ZSH = `
zmodload zsh/zpty
zpty z zsh -f
zpty -w z "PS1= ; autoload -Uz compinit; compinit -D -u; source \${(q)1}"
zpty -w z "print re''ady"
zpty -r z out '*ready*'
zpty -n -w z "$2"$'\\t\\t'
shown=
for i in {1..200}; do
  while zpty -rt z out; do shown+=$out; done
  [[ $shown == *$3* ]] && break
  sleep 0.1
done
zpty -d z
print -rn -- "$shown"`;

Deno.test({
  name: "zsh completes by asking the program",
  ignore: !await installed("zsh"),
  fn: async () => {
    using shell = await shellFolder("zsh");
    for (
      const [line, expected] of [
        ["wgconv ", "devices"],
        ["wgconv conv --op bwd", "bwd-filter"],
        ["wgconv conv --op=bwd", "bwd-filter"],
        ["wgconv conv --input ph", "photo.npy"],
        ["wgconv conv --input=ph", "photo.npy"],
      ] as const
    ) {
      const shown = await shell.run("-f", "-c", ZSH, "zsh", shell.file, line, expected);
      assert.ok(shown.join("\n").includes(expected), `${line}: ${shown}`);
    }
  },
});

Deno.test({
  name: "fish completes by asking the program",
  ignore: !await installed("fish"),
  fn: async () => {
    using shell = await shellFolder("fish");
    const offered = async (line: string) => {
      const args = ["--no-config", "-c", "source $argv[2]; complete -C $argv[1]", "--"];
      return (await shell.run(...args, line, shell.file)).map((offer) => offer.split("\t")[0]);
    };
    assert.ok((await offered("wgconv ")).includes("devices"));
    assert.deepEqual(await offered("wgconv conv --op bwd-"), ["bwd-data", "bwd-filter"]);
    assert.deepEqual(await offered("wgconv conv --input ph"), ["photo.npy"]);
  },
});

/** What PowerShell offers at the end of the line `$args[1]`, a word a line. */
const POWERSHELL = `
. $args[0]
(TabExpansion2 -inputScript $args[1] -cursorColumn $args[1].Length).CompletionMatches.CompletionText`;

Deno.test({
  name: "PowerShell completes by asking the program",
  ignore: !await installed("pwsh"),
  fn: async () => {
    using shell = await shellFolder("powershell");
    const file = shell.file.replace(/script$/, "wgconv.ps1");
    await Deno.copyFile(shell.file, file);
    const program = shell.file.replace(/script$/, "complete.ps1");
    await Deno.writeTextFile(program, POWERSHELL);
    const offered = async (line: string) =>
      (await start("pwsh", ["-NoProfile", "-File", program, file, line])).stdout.split("\n");
    assert.ok((await offered("wgconv ")).includes("devices"));
    assert.ok((await offered("wgconv conv --op bwd")).includes("bwd-filter"));
  },
});
