/** The environment of tests, and of the programs that tasks and tests start. */
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deviceVariables } from "../src/gpu/load_provider.ts";

/** In place of the user's, whose calibrations and tunings would choose otherwise than tests expect; drivers fill it. */
const CACHE = join(tmpdir(), `wgconv-test-cache-${Deno.uid() ?? "user"}`);

let foundDirectory: string | undefined;

/** Where Deno keeps what it has fetched. */
export function denoDirectory(): string {
  if (foundDirectory === undefined) {
    const { stdout } = new Deno.Command(Deno.execPath(), { args: ["info", "--json"] }).outputSync();
    foundDirectory = JSON.parse(new TextDecoder().decode(stdout)).denoDir as string;
  }
  return foundDirectory;
}

/**
 * What is set beside what this process has. Tests are threads of one process: none of them may have to set what a driver
 * reads in another, so that it is set from the start.
 */
export function taskEnvironment(): Record<string, string> {
  return {
    ...deviceVariables(),
    NO_COLOR: "1",
    // Also where the user has one, which may not be there.
    XDG_RUNTIME_DIR: "/tmp",
    XDG_CACHE_HOME: CACHE,
    LOCALAPPDATA: CACHE,
    // It would be below the cache.
    DENO_DIR: denoDirectory(),
  };
}
