import assert from "#assert";
import { Draw } from "../../tests/attack/draw.ts";
import { mutateBytes } from "../../tests/attack/mutate.ts";
import { unzipSync } from "../deps/fflate.ts";
import { type ByteSource, memoryBytes } from "./bytes.ts";
import { npySource } from "./source.ts";
import { openZipEntry, readZipDirectory } from "./zip.ts";

const RUNS = 10_000;
/** What a mutated file of a few kB can make at most: deflate multiplies by 1032. */
const MAX_BYTES = 4096 * 1032;

function fixture(name: string): Uint8Array {
  return Deno.readFileSync(new URL(`../../fixtures/${name}`, import.meta.url));
}

const NPY = Object.entries(unzipSync(fixture("npy_numpy.zip")))
  .filter(([name]) => name.endsWith(".npy") && !name.startsWith("bad_") && name !== "complex.npy")
  .map(([, bytes]) => bytes);
const NPZ = [fixture("sample.npz"), fixture("sample_compressed.npz")];

/** Reads `bytes`, and holds the result to what was promised of any bytes; whether it was a tensor. */
async function readsOrRefuses(bytes: Uint8Array, open: (bytes: ByteSource) => Promise<ByteSource>) {
  try {
    using source = await npySource(await open(memoryBytes(bytes)), "x.npy");
    const { data } = await source.read();
    assert(data.byteLength <= MAX_BYTES);
    return true;
  } catch (error) {
    const kinds = [SyntaxError, TypeError, RangeError];
    if (!(error instanceof Error) || !kinds.some((kind) => error instanceof kind)) throw error;
    assert.match(error.message, /^Cannot read x\.npy: /);
    return false;
  }
}

/** How many mutations of files are read and refused; both ways must have been walked. */
async function readAll(
  files: readonly Uint8Array[],
  open: (bytes: ByteSource) => Promise<ByteSource>,
): Promise<{ true: number; false: number }> {
  const results = { true: 0, false: 0 };
  for (let number = 0; number < RUNS; number++) {
    const draw = new Draw(1, "mutations", number);
    const bytes = mutateBytes(draw, draw.pick(files), draw.pick(files));
    results[`${await readsOrRefuses(bytes, open)}`]++;
  }
  return results;
}

Deno.test(`npySource() reads or refuses ${RUNS} mutations of .npy files`, async () => {
  const results = await readAll(NPY, (bytes) => Promise.resolve(bytes));
  assert(results.true > 500 && results.false > 500, JSON.stringify(results));
});

Deno.test(`openZipEntry() reads or refuses ${RUNS} mutations of .npz files`, async () => {
  const results = await readAll(NPZ, async (bytes) => {
    const { entries: [entry] } = await readZipDirectory(bytes, "x.npy");
    if (entry === undefined) throw new RangeError("Cannot read x.npy: no member");
    return await openZipEntry(bytes, entry, "x.npy");
  });
  assert(results.true > 100 && results.false > 500, JSON.stringify(results));
});
