/**
 * `deno task compile [--output dist/wgconv] [--level 9] [--stub]`: the program in one executable file, for machines
 * with neither Deno nor Node. `deno compile` makes it where its runtime `denort` can be had (`DENORT_BIN`, or a
 * download); else, or with `--stub`, it is a script with Deno and the program appended.
 */
import { parseArgs } from "node:util";
import { dirname, resolve } from "node:path";
import { VERSION } from "../mod.ts";
import { ALONE, PERMISSIONS } from "./compile_permissions.ts";
import { makeStandalone } from "./compile_stub.ts";

/** Seconds that `deno compile` may take, since a download may stand still. */
const PATIENCE = 90;

interface Outcome {
  readonly success: boolean;
  readonly stdout: string;
  readonly stderr: string;
}

async function run(command: string, args: readonly string[], seconds = 60): Promise<Outcome> {
  const decoder = new TextDecoder();
  const signal = AbortSignal.timeout(1000 * seconds);
  const { success, stdout, stderr } = await new Deno.Command(command, {
    args: [...args],
    cwd: new URL("..", import.meta.url),
    env: { NO_COLOR: "1" },
    stdin: "null",
    signal,
  }).output();
  const late = signal.aborted ? `it was not done after ${seconds} s` : "";
  return { success, stdout: decoder.decode(stdout), stderr: late || decoder.decode(stderr) };
}

/** What went wrong, of all that Deno said: the innermost cause it numbers, or its error. */
function reason(text: string): string {
  const lines = text.trim().split("\n");
  const cause = lines.findLast((line) => /^\s+\d+: [^<]/.test(line))?.replace(/^\s+\d+: /, "");
  return cause ?? lines.find((line) => line.startsWith("error: "))?.slice(7) ?? lines.at(-1) ?? "";
}

/** Bundles the program into one file. */
async function bundle(path: string): Promise<void> {
  const { success, stderr } = await run(Deno.execPath(), ["bundle", "--output", path, "main.ts"]);
  if (!success) throw new Error(`Cannot bundle: ${reason(stderr)}`);
}

/** Makes `output` with `deno compile`; says why where it cannot. Dawn is native code: --allow-ffi. */
async function denoCompile(script: string, output: string): Promise<string | undefined> {
  const flags = [...PERMISSIONS, "--allow-ffi", "--no-config", "--no-lock", "--no-npm"];
  const args = ["compile", ...flags, "--output", output, script];
  const { success, stderr } = await run(Deno.execPath(), args, PATIENCE);
  if (!success) return reason(stderr);
  const version = await run(output, ["--version"]);
  if (version.stdout.trim() === VERSION) return;
  return `what it made does not run: ${reason(version.stderr || version.stdout)}`;
}

const { values } = parseArgs({
  options: {
    output: { type: "string", default: "dist/wgconv" },
    level: { type: "string", default: "9" },
    stub: { type: "boolean", default: false },
  },
});
const output = resolve(values.output);
const directory = await Deno.makeTempDir({ prefix: "wgconv-compile-" });
try {
  const script = `${directory}/wgconv.js`;
  await bundle(script);
  await Deno.mkdir(dirname(output), { recursive: true });
  const why = values.stub ? "--stub" : await denoCompile(script, `${directory}/wgconv`);
  const made = `${directory}/wgconv`;
  if (why !== undefined) {
    if (!values.stub) console.log(`deno compile: ${why}; packing Deno itself`);
    const file = await makeStandalone({
      version: VERSION,
      deno: Deno.version.deno,
      executable: await Deno.readFile(Deno.execPath()),
      flags: [...ALONE, ...PERMISSIONS],
      bundle: await Deno.readFile(script),
      level: Number(values.level),
    });
    await Deno.writeFile(made, file, { mode: 0o755 });
  }
  const temporary = `${output}.tmp-${Deno.pid}`;
  await Deno.copyFile(made, temporary);
  await Deno.chmod(temporary, 0o755);
  await Deno.rename(temporary, output);
  const { size } = await Deno.stat(output);
  console.log(`${values.output}: ${(size / 2 ** 20).toFixed(1)} MiB`);
} finally {
  await Deno.remove(directory, { recursive: true });
}
