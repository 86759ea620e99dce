import assert from "#assert";
import { inFolder } from "../../tests/cli.ts";
import { join } from "node:path";
import { zipSync } from "../deps/fflate.ts";
import { convertDType } from "../tensor/convert.ts";
import { type Tensor, tensor } from "../tensor/tensor.ts";
import { memoryBytes } from "./bytes.ts";
import { encodeNpyHeader, npyBytes } from "./header.ts";
import { openNpy, readNpy } from "./npz.ts";
import { npySource } from "./source.ts";
import { writeNpyParts } from "./write.ts";

const SHAPE = [3, 4, 5];
const VALUES = Float32Array.from({ length: 60 }, (_, i) => i + 1);
const COUNTING = tensor("f32", SHAPE, VALUES);

/** The entries `first` to `first + count` along an axis of {@linkcode COUNTING}; zeros where there are none. */
function partOf(axis: number, first: number, count: number): Tensor<"f32"> {
  const shape = SHAPE.with(axis, count);
  const data = Float32Array.from({ length: 60 / SHAPE[axis]! * count }, (_, i) => {
    const at = [Math.floor(i / shape[2]! / shape[1]!), Math.floor(i / shape[2]!) % shape[1]!];
    const place = [...at, i % shape[2]!];
    place[axis]! += first;
    return place[axis]! < SHAPE[axis]! ? VALUES[(place[0]! * 4 + place[1]!) * 5 + place[2]!]! : 0;
  });
  return tensor("f32", shape, data);
}

/** The bytes of {@linkcode COUNTING} in Fortran order. */
function fortranBytes(): Uint8Array<ArrayBuffer> {
  const header = String.fromCharCode(...encodeNpyHeader("f32", SHAPE)).replace("False", "True ");
  const data = Float32Array.from(
    VALUES,
    (_, i) => VALUES[(i % 3 * 4 + Math.floor(i / 3) % 4) * 5 + Math.floor(i / 12)]!,
  );
  const bytes = new Uint8Array(header.length + data.byteLength);
  bytes.set(Uint8Array.from(header, (letter) => letter.charCodeAt(0)));
  bytes.set(new Uint8Array(data.buffer), header.length);
  return bytes;
}

function wholeBytes(value: Tensor): Uint8Array<ArrayBuffer> {
  return new Uint8Array([...npyBytes(value)].flatMap((piece) => [...piece]));
}

Deno.test("part() reads entries of any axis, in C and Fortran order, in each dtype; zeros behind the last", async () => {
  const orders = { c: wholeBytes(COUNTING), fortran: fortranBytes() };
  for (const [order, bytes] of Object.entries(orders)) {
    using source = await npySource(memoryBytes(bytes), order);
    assert.deepEqual(await source.read(), COUNTING, order);
    for (const axis of [0, 1, 2]) {
      for (const [first, count] of [[0, 2], [1, 2], [2, 3], [1, 1], [9, 2], [0, 0]] as const) {
        const what = `${order}: ${count} from ${first} on of axis ${axis}`;
        const part = source.part(axis, first, count);
        const expected = partOf(axis, first, count);
        assert.deepEqual(await part.read(), expected, what);
        assert.deepEqual(await part.readAs("f64"), convertDType(expected, "f64"), what);
        for (const size of [1, 7, 1000]) {
          const values: number[] = [];
          for await (const chunk of part.chunksAs("f32", size)) values.push(...chunk);
          assert.deepEqual(values, [...expected.data], `${what}, ${size} at a time`);
        }
      }
    }
  }
});

Deno.test("parts that follow each other are read into the same memory", async () => {
  using source = await npySource(memoryBytes(wholeBytes(COUNTING)), "x");
  const rooms = async (first: number) => {
    const chunks = await Array.fromAsync(source.part(0, first, 1).chunksAs("f32", 7));
    return new Set(chunks.map(({ buffer }) => buffer));
  };
  const [one, other] = [await rooms(0), await rooms(1)];
  assert.equal(one.size, 2);
  assert.deepEqual(new Set([...one, ...other]), one);
});

Deno.test("part() says how much of it follows itself in the file", async () => {
  using c = await npySource(memoryBytes(wholeBytes(COUNTING)), "c");
  using fortran = await npySource(memoryBytes(fortranBytes()), "fortran");
  assert.deepEqual([0, 1, 2].map((axis) => c.part(axis, 0, 2).runBytes), [160, 40, 8]);
  assert.deepEqual([0, 1, 2].map((axis) => fortran.part(axis, 0, 2).runBytes), [8, 24, 96]);
});

Deno.test("parts close nothing, and read a deflated member in sequence", async () => {
  await inFolder(async (dir) => {
    const path = join(dir, "x.npz");
    await Deno.writeFile(path, zipSync({ "x.npy": wholeBytes(COUNTING) }, { level: 6 }));
    using source = await openNpy(path);
    for (const first of [0, 2]) {
      using part = source.part(0, first, 2);
      assert.deepEqual(await part.read(), partOf(0, first, 2));
    }
    assert.deepEqual(await source.read(), COUNTING);
  });
});

Deno.test("a file that was cut short is found when its part is read", async () => {
  await inFolder(async (dir) => {
    const path = join(dir, "x.npy");
    await Deno.writeFile(path, wholeBytes(COUNTING));
    using source = await openNpy(path);
    await Deno.truncate(path, 128 + 100);
    assert.deepEqual(await source.part(0, 0, 1).read(), partOf(0, 0, 1));
    await assert.rejects(source.part(0, 1, 1).read(), {
      name: "SyntaxError",
      message: `Cannot read ${path}: byte 228: expected 60 more bytes, found the end of the file`,
    });
    const read: number[] = [];
    const all = async () => {
      for await (const chunk of source.chunksAs("f32", 20)) read.push(...chunk);
    };
    await assert.rejects(all(), { name: "SyntaxError" });
    assert.deepEqual(read, [...VALUES.subarray(0, 20)], "what was read before is given before");
  });
});

Deno.test("writeNpyParts() writes parts along any axis, whole or not at all", async () => {
  await inFolder(async (dir) => {
    const path = join(dir, "y.npy");
    for (const axis of [0, 1, 2]) {
      await writeNpyParts(path, { dtype: "f32", shape: SHAPE, axis }, async (write) => {
        for (let first = 0; first < SHAPE[axis]!; first += 2) {
          const count = Math.min(2, SHAPE[axis]! - first);
          await write(partOf(axis, first, 2).data, { first, count, size: 2 });
        }
      });
      assert.deepEqual(await readNpy(path), COUNTING, `axis ${axis}`);
    }
    await Deno.remove(path);
    const failing = writeNpyParts(path, { dtype: "f32", shape: SHAPE, axis: 0 }, async (write) => {
      await write(partOf(0, 0, 2).data, { first: 0, count: 2, size: 2 });
      throw new Error("the device went away");
    });
    await assert.rejects(failing, /the device went away/);
    assert.deepEqual([...Deno.readDirSync(dir)], []);
  });
});
