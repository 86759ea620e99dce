import assert from "#assert";
import { inFolder } from "../../tests/cli.ts";
import { join } from "node:path";
import { unzipSync, zipSync } from "../deps/fflate.ts";
import { convertDType } from "../tensor/convert.ts";
import { DTYPES } from "../tensor/dtype.ts";
import { type Tensor, tensor } from "../tensor/tensor.ts";
import { memoryBytes } from "./bytes.ts";
import { type EachMember, openEach, openNpy, readNpy, readNpz } from "./npz.ts";
import { encodeNpyHeader, npyBytes } from "./header.ts";
import { writeNpy } from "./write.ts";
import { writeNpz } from "./write_npz.ts";
import { openZipEntry, readZipDirectory } from "./zip.ts";

const FIXTURES = join(import.meta.dirname!, "..", "..", "fixtures");
const SAMPLE = join(FIXTURES, "sample.npz");

function bytesOf(value: Tensor): Uint8Array {
  return new Uint8Array([...npyBytes(value)].flatMap((piece) => [...piece]));
}

const COUNTING = tensor("f32", [3, 4], Float32Array.from({ length: 12 }, (_, i) => i));

function nameOf(one: EachMember): string | undefined {
  return "source" in one ? one.name : one.other.name;
}

Deno.test("writeNpy() and readNpy() round-trip every dtype", async () => {
  await inFolder(async (dir) => {
    const path = join(dir, "x.npy");
    for (const dtype of DTYPES) {
      const value = convertDType(COUNTING, dtype);
      await writeNpy(path, value);
      assert.deepEqual(await readNpy(path), value);
    }
    assert.deepEqual([...Deno.readDirSync(dir)].map(({ name }) => name), ["x.npy"]);
  });
});

Deno.test("bf16 is read and written as ml_dtypes does, whole, in parts and in any order", async () => {
  await inFolder(async (dir) => {
    const path = join(dir, "x.npy");
    // np.save of np.array([1, 1.5, -2, 3e38, nan, inf], ml_dtypes.bfloat16).
    const saved = Uint8Array.fromHex("803fc03f00c0627fc07f807f");
    const values = [1, 1.5, -2, 2 ** 127 * (2 - 15 * 2 ** -6), NaN, Infinity];
    const file = new Uint8Array([...encodeNpyHeader("bf16", [2, 3]), ...saved]);
    await Deno.writeFile(path, file);
    using source = await openNpy(path);
    assert.equal(source.dtype, "bf16");
    const read = await source.read();
    assert.deepEqual([...read.data], values);
    assert.deepEqual([...(await source.readAs("f64")).data].slice(0, 3), [1, 1.5, -2]);
    assert.deepEqual([...(await source.part(1, 1, 2).readAs("f16")).data].slice(0, 2), [1.5, -2]);
    assert.equal(source.part(0, 1, 1).runBytes, 6);
    const chunks = await Array.fromAsync(source.chunksAs("f32", 4), (chunk) => chunk.length);
    assert.deepEqual(chunks, [4, 2]);
    await writeNpy(join(dir, "y.npy"), read);
    assert.deepEqual(await Deno.readFile(join(dir, "y.npy")), file);
    await writeNpy(`${join(dir, "y.npz")}:y`, read);
    assert.deepEqual((await readNpy(`${join(dir, "y.npz")}:y`)).data, read.data);
    const text = String.fromCharCode(...file).replace("False", "True ").replace("<V2", ">V2");
    await Deno.writeFile(path, Uint8Array.from(text, (letter) => letter.charCodeAt(0)));
    const bits = [0x803f, 0xc03f, 0x00c0, 0x627f, 0xc07f, 0x807f].map((bits) => bits << 16);
    const swapped = new Float32Array(Uint32Array.from(bits).buffer);
    const order = [0, 2, 4, 1, 3, 5];
    assert.deepEqual([...(await readNpy(path)).data], order.map((at) => swapped[at]));
  });
});

Deno.test("values are rounded to bf16 once, whatever their type and however many pieces they take", async () => {
  await inFolder(async (dir) => {
    const path = join(dir, "x.npy");
    const long = new Float64Array(2 ** 21 + 5).fill(1 + 2 ** -8 + 2 ** -40);
    await writeNpy(path, convertDType(tensor("f64", [long.length], long), "bf16"));
    const { data, shape } = await readNpy(path);
    assert.deepEqual(shape, [long.length]);
    assert.ok((data as Float32Array).every((value) => value === 1 + 2 ** -7));
    const whole = BigInt64Array.of(2n ** 62n + 2n ** 54n + 1n);
    await writeNpy(path, convertDType(tensor("i64", [1], whole), "bf16"));
    assert.deepEqual([...(await readNpy(path)).data], [2 ** 62 + 2 ** 55]);
  });
});

Deno.test("openEach() says what members are that are no tensors, and reads the others", async () => {
  await inFolder(async (dir) => {
    const path = join(dir, "x.npz");
    const objects = new Uint8Array(bytesOf(COUNTING));
    objects.set(new TextEncoder().encode("'|O' "), 20);
    const truncated = bytesOf(COUNTING).subarray(0, 150);
    const members = {
      "a.npy": bytesOf(COUNTING),
      "readme.txt": new TextEncoder().encode("hello"),
      "objects.npy": objects,
      "empty.npy": new Uint8Array(0),
      "folder/": new Uint8Array(0),
      "z.npy": bytesOf(COUNTING),
    };
    await Deno.writeFile(path, zipSync(members));
    const found = await Array.fromAsync(openEach(path), async (one) => {
      if ("other" in one) return `${one.other.name} ${one.other.bytes}: ${one.other.message}`;
      return `${one.name} ${(await one.source.read()).data.length}`;
    });
    assert.deepEqual(found, [
      "a 12",
      "readme.txt 5: no .npy file",
      `objects ${objects.length}: byte 20: expected numbers such as '<f4', found '|O' (Python ` +
      "objects, a pickle): np.save x.astype('f4') where they are numbers",
      "empty 0: no .npy file",
      "folder/ 0: a folder",
      "z 12",
    ]);
    assert.deepEqual(Object.keys(await readNpz(path)), ["a", "z"]);
    assert.deepEqual(await readNpy(`${path}:z`), COUNTING);
    await Deno.writeFile(path, zipSync({ ...members, "y.npy": truncated }));
    const faults = await Array.fromAsync(
      openEach(path),
      (one) => "other" in one && one.other.fault?.message,
    );
    assert.match(String(faults.at(-1)), /y: byte 150: expected 48 bytes of data/);
    await assert.rejects(readNpz(path), /y: byte 150: expected 48 bytes of data/);
  });
});

Deno.test("readNpz() reads NumPy's stored and deflated archives", async () => {
  const stored = await readNpz(SAMPLE);
  assert.deepEqual(Object.keys(stored), ["x", "w"]);
  assert.deepEqual(stored["x"]!.shape, [1, 3, 8, 8]);
  assert.deepEqual(stored["w"]!.shape, [2, 3, 3, 3]);
  const deflated = await readNpz(join(FIXTURES, "sample_compressed.npz"));
  assert.deepEqual(deflated["x"], stored["x"]);
});

Deno.test("openNpy() takes a member, and a lone member without its name", async () => {
  const { x, w } = await readNpz(SAMPLE);
  assert.deepEqual(await readNpy(`${SAMPLE}:w`), w);
  assert.deepEqual(await readNpy(`${SAMPLE}:w.npy`), w);
  assert.deepEqual(await readNpy(join(FIXTURES, "sample_compressed.npz")), x);
  const names = await Array.fromAsync(openEach(SAMPLE), nameOf);
  assert.deepEqual(names, ["x", "w"]);
  await assert.rejects(openNpy(SAMPLE), /expected one member, found 2: name one of x, w, as in /);
  await assert.rejects(openNpy(`${SAMPLE}:q`), /there is no member q, only: x, w$/);
  await assert.rejects(openNpy("no/such.npz:x"), {
    name: "NotFound",
    message: /^Cannot read no\/such\.npz: /,
  });
});

Deno.test("writeNpz() makes an archive that fflate and readNpz() read", async () => {
  await inFolder(async (dir) => {
    const path = join(dir, "x.npz");
    const tensors = { a: COUNTING, b: tensor("i64", [], new BigInt64Array([-5n])) };
    await writeNpz(path, tensors);
    assert.deepEqual(await readNpz(path), tensors);
    const unzipped = unzipSync(await Deno.readFile(path));
    assert.deepEqual(unzipped["a.npy"], bytesOf(COUNTING));
  });
});

Deno.test("chunksAs() gives values in C order, converted, and keeps to the size", async () => {
  await inFolder(async (dir) => {
    const path = join(dir, "x.npz");
    const big = tensor("f64", [300_000], Float64Array.from({ length: 300_000 }, (_, i) => i % 251));
    const packed = { "big.npy": bytesOf(big), "x.npy": bytesOf(COUNTING) };
    await Deno.writeFile(path, zipSync(packed, { level: 6 }));
    using source = await openNpy(`${path}:big`);
    const values: number[] = [];
    const buffers = new Set<ArrayBuffer>();
    for await (const chunk of source.chunksAs("u8", 70_000)) {
      assert(chunk.length <= 70_000);
      buffers.add(chunk.buffer);
      values.push(...chunk);
    }
    assert.deepEqual(values, [...big.data]);
    assert.equal(buffers.size, 1);
    // Backwards: the stream starts again.
    assert.deepEqual(await source.readAs("f64"), big);
  });
});

Deno.test("chunksAs() turns Fortran order and both byte orders around", async () => {
  const dict = "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }";
  const data = [0, 0, 0, 3, 0, 1, 0, 4, 0, 2, 0, 5];
  const head = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, dict.length, 0];
  const bytes = new Uint8Array([...head, ...new TextEncoder().encode(dict), ...data]);
  await inFolder(async (dir) => {
    const path = join(dir, "f.npy");
    await Deno.writeFile(path, bytes);
    using source = await openNpy(path);
    const chunks: number[][] = [];
    for await (const chunk of source.chunksAs("f32", 4)) chunks.push([...chunk]);
    assert.deepEqual(chunks, [[0, 1, 2, 3], [4, 5]]);
  });
});

Deno.test("readAs() names the file and the element that an integer dtype cannot hold", async () => {
  await inFolder(async (dir) => {
    const path = join(dir, "x.npy");
    await writeNpy(path, tensor("f32", [3], new Float32Array([1, 2, 300])));
    using source = await openNpy(path);
    await assert.rejects(source.readAs("i8"), {
      name: "RangeError",
      message: `Cannot convert ${path} to i8: element 2 is 300, i8 holds -128 to 127`,
    });
  });
});

Deno.test("openZipEntry() refuses archives that lie about sizes and checksums", async () => {
  const small = zipSync({ "x.npy": bytesOf(COUNTING) }, { level: 9 });
  const read = async (change: (view: DataView, directory: number) => void) => {
    const bytes = small.slice();
    const view = new DataView(bytes.buffer);
    change(view, view.getUint32(bytes.length - 6, true));
    const source = memoryBytes(bytes);
    const { entries: [entry] } = await readZipDirectory(source, "x.npz");
    const file = await openZipEntry(source, entry!, "x.npz");
    await file.read(new Uint8Array(file.size), 0);
  };
  await read(() => {});
  const cases: [(view: DataView, at: number) => void, RegExp][] = [
    [(view, at) => view.setUint32(at + 24, 0xfffffff0, true), /expected sizes that agree/],
    [(view, at) => view.setUint32(at + 24, 500, true), /expected 500 inflated bytes, found 176/],
    [(view, at) => view.setUint32(at + 24, 100, true), /expected 100 inflated bytes, found more/],
    [(view, at) => view.setUint32(at + 20, 0xfffffff0, true), /bytes of data, found the end/],
    [(view, at) => view.setUint32(at + 42, 0xfffffff0, true), /expected a zip local header/],
    [(view, at) => view.setUint32(at + 16, 0, true), /expected data with the checksum 00000000/],
    [(view, at) => view.setUint16(at + 10, 93, true), /stored or deflated entry, found .* 93/],
    [(view, at) => view.setUint16(at + 8, 1, true), /an entry that is not encrypted/],
    [(view) => view.setUint32(small.length - 6, 1 << 30, true), /a zip directory inside the file/],
    [(view) => view.setUint32(small.length - 22, 0, true), /the end record of a zip archive/],
  ];
  for (const [change, message] of cases) await assert.rejects(read(change), message);
});

Deno.test("readZipDirectory() takes the wide sizes of zip64 archives", async () => {
  const small = zipSync({ "x.npy": bytesOf(COUNTING) }, { level: 0 });
  const view = new DataView(small.buffer);
  const start = view.getUint32(small.length - 6, true);
  const directory = small.slice(start, small.length - 22);
  const [size, packed] = [view.getUint32(start + 24, true), view.getUint32(start + 20, true)];
  const extra = new DataView(new ArrayBuffer(28));
  [1, 24].forEach((value, i) => extra.setUint16(2 * i, value, true));
  [size, packed, 0].forEach((value, i) => extra.setBigUint64(4 + 8 * i, BigInt(value), true));
  const entry = new DataView(directory.buffer);
  for (const at of [20, 24, 42]) entry.setUint32(at, 0xffffffff, true);
  entry.setUint16(30, extra.byteLength, true);

  const end64 = new DataView(new ArrayBuffer(56 + 20 + 22));
  const directorySize = directory.length + extra.byteLength;
  end64.setUint32(0, 0x06064b50, true);
  end64.setBigUint64(32, 1n, true);
  end64.setBigUint64(40, BigInt(directorySize), true);
  end64.setBigUint64(48, BigInt(start), true);
  end64.setUint32(56, 0x07064b50, true);
  end64.setBigUint64(64, BigInt(start + directorySize), true);
  end64.setUint32(76, 0x06054b50, true);
  for (const at of [86, 88, 92]) end64.setUint32(at, 0xffffffff, true);

  const parts = [small.subarray(0, start), directory, extra.buffer, end64.buffer];
  const bytes = memoryBytes(new Uint8Array(parts.flatMap((part) => [...new Uint8Array(part)])));
  const { entries: [found] } = await readZipDirectory(bytes, "x.npz");
  assert.deepEqual({ ...found, crc: 0, modified: 0 }, {
    name: "x.npy",
    method: 0,
    encrypted: false,
    crc: 0,
    size,
    compressedSize: packed,
    offset: 0,
    system: 0,
    attributes: 0,
    modified: 0,
    comment: "",
  });
  const file = await openZipEntry(bytes, found!, "x.npz");
  const content = new Uint8Array(file.size);
  await file.read(content, 0);
  assert.deepEqual(content, bytesOf(COUNTING));
});

Deno.test("openEach() reads an archive of 5,000 members in one go", async () => {
  await inFolder(async (dir) => {
    const path = join(dir, "many.npz");
    const names = Array.from({ length: 5000 }, (_, i) => `x${i}`);
    await writeNpz(path, Object.fromEntries(names.map((name) => [name, COUNTING])));
    const found = await Array.fromAsync(openEach(path), (one) => {
      return [nameOf(one), "source" in one ? one.source.path : undefined];
    });
    assert.deepEqual(found, names.map((name) => [name, `${path}:${name}`]));
  });
});

Deno.test("openEach() reads a large archive's directory once", async () => {
  let reads = 0;
  const packed = zipSync(
    Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`x${i}.npy`, bytesOf(COUNTING)])),
  );
  const source = memoryBytes(packed);
  const counted = {
    ...source,
    read: (into: Uint8Array, at: number) => (reads++, source.read(into, at)),
  };
  const { entries } = await readZipDirectory(counted, "x.npz");
  assert.deepEqual([entries.length, reads], [500, 3]);
});

Deno.test("members of one name are refused, which readers take differently", async () => {
  await inFolder(async (dir) => {
    const path = join(dir, "x.npz");
    const twice = zipSync({ "a.npy": bytesOf(COUNTING), "b.npy": bytesOf(COUNTING) });
    // Both in the local headers and in the directory.
    for (let at = 0; at + 5 <= twice.length; at++) {
      if (new TextDecoder().decode(twice.subarray(at, at + 5)) === "b.npy") twice[at] = 97;
    }
    await Deno.writeFile(path, twice);
    const refusal = { name: "SyntaxError", message: `Cannot read ${path}: it has two members a` };
    await assert.rejects(readNpz(path), refusal);
    await assert.rejects(openNpy(`${path}:a`), refusal);
  });
});

Deno.test("a zip directory that is none is refused before it takes memory", async () => {
  // An end record that claims 65,535 entries in 3 MiB of zeros.
  const bytes = new Uint8Array((3 << 20) + 22);
  const view = new DataView(bytes.buffer);
  view.setUint32(3 << 20, 0x06054b50, true);
  view.setUint16((3 << 20) + 10, 65_535, true);
  view.setUint32((3 << 20) + 12, 3 << 20, true);
  let largest = 0;
  const source = memoryBytes(bytes);
  const watched = {
    ...source,
    read(into: Uint8Array, at: number) {
      largest = Math.max(largest, into.length);
      return source.read(into, at);
    },
  };
  await assert.rejects(readZipDirectory(watched, "x.npz"), /expected a zip directory$/);
  assert(largest <= 0xffff + 22);
});
