/** Endless, overlong and malicious input: one harmless sentence and exit 2, at once. */

import assert from "#assert";
import { join } from "node:path";
import { MAX_MESSAGE } from "../../src/printable.ts";
import { type CliResult, ROOT, run, temporaryDirectory, wgconv } from "../cli.ts";
import { harmful } from "../support/harmful.ts";

const UNIX = { ignore: Deno.build.os === "windows" };
const PROBLEM = "mb1ic3ih8oc3kh3";
const EVIL = "\x1b[2J\x9b31m\u202egpj";

/** One sentence that may be printed anywhere, and exit 2. */
function refused({ code, stderr }: CliResult, what: string): void {
  assert.equal(code, 2, `${what}: ${stderr}`);
  assert.match(stderr, /^wgconv: [^\n]+\n( {2}[^\n]*\n *\^\n)?$/, what);
  assert(stderr.length <= MAX_MESSAGE + 1, `${what}: ${stderr.length} characters`);
  assert(harmful(stderr) === undefined, what);
}

/** Runs command lines, a few side by side. */
async function refuseAll(lines: readonly (readonly string[])[], cwd: string): Promise<void> {
  for (let i = 0; i < lines.length; i += 4) {
    const some = lines.slice(i, i + 4);
    const results = await Promise.all(some.map((line) => wgconv(line, { cwd })));
    results.forEach((result, j) => refused(result, some[j]!.join(" ").slice(0, 100)));
  }
}

Deno.test("an endless device is refused as other bad inputs are", UNIX, async () => {
  using folder = temporaryDirectory();
  const made = await wgconv(["tensor", "make", "x.npy", "--shape", "1,3,8,8"], {
    cwd: folder.path,
  });
  assert.equal(made.code, 0, made.stderr);
  await refuseAll([
    ["conv", "--input", "/dev/zero", "--filter", "x.npy"],
    ["conv", "--problem", PROBLEM, "--tuning", "/dev/zero"],
    ["gemm", "--a", "x.npy", "--b", "/dev/zero"],
    ["gemm", "--suite", "/dev/zero"],
    ["bench", "--suite", "/dev/zero"],
    ["bench", PROBLEM, "--jsonl", "/dev/zero", "--resume"],
    ["check", "--suite", "/dev/zero"],
    ["check", "--baseline", "/dev/zero"],
    ["plan", "--problem", PROBLEM, "--limits", "/dev/zero"],
    ["report", "/dev/zero"],
    ["compare", "/dev/zero", "/dev/zero"],
    ["history", "/dev/zero"],
    ["tune", PROBLEM, "--output", "/dev/zero"],
    ["tensor", "info", "/dev/zero"],
    ["tensor", "convert", "/dev/zero", "y.npy"],
    ["tensor", "diff", "/dev/zero", "x.npy"],
    ["tensor", "show", "/dev/zero", "y.png"],
  ], folder.path);
});

Deno.test("an endless stream of text or tensor is refused on stdin", UNIX, async () => {
  const endless = (producer: string, args: string) => {
    const script = `${producer} | "$0" run -A --cached-only --quiet "$1" ${args}`;
    const options = { env: { NO_COLOR: "1", XDG_RUNTIME_DIR: "/tmp" } };
    return run("sh", ["-c", script, Deno.execPath(), `${ROOT}main.ts`], options);
  };
  refused(await endless("yes '{}'", "report /dev/stdin"), "report");
  refused(await endless("yes", "tensor info -"), "tensor info");
});

Deno.test("a name of 300 bytes is refused as other files are", UNIX, async () => {
  using folder = temporaryDirectory();
  const long = "n".repeat(300);
  await refuseAll([
    ["conv", "--input", long, "--filter", long],
    ["conv", "--problem", PROBLEM, "--device", "cpu", "--output", long],
    ["gemm", "--suite", long],
    ["bench", "--suite", long],
    ["check", "--baseline", long],
    ["report", long],
    ["tensor", "make", long, "--shape", "3"],
    ["tensor", "info", `${long}.npz:x`],
  ], folder.path);
});

Deno.test(
  "control characters of names and options are escaped, a long value is shortened",
  UNIX,
  async () => {
    using folder = temporaryDirectory();
    const long = "v".repeat(1000);
    await Deno.writeTextFile(join(folder.path, "suite.txt"), `${PROBLEM} mb1${EVIL}${long}\n`);
    await refuseAll([
      ["tensor", "info", `${EVIL}.npy`],
      [`--${EVIL}`],
      ["conv", `--${EVIL}${long}`],
      ["conv", "--op", `fwd\nwgconv: all is well ${long}`],
      [`${EVIL}${long}`],
      ["conv", "--problem", `mb1${long}${EVIL}`],
      ["bench", "--suite", "suite.txt"],
      ["plan", "--problem", `${PROBLEM}n"${EVIL}"`, "--algorithm", "winrs"],
    ], folder.path);
    const made = await wgconv(["tensor", "make", `${EVIL}.npy`, "--shape", "3"], {
      cwd: folder.path,
    });
    assert.deepEqual([made.code, harmful(made.stdout) !== undefined], [0, false]);
  },
);

Deno.test("control characters of records are escaped in every view", async () => {
  using folder = temporaryDirectory();
  const record = {
    ...{
      schema: 1,
      kind: "case",
      provider: `p${EVIL}`,
      problem: `${PROBLEM}n"${EVIL}"`,
      op: "fwd",
    },
    ...{
      algorithm: `a${EVIL}`,
      dtype: "f32",
      layout: "nchw",
      kernel: `k${EVIL}`,
      verdict: "error",
    },
    message: `Cannot run: ${EVIL}`,
  };
  const path = join(folder.path, "run.jsonl");
  await Deno.writeTextFile(path, `${JSON.stringify(record)}\n`);
  for (const format of ["table", "csv", "tsv", "markdown", "html"]) {
    const { code, stdout, stderr } = await wgconv(["report", path, "--format", format]);
    assert.equal(code, 0, stderr);
    assert(harmful(stdout.replaceAll("\r\n", "\n")) === undefined, format);
    // Markdown takes what would begin a link apart, too.
    assert(stdout.includes(format === "markdown" ? "\\u001b" : "\\u001b[2J"), format);
  }
  const { stdout } = await wgconv(["compare", path, path]);
  assert(stdout.includes("\\u001b[2J") && harmful(stdout) === undefined);
});
