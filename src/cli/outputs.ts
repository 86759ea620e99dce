import { basename, dirname, extname, join } from "node:path";
import { InputTypeError } from "../errors.ts";
import { followLinks, proveFolder, proveWritable } from "../npy/atomic_write.ts";
import { memberToWrite, npyFile } from "../npy/npz_path.ts";
import { proveNpy } from "../npy/write.ts";
import { readText } from "../read_text.ts";

/** A file or folder that a command is going to write. */
export interface Output {
  readonly option: string;
  readonly path: string | undefined;
  /**
   * `npy`, `archive`, `file` and `picture`, a PNG file, take the place of what is there by force only. So does a `member`
   * of a folder that is proven, which a run that goes on leaves as it is. What is `merged` with what is there may make
   * its folder, as a `folder` of files is made; who opens `records` proves them.
   */
  readonly kind:
    | "npy"
    | "archive"
    | "file"
    | "picture"
    | "merged"
    | "records"
    | "folder"
    | "member";
  /**
   * Endings that suit what is written, for names that do not: `.txt` of a `file`, else `.jsonl` where absent. Of a
   * `folder`, those of the files that are written into it, of which it may have none but by force.
   */
  readonly endings?: readonly string[];
}

/** Endings of files that hold something else than text and records, a page but where an output says so. */
const OTHER_KINDS = [
  ...[".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".svg", ".tif", ".tiff", ".pdf"],
  ...[".npy", ".npz", ".html", ".htm"],
];

/** @throws {TypeError} where a path's ending says that it holds something else than what would be written. */
function refuseEnding({ option, path = "-", kind, endings }: Output): void {
  if (path === "-" || path.startsWith("/dev/")) return;
  if (kind === "picture" && !/\.png$/i.test(path)) {
    throw new InputTypeError(
      `Cannot write ${path}: ${option} is a PNG picture, its name ends in .png`,
    );
  }
  if (kind !== "file" && kind !== "merged" && kind !== "records") return;
  const file = npyFile(path);
  const ending = extname(file).toLowerCase();
  const suit = endings ?? [kind === "file" ? ".txt" : ".jsonl"];
  if (!OTHER_KINDS.includes(ending) || suit.includes(ending)) return;
  const names = suit.map((one) => file.slice(0, -ending.length) + one).join(" or ");
  throw new InputTypeError(
    `Cannot write ${path}: ${option} does not write a ${ending} file, name it ${names}`,
  );
}

/** What may stand against an output. */
interface OutputRules {
  readonly inputs?: readonly (string | undefined)[];
  readonly force?: boolean | undefined;
  /** Whether members of a folder that are there stay. */
  readonly resume?: boolean | undefined;
}

/** Kinds that take the place of what is there. */
const REPLACING: readonly Output["kind"][] = ["npy", "archive", "file", "picture", "member"];

/**
 * Finds out before any work whether a command's outputs can be written, and changes nothing. What holds something is
 * refused as an output unless `force` is set, an input first of all. Two outputs that are one file are refused, whatever
 * the names they go by.
 *
 * @throws {TypeError} that names the path.
 * @throws as {@linkcode proveWritable}.
 */
export async function proveOutputs(
  outputs: readonly Output[],
  { inputs = [], force = false, resume = false }: OutputRules = {},
): Promise<void> {
  const read = new Set<string>();
  for (const path of inputs) {
    const id = path === undefined ? undefined : await fileId(npyFile(path));
    if (id !== undefined) read.add(id);
  }
  const written = new Map<string, string>();
  for (const output of outputs) {
    const { option, path, kind } = output;
    if (path === undefined) continue;
    if (path === "") throw new InputTypeError(`Cannot write a file: ${option} is ""`);
    refuseEnding(output);
    if (kind === "merged" && await isSpecial(path)) {
      throw new InputTypeError(`Cannot merge into ${path}: it is no file`);
    }
    if (path === "-") continue;
    // What is merged with is read behind the work, which may be long.
    if (kind === "merged" && await hasData(path)) readText(path);
    if (kind === "npy") await proveNpy(path, force);
    // A member beside those that are read takes nothing away.
    const member = kind === "npy" && memberToWrite(path) !== undefined;
    const id = kind === "folder" ? undefined : await fileId(member ? npyFile(path) : path);
    if (id !== undefined) {
      if (read.has(id) && !force && !member) {
        throw new InputTypeError(`Cannot write ${path}: it is an input too, --force overwrites it`);
      }
      const other = written.get(id);
      if (other !== undefined) {
        throw new InputTypeError(`Cannot write ${path}: ${other} and ${option} name the same file`);
      }
      written.set(id, option);
    }
    const stays = force || (kind === "member" && resume);
    if (REPLACING.includes(kind) && !stays && await hasData(path)) {
      const goOn = kind === "member" ? "--resume keeps it, " : "";
      throw new InputTypeError(
        `Cannot write ${path}: it is not empty, ${goOn}--force overwrites it`,
      );
    }
    if (kind === "folder") {
      await proveFolder(path);
      if (!force) await refuseEarlierFiles(output);
    } else if (kind === "merged" && !await isFolder(dirname(path))) {
      await proveFolder(dirname(path));
    } else if (kind !== "records" && kind !== "member" && kind !== "npy") await proveWritable(path);
  }
}

async function refuseEarlierFiles({ path = "-", endings = [] }: Output): Promise<void> {
  if (endings.length === 0 || !await isFolder(path)) return;
  for await (const { name, isDirectory } of Deno.readDir(path)) {
    if (isDirectory || !endings.includes(extname(name))) continue;
    throw new InputTypeError(
      `Cannot write into ${path}: it has ${name}, --force overwrites what has the same name`,
    );
  }
}

/** Whether a path stands for stdout, a device or a pipe, in which nothing is to be merged with. */
async function isSpecial(path: string): Promise<boolean> {
  const info = await Deno.stat(path).catch(() => undefined);
  return path === "-" || (info !== undefined && !info.isFile && !info.isDirectory);
}

async function hasData(path: string): Promise<boolean> {
  return await Deno.stat(path).then(({ isFile, size }) => isFile && size > 0, () => false);
}

async function isFolder(path: string): Promise<boolean> {
  return await Deno.stat(path).then(({ isDirectory }) => isDirectory, () => false);
}

/**
 * What tells a file from all others, by whatever name and link it is reached; a path in a folder that is there
 * stands for a file to come. Devices and pipes have none, they may be named twice.
 */
async function fileId(path: string): Promise<string | undefined> {
  if (path === "-") return undefined;
  const info = await Deno.stat(path).catch(() => undefined);
  if (info !== undefined && !info.isFile) return undefined;
  if (info?.ino) return `${info.dev}:${info.ino}`;
  const target = followLinks(path);
  const folder = await Deno.realPath(dirname(target)).catch(() => undefined);
  return folder === undefined ? undefined : join(folder, basename(target));
}
