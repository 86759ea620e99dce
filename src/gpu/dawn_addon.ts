import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { UnsupportedError } from "../errors.ts";
import { environmentValue, fetchPackage, type NativePackage, verifyFile } from "../npm_package.ts";

/** What the addon of the npm package `webgpu` exports, as far as it is used. */
interface DawnAddon {
  create(flags: string[]): GPU;
  readonly globals: Readonly<Record<string, { prototype?: Record<string, unknown> } | undefined>>;
}

const NAME = "webgpu";
const VERSION = "0.6.2";

/** SHA-256 of the package's addons. */
const ADDONS: Readonly<Record<string, string>> = {
  "darwin-universal": "f5b278f3dc65276bf1f8a667f91650d32585431d5b2d148ca729f67924c574a3",
  "linux-arm64": "474a272ac9be570b04fa3791576d32e56f574818e60190c6788a83be90233980",
  "linux-x64": "ab18a659f8325e874ea45c80347b64336d7f748601102753d2bc669fdecfd710",
  "win32-arm64": "d0ef6fe1551cd08fb0fee2a8281d38008434697e5d9a6f3bfdcbb9ab00755672",
  "win32-x64": "75fff5db8a7541ad7a2d22c468e6f8bc3614b87c3b649c8ce712f7f5148ef338",
};

/** What is fetched. */
export const DAWN: NativePackage = {
  name: NAME,
  version: VERSION,
  title: "Dawn",
  megabytes: 51,
  doing: "Cannot load Dawn",
  how: `run it, or install it, with -A; of a compiled file set WGCONV_DAWN to the index.js that ` +
    `\`npm install ${NAME}@${VERSION}\` makes`,
  offline: `without a network set WGCONV_DAWN to the index.js of the npm package ${NAME}`,
};

/**
 * Loads Dawn's addon: the one `WGCONV_DAWN` names as it is, else the one in Deno's npm cache, else from npm.
 *
 * @throws {UnsupportedError} where it cannot be had
 */
export async function loadAddon(): Promise<DawnAddon> {
  const named = environmentValue("WGCONV_DAWN");
  const path = named ? addonBeside(resolve(named)) : await fetchAddon();
  try {
    return createRequire(import.meta.url)(path);
  } catch (cause) {
    if (cause instanceof Deno.errors.NotCapable) {
      throw new UnsupportedError(
        `Cannot load Dawn from ${path}: this program may not load native code; ${DAWN.how}`,
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
 * Finds the addon in Deno's npm cache, downloading the package first where it is not there.
 *
 * @throws {UnsupportedError} where it cannot be had, or is not the one whose hash stands here
 */
export async function fetchAddon(): Promise<string> {
  const path = addonBeside(join(await fetchPackage(DAWN), "index.js"));
  const expected = ADDONS[platform()];
  if (expected === undefined) {
    throw new UnsupportedError(`Cannot load Dawn: ${NAME} has no addon for ${platform()}`);
  }
  await verifyFile(path, expected, DAWN);
  return path;
}
