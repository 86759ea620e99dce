import assert from "#assert";
import { unzipSync } from "../deps/fflate.ts";
import { memoryBytes } from "./bytes.ts";
import { npySource } from "./source.ts";
import { npyBytes } from "./header.ts";

interface Expected {
  readonly shape: number[];
  readonly dtype: string;
  readonly fortran: boolean;
  readonly values: (number | "nan" | "inf" | "-inf")[] | null;
}

const FILES = unzipSync(
  Deno.readFileSync(new URL("../../fixtures/npy_numpy.zip", import.meta.url)),
);
const EXPECTED: Record<string, Expected> = JSON.parse(
  new TextDecoder().decode(FILES["expected.json"]),
);
const SPECIAL = { nan: NaN, inf: Infinity, "-inf": -Infinity };
const GOOD = Object.entries(EXPECTED).filter(([, { values }]) => values !== null);

async function read(name: string) {
  using source = await npySource(memoryBytes(FILES[name]!), name);
  return { header: source.header!, tensor: await source.read() };
}

Deno.test("npySource() reads NumPy's 23 good files to their values", async () => {
  assert.equal(GOOD.length, 23);
  for (const [name, { shape, dtype, fortran, values }] of GOOD) {
    const { header, tensor } = await read(name);
    assert.deepEqual(tensor.shape, shape, name);
    assert.equal(header.fortranOrder, fortran, name);
    assert.equal(header.littleEndian, !dtype.startsWith(">"), name);
    const expected = values!.map((value) => typeof value === "string" ? SPECIAL[value] : value);
    // f4 values are printed with digits of f8, so that rounding is no difference.
    assert.deepEqual(Array.from(tensor.data, Number), expected, name);
  }
});

Deno.test("npyBytes() makes NumPy's bytes of its little-endian, C-order, version 1 files", async () => {
  let count = 0;
  for (const [name, { dtype, fortran }] of GOOD) {
    if (dtype.startsWith(">") || fortran || /^v[23]_/.test(name)) continue;
    const { tensor } = await read(name);
    const bytes = [...npyBytes(tensor)].flatMap((piece) => [...piece]);
    assert.deepEqual(bytes, [...FILES[name]!], name);
    count++;
  }
  assert.equal(count, 15);
});

const REFUSALS: Record<string, [kind: ErrorConstructor, message: RegExp]> = {
  "complex.npy": [
    TypeError,
    /byte 20: expected numbers such as '<f4', found '<c8' \(complex numbers\): np.save x\.real/,
  ],
  "bad_dtype.npy": [
    TypeError,
    /byte 20: expected numbers such as '<f4', found '<q9' \(none of NumPy's numbers\)/,
  ],
  "bad_empty.npy": [SyntaxError, /byte 0: expected the magic .* found the end of the file$/],
  "bad_header_not_dict.npy": [SyntaxError, /byte 18: expected "," or "]", found :$/],
  "bad_huge_dim.npy": [SyntaxError, /byte 61: expected the shape as a tuple, found integer$/],
  "bad_magic.npy": [SyntaxError, /byte 5: expected the magic .* found other bytes$/],
  "bad_negative_dim.npy": [RangeError, /byte 69: expected a size from 0 .* found -5$/],
  "bad_object_pickle.npy": [TypeError, /byte 20: .* found '\|O' \(Python objects, a pickle\)/],
  "bad_structured.npy": [
    TypeError,
    /byte 20: expected numbers, found structures: save each field apart/,
  ],
  "bad_trailing.npy": [SyntaxError, /byte 608: expected the end of the file .* 17 more bytes$/],
  "bad_truncated_data.npy": [SyntaxError, /byte 568: expected 480 bytes of data .* after 440$/],
  "bad_truncated_header.npy": [SyntaxError, /byte 60: expected a header of 118 bytes, found the/],
  "bad_version.npy": [SyntaxError, /byte 6: expected format version .* found 9\.0$/],
};

Deno.test("npySource() refuses NumPy's 12 malformed files and complex numbers in a sentence", async () => {
  const others = Object.keys(FILES).filter((name) => name.endsWith(".npy"))
    .filter((name) => EXPECTED[name]?.values === undefined || EXPECTED[name].values === null);
  assert.deepEqual(others.sort(), Object.keys(REFUSALS).sort());
  for (const [name, [kind, message]] of Object.entries(REFUSALS)) {
    await assert.rejects(read(name), (error: Error) => {
      assert(error instanceof kind, name);
      assert.match(error.message, message);
      assert(error.message.startsWith(`Cannot read ${name}: `), error.message);
      return true;
    });
  }
});
