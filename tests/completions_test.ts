import assert from "#assert";
import { allCommands, commandTree } from "../src/cli/command_tree.ts";
import { wholeProgram } from "../src/cli/program.ts";
import { run as start, temporaryDirectory, wgconv } from "./cli.ts";

async function script(shell: string): Promise<string> {
  const { code, stdout, stderr } = await wgconv(["completions", shell]);
  assert.equal(code, 0, stderr);
  return stdout;
}

/** Whether a program is on this machine. */
async function installed(command: string): Promise<boolean> {
  try {
    return (await start(command, ["--version"])).code === 0;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/** Runs a shell on a program; gives the lines it prints. */
async function run(command: string, args: readonly string[], cwd?: string): Promise<string[]> {
  const { code, stdout, stderr } = await start(command, args, cwd === undefined ? {} : { cwd });
  assert.equal(code, 0, stderr);
  assert.equal(stderr, "");
  return stdout.split("\n").filter((line) => line !== "");
}

/** What bash offers for the last of these words, split as bash splits them. */
const BASH = `
eval "$1"; shift
[[ $(complete -p wgconv) == 'complete -F _wgconv wgconv' ]] || exit 1
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_wgconv
printf '%s\\n' "\${COMPREPLY[@]}"`;

Deno.test("bash completes commands, options, choices, lists and files", async () => {
  const text = await script("bash");
  using temporary = temporaryDirectory();
  await Deno.writeTextFile(`${temporary.path}/photo.npy`, "");
  const offered = (...words: string[]) =>
    run("bash", ["--norc", "-c", BASH, "bash", text, "wgconv", ...words], temporary.path);
  const includes = async (words: string[], ...expected: string[]) => {
    const got = await offered(...words);
    for (const word of expected) assert.ok(got.includes(word), `${words}: ${got}`);
  };
  await includes([""], "conv", "bench", "tensor", "completions", "man", "help");
  assert.deepEqual(await offered("ben"), ["bench"]);
  await includes(["--"], "--version", "--debug", "--help");
  await includes(["conv", "--"], "--input", "--algorithm", "--check");
  assert.deepEqual(await offered("conv", "--grad"), ["--grad-output"]);
  assert.deepEqual(await offered("conv", "--op", "bwd-"), ["bwd-data", "bwd-filter"]);
  assert.deepEqual(await offered("conv", "--op", "=", "f"), ["fwd"]);
  assert.deepEqual(await offered("conv", "--padding", "s"), ["same", "same-lower"]);
  assert.deepEqual(await offered("conv", "--op", "="), ["fwd", "bwd-data", "bwd-filter"]);
  await includes(["--debug", "conv", "--algorithm", ""], "auto", "direct", "implicit-gemm");
  assert.deepEqual(await offered("bench", "--op", "fwd,bwd-d"), ["fwd,bwd-data"]);
  await includes(["bench", "--layout", ""], "nhwc", "all");
  assert.deepEqual(await offered("conv", "--input", "ph"), ["photo.npy"]);
  assert.deepEqual(await offered("conv", "--seed", ""), []);
  await includes(["tensor", ""], "make", "info", "convert", "diff", "show");
  await includes(["tensor", "make", "x.npy", "--"], "--shape", "--fill");
  await includes(["tensor", "make", "--dtype", ""], "f32", "f16");
  assert.deepEqual(await offered("tensor", "info", "ph"), ["photo.npy"]);
  assert.deepEqual(await offered("completions", "z"), ["zsh"]);
  await includes(["help", "c"], "conv", "compare");
  await includes(["devices", "--backend", ""], "wgpu", "dawn");
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

Deno.test("zsh's script is right, and completes where zsh is installed", async () => {
  const text = await script("zsh");
  assert.match(text, /^#compdef wgconv\n/);
  if (!await installed("zsh")) return;
  using temporary = temporaryDirectory();
  const file = `${temporary.path}/_wgconv`;
  await Deno.writeTextFile(file, text);
  await run("zsh", ["-n", file]);
  for (
    const [line, expected] of [
      ["wgconv ", "devices"],
      ["wgconv conv --op bwd", "bwd-filter"],
      ["wgconv tensor make --d", "--dtype"],
      ["wgconv completions f", "fish"],
    ] as const
  ) {
    const shown = await run("zsh", ["-f", "-c", ZSH, "zsh", file, line, expected], temporary.path);
    assert.ok(shown.join("\n").includes(expected), `${line}: ${shown}`);
  }
});

Deno.test("fish's script is right, and completes where fish is installed", async () => {
  const text = await script("fish");
  assert.match(text, /^complete -c wgconv -n '__wgconv_at conv' -l op -xa 'fwd /m);
  assert.match(text, /-l padding -xa 'same same-lower valid' /);
  if (!await installed("fish")) return;
  using temporary = temporaryDirectory();
  const file = `${temporary.path}/wgconv.fish`;
  await Deno.writeTextFile(file, text);
  await Deno.writeTextFile(`${temporary.path}/photo.npy`, "");
  const offered = async (line: string) => {
    const args = ["--no-config", "-c", "source $argv[2]; complete -C $argv[1]", "--", line, file];
    return (await run("fish", args, temporary.path)).map((offer) => offer.split("\t")[0]);
  };
  const commands = await offered("wgconv ");
  assert.ok(["conv", "tensor", "man"].every((name) => commands.includes(name)), commands.join());
  assert.deepEqual(await offered("wgconv conv --op bwd-"), ["bwd-data", "bwd-filter"]);
  assert.deepEqual(await offered("wgconv conv --grad"), ["--grad-output"]);
  assert.deepEqual(await offered("wgconv bench --op fwd,bwd-d"), ["fwd,bwd-data"]);
  assert.deepEqual(await offered("wgconv conv --input ph"), ["photo.npy"]);
  assert.ok((await offered("wgconv tensor ")).includes("make"));
  assert.ok((await offered("wgconv tensor make --dtype f1")).includes("f16"));
  assert.deepEqual(await offered("wgconv tensor info ph"), ["photo.npy"]);
  assert.deepEqual(await offered("wgconv completions z"), ["zsh"]);
});

/** What PowerShell offers at the end of the line `$args[1]`, a word a line. */
const POWERSHELL = `
. $args[0]
(TabExpansion2 -inputScript $args[1] -cursorColumn $args[1].Length).CompletionMatches.CompletionText`;

Deno.test("PowerShell's script has every command, option and choice, and completes where it is installed", async () => {
  const text = await script("powershell");
  const all = allCommands(commandTree(await wholeProgram()));
  const options = all.flatMap(({ path, options }) =>
    options.flatMap(({ names, value }) =>
      names.map((name) => ({ key: [...path.slice(1), name].join(" "), value }))
    )
  );
  assert.ok(options.length > 100, `${options.length} options`);
  for (const { key, value } of options) {
    if (value !== undefined) assert.ok(text.includes(`\n    '${key}' = @('`), key);
    if (value?.kind === "choice") {
      assert.ok(text.includes(`'${key}' = @('${value.choices.join("', '")}')\n`), key);
    }
  }
  // Keys of a table are one in letters of any case, and there once.
  for (const table of text.split("= @{\n").slice(1)) {
    const keys = [...table.split("\n  }")[0]!.matchAll(/^ {4}'([^']*)' = /gm)].map(([, key]) =>
      key!
    );
    assert.equal(new Set(keys.map((key) => key.toLowerCase())).size, keys.length, keys.join());
  }
  // Quotes pair up on every line but those of code, and brackets in the whole of it.
  const plain = text.replaceAll(/'(?:[^'\n]|'')*'/g, "").replaceAll(/^ *#.*$/gm, "");
  assert.ok(!plain.includes("'"), plain);
  for (const [open, close] of ["()", "{}", "[]"]) {
    assert.equal(plain.split(open!).length, plain.split(close!).length, `${open} and ${close}`);
  }
  if (!await installed("pwsh")) return;
  using temporary = temporaryDirectory();
  const file = `${temporary.path}/wgconv.ps1`;
  await Deno.writeTextFile(file, text);
  const program = `${temporary.path}/complete.ps1`;
  await Deno.writeTextFile(program, POWERSHELL);
  const offered = (line: string) => run("pwsh", ["-NoProfile", "-File", program, file, line]);
  assert.ok((await offered("wgconv ")).includes("devices"));
  assert.deepEqual(await offered("wgconv conv --op bwd"), ["bwd-data", "bwd-filter"]);
  assert.deepEqual(await offered("wgconv conv --op=f"), ["--op=fwd"]);
  assert.deepEqual(await offered("wgconv conv --grad"), ["--grad-output"]);
  assert.ok((await offered("wgconv tensor ")).includes("make"));
});

Deno.test("the manual page has every command and option, and troff has nothing to say", async () => {
  const { code, stdout: page, stderr } = await wgconv(["man"]);
  assert.equal(code, 0, stderr);
  assert.match(page, /^\.TH WGCONV 1 "" "wgconv \d+\.\d+\.\d+" "User Commands"\n/);
  const help = (await wgconv(["--help"])).stdout;
  const commands = [...help.matchAll(/^ {2}([a-z]+) /gm)].map(([, name]) => name!);
  assert.ok(commands.length >= 8, commands.join());
  for (const name of commands.filter((name) => name !== "help" && name !== "wgconv")) {
    assert.ok(page.includes(`.SS \\fBwgconv ${name}`), name);
  }
  for (const option of ["grad\\-output", "jsonl", "from\\-layout"]) {
    assert.ok(page.includes(`\\fB\\-\\-${option}\\fR`), option);
  }
  assert.doesNotMatch(page, /[^\n -~]/);
  if (!await installed("groff")) return;
  using temporary = temporaryDirectory();
  const file = `${temporary.path}/wgconv.1`;
  await Deno.writeTextFile(file, page);
  const text = (await run("groff", ["-man", "-Tutf8", "-ww", file])).join("\n");
  assert.match(text, /wgconv conv --input x\.npy --filter w\.npy/);
});
