import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { UnsupportedError } from "../errors.ts";

/** What the addon of the npm package `webgpu` exports, as far as it is used. */
export interface DawnAddon {
  create(flags: string[]): GPU;
  readonly globals: Readonly<Record<string, { prototype?: Record<string, unknown> } | undefined>>;
}

const NAME = "webgpu";
const VERSION = "0.6.2";

/** SHA-256 of the package's addons: native code is loaded only if it is what npm had when the version was pinned. */
const ADDONS: Readonly<Record<string, string>> = {
  "darwin-universal": "f5b278f3dc65276bf1f8a667f91650d32585431d5b2d148ca729f67924c574a3",
  "linux-arm64": "474a272ac9be570b04fa3791576d32e56f574818e60190c6788a83be90233980",
  "linux-x64": "ab18a659f8325e874ea45c80347b64336d7f748601102753d2bc669fdecfd710",
  "win32-arm64": "d0ef6fe1551cd08fb0fee2a8281d38008434697e5d9a6f3bfdcbb9ab00755672",
  "win32-x64": "75fff5db8a7541ad7a2d22c468e6f8bc3614b87c3b649c8ce712f7f5148ef338",
};

/** What each kind of program is to be given: permissions, or the file where those are fixed. */
const HOW =
  `run it, or install it, with -A; of a compiled file set WGCONV_DAWN to the index.js that ` +
  `\`npm install ${NAME}@${VERSION}\` makes`;

/**
 * Loads Dawn's addon: the one `WGCONV_DAWN` names as it is, else the one in Deno's npm cache, else from npm.
 *
 * @throws {UnsupportedError} where it cannot be had
 */
export async function loadAddon(): Promise<DawnAddon> {
  const named = mayRead("WGCONV_DAWN") ? Deno.env.get("WGCONV_DAWN") : undefined;
  const path = named ? addonBeside(resolve(named)) : await fetchAddon();
  try {
    return createRequire(import.meta.url)(path);
  } catch (cause) {
    if (cause instanceof Deno.errors.NotCapable) {
      throw new UnsupportedError(
        `Cannot load Dawn from ${path}: this program may not load native code; ${HOW}`,
        { cause },
      );
    }
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
  return path.endsWith(".node") ? path : join(dirname(path), "dist", platform(), "dawn.node");
}

/** The package's name for this machine. */
function platform(): string {
  const { os, arch } = Deno.build;
  if (os === "darwin") return "darwin-universal";
  return `${os === "windows" ? "win32" : os}-${arch === "aarch64" ? "arm64" : "x64"}`;
}

/**
 * Finds the addon in Deno's npm cache, downloading the package first where it is not there. An `import("npm:…")` would
 * enter it into `deno.lock`, and what stands there is downloaded by every run of the program.
 *
 * @throws {UnsupportedError} where it cannot be had, or is not the one whose hash stands here
 */
export async function fetchAddon(): Promise<string> {
  if (Deno.permissions.querySync({ name: "run" }).state !== "granted") {
    throw new UnsupportedError(
      `Cannot load Dawn: this program may not start Deno, which downloads it; ${HOW}`,
    );
  }
  const info = JSON.parse(await runDeno(["info", "--json", "--no-config"]));
  const cached = () => findPackage(String(info.npmCache));
  if (cached() === undefined) {
    await runDeno(["cache", "--quiet", "--no-config", "--no-lock", `npm:${NAME}@${VERSION}`]);
  }
  const index = cached();
  if (index === undefined) throw new UnsupportedError(`Cannot load Dawn: npm has no ${NAME}`);
  const path = addonBeside(index);
  await verify(path);
  return path;
}

/** Whether the program sees a variable of the environment. */
function mayRead(variable: string): boolean {
  return Deno.permissions.querySync({ name: "env", variable }).state === "granted";
}

/** Holds an addon against the hash of its platform. */
async function verify(path: string): Promise<void> {
  const expected = ADDONS[platform()];
  if (expected === undefined) {
    throw new UnsupportedError(`Cannot load Dawn: ${NAME} has no addon for ${platform()}`);
  }
  const bytes = await Deno.readFile(path).catch((cause) => {
    throw new UnsupportedError(`Cannot load Dawn from ${path}: ${cause.message}`, { cause });
  });
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex();
  if (hash === expected) return;
  throw new UnsupportedError(
    `Cannot load Dawn: SHA-256 of ${path} is ${hash}, ${NAME} ${VERSION} has ${expected}; ` +
      "remove the file's package from the cache",
  );
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
