import { createRequire } from "node:module";
import { dirname, join, resolve } from "#path";
import { UnsupportedError } from "../errors.ts";

/** What the addon of the npm package `webgpu` exports, as far as it is used. */
export interface DawnAddon {
  create(flags: string[]): GPU;
  readonly globals: Readonly<Record<string, { prototype?: Record<string, unknown> } | undefined>>;
}

const NAME = "webgpu";
const VERSION = "0.6.2";

/**
 * Loads Dawn's addon: the one `WGCONV_DAWN` names, else the one in Deno's npm cache, else from npm.
 *
 * @throws {UnsupportedError} where it cannot be had
 */
export async function loadAddon(): Promise<DawnAddon> {
  const named = Deno.env.get("WGCONV_DAWN");
  const path = named ? addonBeside(resolve(named)) : await addonFromNpm();
  try {
    return createRequire(import.meta.url)(path);
  } catch (cause) {
    // Without the modules that asked for it, and without the path again.
    const [said = ""] = (cause instanceof Error ? cause.message : String(cause)).split("\n");
    const reason = said.replace(` '${path}'`, "");
    throw new UnsupportedError(
      `Cannot load Dawn from ${path}: ${reason}; WGCONV_DAWN can name the index.js of ` +
        `the npm package ${NAME}`,
      { cause },
    );
  }
}

/** The addon for this machine beside the package's `index.js`; a path to an addon stays as it is. */
export function addonBeside(path: string): string {
  if (path.endsWith(".node")) return path;
  const { os, arch } = Deno.build;
  const platforms = {
    darwin: "darwin-universal",
    windows: `win32-${arch === "aarch64" ? "arm64" : "x64"}`,
  };
  const platform = os === "darwin" || os === "windows"
    ? platforms[os]
    : `${os}-${arch === "aarch64" ? "arm64" : "x64"}`;
  return join(dirname(path), "dist", platform, "dawn.node");
}

/**
 * Finds the package in Deno's cache, downloading it first where it is not there. An `import("npm:…")` would
 * enter it into `deno.lock`, and what stands there is downloaded by every run of the program.
 */
async function addonFromNpm(): Promise<string> {
  if (Deno.permissions.querySync({ name: "run" }).state !== "granted") {
    throw new UnsupportedError(
      "Cannot load Dawn: this program may not download it; set WGCONV_DAWN to the index.js of " +
        `the npm package ${NAME}`,
    );
  }
  const info = JSON.parse(await runDeno(["info", "--json", "--no-config"]));
  const cached = () => findPackage(String(info.npmCache));
  if (cached() === undefined) {
    await runDeno(["cache", "--quiet", "--no-config", "--no-lock", `npm:${NAME}@${VERSION}`]);
  }
  const path = cached();
  if (path === undefined) throw new UnsupportedError(`Cannot load Dawn: npm has no ${NAME}`);
  return addonBeside(path);
}

/** The package's `index.js` in a cache, which has a folder for each registry. */
function findPackage(npmCache: string): string | undefined {
  try {
    return [...Deno.readDirSync(npmCache)]
      .map((registry) => join(npmCache, registry.name, NAME, VERSION, "index.js"))
      .find(isFile);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

function isFile(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}

/** Runs this Deno beside the program; gives its output. */
async function runDeno(args: string[]): Promise<string> {
  const decoder = new TextDecoder();
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args,
    env: { NO_COLOR: "1", DENO_NO_PACKAGE_JSON: "1" },
  }).output();
  if (success) return decoder.decode(stdout);
  throw new UnsupportedError(
    `Cannot load Dawn: \`deno ${args.join(" ")}\` failed: ${decoder.decode(stderr).trim()}; ` +
      `without a network set WGCONV_DAWN to the index.js of the npm package ${NAME}`,
  );
}
