/** Starts processes for tests: quiet, offline, and never for ever. */
import { fileURLToPath } from "node:url";
import { taskEnvironment } from "../tasks/environment.ts";

// A plain `deno test` runs as the task does: the user's tuning and calibrations are neither read nor written.
if (!/wgconv-test-cache/.test(Deno.env.get("XDG_CACHE_HOME") ?? "")) {
  for (const [name, value] of Object.entries(taskEnvironment())) Deno.env.set(name, value);
}

/** The repository's folder, with a slash at its end. */
export const ROOT = fileURLToPath(new URL("../", import.meta.url));

const MAIN = `${ROOT}main.ts`;

/**
 * Seconds after which a child is killed and its test fails. It is there so that nothing waits for ever, and is many
 * times what the slowest child takes on a machine that is busy with something else.
 */
const DEADLINE_S = 300;

export interface CliResult {
  readonly code: number;
  readonly signal: Deno.Signal | null;
  readonly stdout: string;
  readonly stderr: string;
  /** stdout as it came. */
  readonly bytes: Uint8Array<ArrayBuffer>;
}

export interface CliOptions {
  readonly env?: Record<string, string>;
  readonly clearEnv?: boolean;
  readonly cwd?: string;
  /** What the process reads from stdin; nothing unless given. */
  readonly input?: Uint8Array<ArrayBuffer> | undefined;
  /** Seconds. */
  readonly deadline?: number;
}

/** The environment of a process that finds no Vulkan driver. */
export const NO_DRIVER = { VK_DRIVER_FILES: "none.json", VK_ICD_FILENAMES: "none.json" };

/** A command line: words, or a text that has them between spaces. */
export type Line = string | readonly string[];

export function wordsOf(line: Line): readonly string[] {
  return typeof line === "string" ? line.trim().split(/ +/) : line;
}

/** Runs `wgconv`. */
export function wgconv(line: Line, options: CliOptions = {}): Promise<CliResult> {
  return deno(["run", "-A", MAIN, ...wordsOf(line)], options);
}

/** Runs `deno ...args`. */
export function deno(args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  return run(Deno.execPath(), offline(args), inEnvironment(options));
}

/** Starts `wgconv ...args`; the caller talks to it. */
export function startWgconv(
  args: readonly string[],
  options: Deno.CommandOptions = {},
): Deno.ChildProcess {
  return startDeno(["run", "-A", MAIN, ...args], options);
}

/** Starts `deno ...args`; the caller talks to it. */
export function startDeno(
  args: readonly string[],
  options: Deno.CommandOptions = {},
): Deno.ChildProcess {
  return start(Deno.execPath(), offline(args), inEnvironment(options));
}

/**
 * Runs a program to its end.
 *
 * @throws {Error} where it is not done at its deadline
 */
export async function run(
  command: string,
  args: readonly string[],
  { input, deadline = DEADLINE_S, ...options }: CliOptions = {},
): Promise<CliResult> {
  const stdin = input ? "piped" : "null";
  const pipes = { stdin, stdout: "piped", stderr: "piped" } as const;
  const late = Promise.withResolvers<never>();
  // It is said before the child is killed at the same deadline.
  const timer = setTimeout(() => {
    const line = [command, ...args].join(" ");
    late.reject(new Error(`Cannot wait for \`${line}\`: it is not done after ${deadline} s`));
  }, deadline * 1000);
  try {
    const child = start(command, args, { ...options, ...pipes }, deadline);
    const output = child.output();
    // What does not read its input to the end closes the pipe.
    if (input) await new Blob([input]).stream().pipeTo(child.stdin).catch(() => {});
    // A child of the child may hold the pipes open.
    const { code, signal, stdout, stderr } = await Promise.race([output, late.promise]);
    const decoder = new TextDecoder();
    const [said, complained] = [decoder.decode(stdout), decoder.decode(stderr)];
    return { code, signal, stdout: said, stderr: complained, bytes: stdout };
  } finally {
    clearTimeout(timer);
  }
}

/** Starts a program that is killed at its deadline. */
export function start(
  command: string,
  args: readonly string[],
  options: Deno.CommandOptions = {},
  deadline = DEADLINE_S,
): Deno.ChildProcess {
  const child = new Deno.Command(command, { ...options, args: [...args] }).spawn();
  const timer = setTimeout(() => child.kill("SIGKILL"), deadline * 1000);
  child.status.finally(() => clearTimeout(timer));
  return child;
}

/**
 * Waits until `done()` is so, while a process runs.
 *
 * @throws {Error} where the process ends before, as it does at its deadline
 */
export async function until(
  done: () => boolean | Promise<boolean>,
  child: Deno.ChildProcess,
): Promise<void> {
  let ended: Deno.CommandStatus | undefined;
  child.status.then((status) => ended = status);
  while (!await done()) {
    if (ended) throw new Error(`Cannot wait: the process ended with ${ended.signal ?? ended.code}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Deno's arguments with which it says nothing of its own and downloads nothing; `bundle` lacks one of them. */
function offline([command = "", ...rest]: readonly string[]): string[] {
  return [command, "--quiet", ...(command === "bundle" ? [] : ["--cached-only"]), ...rest];
}

function inEnvironment<Options extends { env?: Record<string, string> }>(
  options: Options,
): Options {
  return { ...options, env: { ...taskEnvironment(), ...options.env } };
}

/** A temporary directory that goes away with its scope. */
export function temporaryDirectory(): { path: string } & Disposable {
  const path = Deno.makeTempDirSync({ prefix: "wgconv-test-" });
  return { path, [Symbol.dispose]: () => Deno.removeSync(path, { recursive: true }) };
}

/** Runs a test in a temporary directory. */
export async function inFolder<T>(test: (folder: string) => Promise<T>): Promise<T> {
  using folder = temporaryDirectory();
  return await test(folder.path);
}
