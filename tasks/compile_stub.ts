/** The file that runs where `deno compile` cannot be had: a script, the program and Deno, one after the other. */
import { gzipSync } from "node:zlib";
import STUB from "./compile_stub.sh" with { type: "text" };

/** Bytes that the script is padded to, so that the offsets in it are known before it is written. */
const HEADER = 8192;

/** What goes into the file. */
interface StubParts {
  readonly version: string;
  /** Deno's version, executable and the flags the program is run with. */
  readonly deno: string;
  readonly executable: Uint8Array<ArrayBuffer>;
  readonly flags: readonly string[];
  /** The program in one file. */
  readonly bundle: Uint8Array<ArrayBuffer>;
  /** gzip's, 1 to 9. */
  readonly level: number;
}

/**
 * Makes the file's bytes.
 *
 * @throws {RangeError} where the script outgrows its place
 */
export async function makeStandalone(parts: StubParts): Promise<Uint8Array<ArrayBuffer>> {
  const bundle = gzipSync(parts.bundle, { level: parts.level });
  const flags = parts.flags.join(" ");
  const executable = gzipSync(parts.executable, { level: parts.level });
  // Offsets of `tail -c +N` count from 1.
  const script = fill({
    VERSION: parts.version,
    DENO: parts.deno,
    HEADER: String(HEADER),
    SPACE: String(Math.ceil((parts.executable.length + parts.bundle.length) / 2 ** 20) + 16),
    // The directory's name: a hash of all that is unpacked into it and of how it is run.
    SHA256: await sha256(parts.executable, parts.bundle, new TextEncoder().encode(flags)),
    PROGRAM_BYTES: String(parts.bundle.length),
    PROGRAM_SHA256: await sha256(parts.bundle),
    DENO_BYTES: String(parts.executable.length),
    DENO_SHA256: await sha256(parts.executable),
    BUNDLE_FROM: String(HEADER + 1),
    BUNDLE_BYTES: String(bundle.length),
    DENO_FROM: String(HEADER + bundle.length + 1),
    FLAGS: flags,
  });
  const file = new Uint8Array(HEADER + bundle.length + executable.length).fill(0x0a, 0, HEADER);
  file.set(script);
  file.set(bundle, HEADER);
  file.set(executable, HEADER + bundle.length);
  return file;
}

/** The script without its comments, its `@NAMES@` replaced. */
function fill(values: Readonly<Record<string, string>>): Uint8Array {
  const lines = STUB.split("\n").filter((line, i) => i < 3 || !/^\s*#/.test(line));
  const text = lines.join("\n").replace(/@([A-Z0-9_]+)@/g, (_, name) => {
    const value = values[name];
    if (value === undefined) throw new RangeError(`Cannot compile: the script has no ${name}`);
    return value;
  });
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= HEADER) return bytes;
  throw new RangeError(`Cannot compile: the script has ${bytes.length} bytes, room for ${HEADER}`);
}

async function sha256(...parts: readonly Uint8Array<ArrayBuffer>[]): Promise<string> {
  const all = await new Blob([...parts]).arrayBuffer();
  return new Uint8Array(await crypto.subtle.digest("SHA-256", all)).toHex();
}
