/** Runs the program in a process of its own, for tests. */

const MAIN = new URL("../main.ts", import.meta.url).pathname;

export interface CliResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CliOptions {
  readonly env?: Record<string, string>;
  readonly cwd?: string;
}

/** The environment of a process that finds no Vulkan driver. */
export const NO_DRIVER = { VK_DRIVER_FILES: "none.json", VK_ICD_FILENAMES: "none.json" };

/** Runs `wgconv ...args`. */
export function wgconv(args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  return deno(["run", "-A", MAIN, ...args], options);
}

/** Runs `deno ...args`. */
export async function deno(args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [...args],
    cwd: options.cwd,
    env: { NO_COLOR: "1", XDG_RUNTIME_DIR: "/tmp", ...options.env },
  }).output();
  const decoder = new TextDecoder();
  return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
}

/** A temporary directory that goes away with its scope. */
export function temporaryDirectory(): { path: string } & Disposable {
  const path = Deno.makeTempDirSync({ prefix: "wgconv-test-" });
  return { path, [Symbol.dispose]: () => Deno.removeSync(path, { recursive: true }) };
}
