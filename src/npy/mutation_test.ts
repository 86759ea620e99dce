import assert from "#assert";
import fc from "fast-check";
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

type Mutation =
  | { readonly kind: "flip"; readonly at: number; readonly bit: number }
  | { readonly kind: "set"; readonly at: number; readonly byte: number }
  | { readonly kind: "cut"; readonly at: number }
  | { readonly kind: "remove" | "insert"; readonly at: number; readonly bytes: number[] };

/** Half of the places lie in the first 128 bytes, where the header is; the rest anywhere. */
function mutations(fromEnd: boolean): fc.Arbitrary<Mutation[]> {
  const near = fc.integer({ min: 0, max: 127 }).map((at) => fromEnd ? -1 - at : at);
  const at = fc.oneof(near, fc.integer({ min: 0, max: 2000 }));
  const bytes = fc.array(fc.integer({ min: 0, max: 255 }), { minLength: 1, maxLength: 20 });
  return fc.array(
    fc.oneof(
      fc.record({ kind: fc.constant("flip" as const), at, bit: fc.integer({ min: 0, max: 7 }) }),
      fc.record({ kind: fc.constant("set" as const), at, byte: fc.constantFrom(0, 48, 57, 255) }),
      fc.record({ kind: fc.constant("cut" as const), at }),
      fc.record({ kind: fc.constantFrom("remove" as const, "insert" as const), at, bytes }),
    ),
    { minLength: 1, maxLength: 4 },
  );
}

function mutate(valid: Uint8Array, steps: Mutation[]): Uint8Array {
  let bytes = [...valid];
  for (const step of steps) {
    const at = Math.max(0, step.at < 0 ? bytes.length + step.at : step.at % (bytes.length + 1));
    if (step.kind === "flip" && at < bytes.length) bytes[at]! ^= 1 << step.bit;
    if (step.kind === "set" && at < bytes.length) bytes[at] = step.byte;
    if (step.kind === "cut") bytes = bytes.slice(0, at);
    if (step.kind === "remove") bytes.splice(at, step.bytes.length);
    if (step.kind === "insert") bytes.splice(at, 0, ...step.bytes);
  }
  return new Uint8Array(bytes);
}

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

Deno.test(`npySource() reads or refuses ${RUNS} mutations of .npy files`, async () => {
  const results = { true: 0, false: 0 };
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...NPY), mutations(false), async (valid, steps) => {
      results[`${await readsOrRefuses(mutate(valid, steps), (b) => Promise.resolve(b))}`]++;
    }),
    { numRuns: RUNS, seed: 1 },
  );
  // Both ways must have been walked.
  assert(results.true > 500 && results.false > 500, JSON.stringify(results));
});

Deno.test(`openZipEntry() reads or refuses ${RUNS} mutations of .npz files`, async () => {
  const results = { true: 0, false: 0 };
  const open = async (bytes: ByteSource) => {
    const { entries: [entry] } = await readZipDirectory(bytes, "x.npy");
    if (entry === undefined) throw new RangeError("Cannot read x.npy: no member");
    return await openZipEntry(bytes, entry, "x.npy");
  };
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...NPZ), mutations(true), async (valid, steps) => {
      results[`${await readsOrRefuses(mutate(valid, steps), open)}`]++;
    }),
    { numRuns: RUNS, seed: 1 },
  );
  assert(results.true > 100 && results.false > 500, JSON.stringify(results));
});
