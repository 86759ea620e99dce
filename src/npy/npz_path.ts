import { InputTypeError } from "../errors.ts";

/** Where `file.npz:member` says to look. */
interface NpyPath {
  readonly file: string;
  readonly member?: string;
}

/** A member of an archive, named without `.npy`. */
export type ArchiveMember = Required<NpyPath>;

const MAX_NAME_BYTES = 0xffff;

/** Splits at the first `.npz:` or `.safetensors:`, where alone a colon says more than a name does. */
export function splitPath(path: string): NpyPath {
  const match = /^(.*?\.(?:npz|safetensors)):(.+)$/is.exec(path);
  return match ? { file: match[1]!, member: match[2]! } : { file: path };
}

/** The file of a tensor's path, which may name a member of an archive. */
export function npyFile(path: string): string {
  return splitPath(path).file;
}

/** Whether a file's name is that of safetensors. */
export function isSafetensorsPath(file: string): boolean {
  return /\.safetensors$/i.test(file);
}

/** What NumPy calls the file of an archive that has this name there. */
export function memberName(name: string): string {
  return name.replace(/\.npy$/, "");
}

/**
 * The member of an archive that a path to write names; undefined where it names a file of its own.
 *
 * @throws {TypeError} for an archive without a member, a member of no archive, and for a name that other programs would change or put elsewhere.
 */
export function memberToWrite(path: string): ArchiveMember | undefined {
  const { file, member } = splitPath(path);
  if (member === undefined) {
    const wanted = /^(.*)\.npy:([^/\\]+)$/is.exec(path);
    if (wanted !== null) {
      throw new InputTypeError(
        `Cannot write ${path}: archives have members, as in ${wanted[1]}.npz:${wanted[2]}`,
      );
    }
    if (!/\.(npz|safetensors):?$/i.test(path)) return undefined;
    throw new InputTypeError(
      `Cannot write ${path}: an archive has members, name the one to write as in ` +
        `${path.replace(/:$/, "")}:y`,
    );
  }
  const name = isSafetensorsPath(file) ? member : memberName(member);
  const places = name.split("/").some((part) => part === "" || part === "." || part === "..");
  if (places || /\p{Cc}|\\/u.test(name)) {
    throw new InputTypeError(
      `Cannot write ${path}: expected a member such as y or layer/y, without control characters, ` +
        "backslashes and parts that are empty or dots",
    );
  }
  if (new TextEncoder().encode(name).length + ".npy".length > MAX_NAME_BYTES) {
    throw new InputTypeError(
      `Cannot write ${file}: its member's name has more than ${MAX_NAME_BYTES} bytes`,
    );
  }
  return { file, member: name };
}
