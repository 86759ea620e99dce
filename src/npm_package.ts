import { join } from "node:path";
import { UnsupportedError } from "./errors.ts";

/** An npm package with native code that is fetched when it is first needed. */
export interface NativePackage {
  readonly name: string;
  readonly version: string;
  /** What it is, for people. */
  readonly title: string;
  /** Of the download, which takes about three times as much on disk. */
  readonly megabytes: number;
  /** Begins messages: `Cannot load Dawn`. */
  readonly doing: string;
  /** What to do where the program may not fetch it. */
  readonly how: string;
  /** What to do where there is no network. */
  readonly offline: string;
}

/** Told that a download begins; of a library nothing is said. */
let sayFetch: (text: string) => void = () => {};

/** Sets who is told of downloads before they begin, in one line: what is fetched, how large it is, and where it goes. */
export function onFetch(say: (text: string) => void): void {
  sayFetch = say;
}

/** The package's folder in Deno's npm cache; undefined where it is not there, or the program may not look. */
export async function cachedPackage(native: NativePackage): Promise<string | undefined> {
  if (Deno.permissions.querySync({ name: "run" }).state !== "granted") return undefined;
  const info = JSON.parse(await runDeno(native, ["info", "--json", "--no-config"]));
  return findPackage(String(info.npmCache), native);
}

/**
 * Finds the package's folder in Deno's npm cache, downloading it first where it is not there. An `import("npm:…")` would enter it
 * into `deno.lock`, and what stands there is downloaded by every run of the program.
 *
 * @throws {UnsupportedError} where it cannot be had.
 */
export async function fetchPackage(native: NativePackage): Promise<string> {
  const { name, version, doing, how } = native;
  if (Deno.permissions.querySync({ name: "run" }).state !== "granted") {
    throw new UnsupportedError(
      `${doing}: this program may not start Deno, which downloads it; ${how}`,
    );
  }
  const info = JSON.parse(await runDeno(native, ["info", "--json", "--no-config"]));
  const cached = () => findPackage(String(info.npmCache), native);
  if (cached() === undefined) {
    const what = `npm:${name}@${version}`;
    sayFetch(
      `fetching ${native.title}, once: ${what}, ${native.megabytes} MB, into ${info.npmCache}`,
    );
    await runDeno(native, ["cache", "--quiet", "--no-config", "--no-lock", what]);
  }
  const folder = cached();
  if (folder === undefined) throw new UnsupportedError(`${doing}: npm has no ${name}`);
  return folder;
}

/**
 * Holds a file against its hash: native code is loaded only if it is what npm had when the version was pinned.
 *
 * @throws {UnsupportedError} where it is another.
 */
export async function verifyFile(
  path: string,
  expected: string,
  { name, version, doing }: NativePackage,
): Promise<void> {
  const bytes = await Deno.readFile(path).catch((cause) => {
    throw new UnsupportedError(`${doing} from ${path}: ${cause.message}`, { cause });
  });
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex();
  if (hash === expected) return;
  throw new UnsupportedError(
    `${doing}: SHA-256 of ${path} is ${hash}, ${name} ${version} has ${expected}; ` +
      "remove the file's package from the cache",
  );
}

/** The value of a variable of the environment that the program may see. */
export function environmentValue(variable: string): string | undefined {
  const seen = Deno.permissions.querySync({ name: "env", variable }).state === "granted";
  return seen ? Deno.env.get(variable) || undefined : undefined;
}

/** The package's folder in a cache, which has one for each registry. */
function findPackage(
  npmCache: string,
  { name, version }: Pick<NativePackage, "name" | "version">,
): string | undefined {
  try {
    return [...Deno.readDirSync(npmCache)]
      .map((registry) => join(npmCache, registry.name, name, version))
      .find(isFolder);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

function isFolder(path: string): boolean {
  try {
    return Deno.statSync(path).isDirectory;
  } catch {
    return false;
  }
}

/** Runs this Deno beside the program; gives its output. */
async function runDeno({ doing, offline }: NativePackage, args: string[]): Promise<string> {
  const decoder = new TextDecoder();
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args,
    env: { NO_COLOR: "1", DENO_NO_PACKAGE_JSON: "1" },
  }).output();
  if (success) return decoder.decode(stdout);
  const said = denoWords(decoder.decode(stderr));
  throw new UnsupportedError(`${doing}: \`deno ${args.join(" ")}\` says: ${said}; ${offline}`);
}

/** What Deno says of an error and its causes, in one line. */
function denoWords(text: string): string {
  return text.split(/\n\s*Stack backtrace:/)[0]!.trim()
    .replace(/^error: /, "").replace(/\s*\n(\s*\d+:)?\s*/g, ": ");
}
