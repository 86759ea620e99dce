import { isInputError } from "../../src/errors.ts";
import { unzipSync, zipSync } from "../../src/deps/fflate.ts";
import {
  encodeNpyHeader,
  openNpy,
  readNpy,
  readNpz,
  writeNpy,
  writeNpz,
} from "../../src/npy/mod.ts";
import { DTYPES } from "../../src/tensor/dtype.ts";
import { fillTensor } from "../../src/tensor/fill.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { type Attack, base64, Finding, type Outcome } from "./attack.ts";
import { Draw } from "./draw.ts";
import { attackFolder } from "./folder.ts";
import { holdEnded, runInProcess } from "./in_process.ts";
import { mutateBytes } from "./mutate.ts";

const fixture = (name: string) =>
  Deno.readFileSync(new URL(`../../fixtures/${name}`, import.meta.url));

/** Texts that take the place of parts of a header. */
const HEADER_EDITS: readonly (readonly [RegExp, readonly string[]])[] = [
  [/'descr': '[^']*'/, [
    "'descr': '<f4'",
    "'descr': '>f8'",
    "'descr': '|O'",
    "'descr': '<U999999999'",
    "'descr': [('a', '<f4')]",
    "'descr': ''",
    "'descr': '<f4\u001b[31m'",
    "'descr': '|b1'",
    "'descr': '<i16'",
    "'descr': '<V2'",
    "'descr': '|V2'",
    "'descr': 'bfloat16'",
    "'descr': 'float32'",
    "'descr': '?'",
    "'descr': '<c8'",
  ]],
  [/'shape': \([^)]*\)/, [
    "'shape': ()",
    "'shape': (0,)",
    "'shape': (-1,)",
    "'shape': (99999999999999999999,)",
    "'shape': (4294967296, 4294967296)",
    "'shape': (1, 0, 9007199254740993)",
    "'shape': (1e3,)",
    "'shape': ((1,),)",
    `'shape': (${"1, ".repeat(400)})`,
    "'shape': (True,)",
    "'shape': 3",
  ]],
  [/'fortran_order': \w+/, [
    "'fortran_order': True",
    "'fortran_order': False",
    "'fortran_order': None",
    "'fortran_order': 1",
  ]],
  [/\}/, ["}}", "", ", 'more': 1}", ", 'shape': (2,)}", "}\u0000", `, '${"k".repeat(900)}': 1}`]],
];

/** Names of members that a file system, a terminal or JavaScript may stumble over. */
const NAMES = [
  "x.npy",
  "x.npy",
  "y.npy",
  "__proto__.npy",
  "constructor.npy",
  "../x.npy",
  "/etc/x.npy",
  "ä ö.npy",
  "a\u001b[31m.npy",
  "a\nb.npy",
  ".npy",
  `${"n".repeat(1000)}.npy`,
  "x",
  "x:y.npy",
  "readme.txt",
  "notes/",
];

/** Members that are no arrays that can be read: a text, objects of Python, nothing. */
const ODD_MEMBERS: readonly Uint8Array[] = [
  new TextEncoder().encode("What these arrays are.\n"),
  objectArray(),
  new Uint8Array(0),
];

/** An array of objects, as NumPy writes it: a pickle behind the header. */
function objectArray(): Uint8Array<ArrayBuffer> {
  const text = "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }".padEnd(117) + "\n";
  const start = [0x93, ...new TextEncoder().encode("NUMPY"), 1, 0, text.length, 0];
  return Uint8Array.from([...start, ...new TextEncoder().encode(text), 0x80, 3, 0x4e, 0x2e]);
}

/** Where data begins behind the headers that NumPy writes for small tensors. */
const DATA = 128;

/** As every writer of ours has it: the same bytes on every day. */
const DAY = { mtime: new Date(1980, 0, 1) };

/** Valid files to begin with. */
function baseFiles(): Uint8Array[] {
  const numpy = Object.entries(unzipSync(fixture("npy_numpy.zip")))
    .filter(([name]) => name.endsWith(".npy")).map(([, bytes]) => bytes);
  const made = DTYPES.flatMap((dtype, index) => {
    const shapes = [[], [0], [7], [3, 4], [2, 3, 1, 2]];
    return shapes.map((shape) => npyFile(fillTensor(dtype, shape, "integer", index)));
  });
  const [first, second, third] = [made[3]!, made[9]!, made[17]!];
  const archives = [
    fixture("sample.npz"),
    fixture("sample_compressed.npz"),
    zipSync({ "x.npy": first, "y.npy": second }, { level: 0, ...DAY }),
    zipSync({ "x.npy": first, "y.npy": second, "z.npy": third }, { level: 9, ...DAY }),
    // What inflates to a thousand times its size.
    zipSync({ "x.npy": npyFile(fillTensor("u8", [100_000], "constant", 1)) }, { level: 9, ...DAY }),
  ];
  return [...numpy, ...made, ...archives, ...archives, ...archives];
}

function npyFile({ dtype, shape, data }: Tensor): Uint8Array<ArrayBuffer> {
  const header = encodeNpyHeader(dtype, shape);
  const bytes = new Uint8Array(header.length + data.byteLength);
  bytes.set(header);
  bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), header.length);
  return bytes;
}

/** Replaces a part of a header's text, as long as it was (spaces give way) or with another length. */
export function editHeader(draw: Draw, bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  const [pattern, texts] = draw.pick(HEADER_EDITS);
  const edited = text.replace(pattern, () => draw.pick(texts));
  const result = Uint8Array.from(edited, (character) => character.charCodeAt(0));
  if (result.length > 10 && draw.chance(0.8)) {
    const length = result[8]! + 256 * result[9]! + result.length - bytes.length;
    result[8] = length;
    result[9] = length >> 8;
  }
  return result;
}

/** Other values behind a header: data is taken as it is. */
function changeData(draw: Draw, bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const result = new Uint8Array(bytes);
  const room = result.length - DATA;
  for (let count = draw.int(1, 8); count > 0 && room > 0; count--) {
    result[DATA + draw.int(0, room - 1)] = draw.word();
  }
  return result;
}

/** An archive of members with names of any kind, some of them twice. */
function oddArchive(draw: Draw, files: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const members = draw.times(
    draw.int(0, 4),
    () => [draw.pick(NAMES), draw.pick(draw.chance(0.3) ? ODD_MEMBERS : files)] as const,
  );
  const zip = zipSync(Object.fromEntries(members), { level: draw.chance(0.5) ? 0 : 6, ...DAY });
  if (!draw.chance(0.3)) return new Uint8Array(zip);
  // The same length, so that the directory stays right: two members of one name.
  return Uint8Array.from(zip, (byte) => byte === "y".charCodeAt(0) ? "x".charCodeAt(0) : byte);
}

/** Reads a tensor as commands do; undefined where it is refused in a sentence. */
async function readOrRefuse<T>(size: number, read: () => Promise<T>): Promise<T | undefined> {
  const before = Deno.memoryUsage().external;
  const value = await readOrRefused(read);
  const took = Deno.memoryUsage().external - before;
  if (took > (64 << 20) + 2100 * size) {
    throw new Finding(`reading ${size} bytes took ${took} bytes of memory`);
  }
  return value;
}

async function readOrRefused<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (!isInputError(error)) {
      throw new Finding(
        `refused by no error of the input: ${error instanceof Error ? error.stack : error}`,
      );
    }
    if (!/^Cannot read /.test(error.message)) {
      throw new Finding(`${error.name} is no sentence of ours: ${JSON.stringify(error.stack)}`);
    }
    return undefined;
  }
}

/** Holds that a tensor which was written again is the same. */
function holdSame(what: string, one: Tensor, other: Tensor | undefined): void {
  const bytes = ({ data }: Tensor) => new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  if (
    other === undefined || one.dtype !== other.dtype || `${one.shape}` !== `${other.shape}` ||
    !bytes(one).every((byte, i) => byte === bytes(other)[i])
  ) throw new Finding(`${what} is another tensor when written and read again`);
}

/** Mutated `.npy` and `.npz` files, read as commands read them, from a file. */
export const FILES: Attack = {
  kind: "files",
  limit: 20,
  weight: 1,
  open(seed) {
    const base = baseFiles();
    const folder = attackFolder();
    const path = `${folder}/x.npy`;
    const copy = `${folder}/copy.npy`;
    const make = (number: number): Uint8Array<ArrayBuffer> => {
      const draw = new Draw(seed, "files", number);
      const way = draw.int(0, 9);
      if (way === 0) return oddArchive(draw, base);
      const bytes = draw.pick(base);
      if (way <= 2) return editHeader(draw, bytes);
      if (way === 3) return changeData(draw, bytes);
      return mutateBytes(draw, way === 4 ? oddArchive(draw, base) : bytes, draw.pick(base));
    };
    /** Holds what the program prints of a file that is refused. */
    const refusedByProgram = async (command: "info" | "convert", outcome: Outcome) => {
      const args = ["tensor", command, path, ...(command === "convert" ? [copy, "--force"] : [])];
      const ended = await runInProcess(args);
      holdEnded(ended, { args });
      if (command === "convert" && ended.code !== 2) {
        throw new Finding(`the codec refuses it, convert ends with ${ended.code}`);
      }
      return outcome;
    };
    const run = async (number: number): Promise<Outcome> => {
      const bytes = make(number);
      Deno.writeFileSync(path, bytes);
      const archive = bytes[0] === "P".charCodeAt(0) && bytes[1] === "K".charCodeAt(0);
      if (archive) {
        const tensors = await readOrRefuse(bytes.length, () => readNpz(path));
        if (tensors === undefined) return await refusedByProgram("info", "archives refused");
        const args = ["tensor", "info", path];
        const ended = await runInProcess(args);
        holdEnded(ended, { args });
        if (ended.code !== 0) throw new Finding(`the codec reads it, info ends with ${ended.code}`);
        await writeNpz(copy, tensors);
        const again = await readNpz(copy);
        for (const [name, tensor] of Object.entries(tensors)) holdSame(name, tensor, again[name]);
        return "archives read";
      }
      const tensor = await readOrRefuse(bytes.length, async () => {
        using source = await openNpy(path);
        return await source.read();
      });
      if (tensor === undefined) return await refusedByProgram("convert", "refused");
      await writeNpy(copy, tensor);
      holdSame("the tensor", tensor, await readNpy(copy));
      return "read";
    };
    return Promise.resolve({
      run,
      describe: (number) => {
        const bytes = make(number);
        return bytes.length > 20_000 ? `${bytes.length} bytes` : base64(bytes);
      },
      [Symbol.asyncDispose]: () => Promise.resolve(),
    });
  },
};
