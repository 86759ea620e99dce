import assert from "#assert";
import { join } from "node:path";
import { zipSync } from "../deps/fflate.ts";
import { inFolder, ROOT, run, startDeno } from "../../tests/cli.ts";
import { convertDType } from "../tensor/convert.ts";
import { DTYPES } from "../tensor/dtype.ts";
import { tensor } from "../tensor/tensor.ts";
import { memoryBytes } from "./bytes.ts";
import { encodeNpyHeader, npyBytes } from "./header.ts";
import { readNpy, readNpz } from "./npz.ts";
import { readZipDirectory } from "./zip.ts";
import { proveNpy, proveRoom, writeNpy, writeNpyParts } from "./write.ts";

function names(dir: string): string[] {
  return [...Deno.readDirSync(dir)].map(({ name }) => name).sort();
}

const COUNTING = tensor("f32", [3, 4], Float32Array.from({ length: 12 }, (_, i) => i));
const OTHER = tensor("i64", [], new BigInt64Array([-5n]));

Deno.test("writeNpy() makes an archive, adds members behind those it has, and replaces one", async () => {
  await inFolder(async (dir) => {
    const path = join(dir, "all.npz");
    await writeNpy(`${path}:y`, COUNTING);
    await writeNpy(`${path}:layer/b.npy`, OTHER);
    await writeNpy(`${path}:größe`, COUNTING);
    const there = await readNpz(path);
    assert.deepEqual(Object.keys(there), ["y", "layer/b", "größe"]);
    assert.deepEqual(there, { y: COUNTING, "layer/b": OTHER, "größe": COUNTING });
    await writeNpy(`${path}:y`, OTHER);
    assert.deepEqual(await readNpz(path), { "layer/b": OTHER, "größe": COUNTING, y: OTHER });
    assert.deepEqual(names(dir), ["all.npz"]);
  });
});

Deno.test("members that are deflated stay so, and so does what is no tensor", async () => {
  await inFolder(async (dir) => {
    const path = join(dir, "all.npz");
    const zeros = tensor("f32", [100_000], new Float32Array(100_000));
    const bytes = new Uint8Array([...npyBytes(zeros)].flatMap((piece) => [...piece]));
    await Deno.writeFile(path, zipSync({ "zeros.npy": bytes, "notes.txt": new Uint8Array(3) }));
    const before = (await Deno.stat(path)).size;
    await writeNpy(`${path}:y`, COUNTING);
    assert.ok((await Deno.stat(path)).size < before + 1000);
    assert.deepEqual(await readNpy(`${path}:zeros`), zeros);
    assert.deepEqual(await readNpy(`${path}:y`), COUNTING);
    await assert.rejects(readNpy(`${path}:notes.txt`), /^SyntaxError: Cannot read .*notes\.txt/);
  });
});

Deno.test("an archive's comment and what it says of its files stay when a member is added", async () => {
  await inFolder(async (dir) => {
    const path = join(dir, "all.npz");
    const mtime = new Date(2020, 1, 3, 4, 5, 6);
    const attributes = { comment: "größe", os: 3, attrs: 0o644 << 16, mtime };
    const packed = zipSync({ "notes.txt": [Uint8Array.of(1, 2, 3), attributes] });
    const text = new TextEncoder().encode("made by größe");
    new DataView(packed.buffer).setUint16(packed.length - 2, text.length, true);
    await Deno.writeFile(path, new Uint8Array([...packed, ...text]));
    const directory = async () => {
      const bytes = await Deno.readFile(path);
      const { entries, comment } = await readZipDirectory(memoryBytes(bytes), path);
      const [{ offset: _, ...notes } = {}] = entries;
      return { notes, comment };
    };
    const before = await directory();
    assert.deepEqual(before.comment, text);
    for (const member of ["y", "z", "y"]) {
      await writeNpy(`${path}:${member}`, COUNTING);
      assert.deepEqual(await directory(), before);
    }
    assert.deepEqual(await readNpy(`${path}:y`), COUNTING);
  });
});

Deno.test("writeNpyParts() writes parts that follow each other into an archive, and no others", async () => {
  await inFolder(async (dir) => {
    const path = join(dir, "all.npz");
    await writeNpy(`${path}:first`, OTHER);
    await writeNpyParts(`${path}:y`, { ...COUNTING, axis: 0 }, async (write) => {
      await write(COUNTING.data.subarray(0, 8), { first: 0, count: 2, size: 2 });
      await write(COUNTING.data.subarray(8), { first: 2, count: 1, size: 1 });
    });
    assert.deepEqual(await readNpz(path), { first: OTHER, y: COUNTING });
    await assert.rejects(writeNpyParts(`${path}:z`, { ...COUNTING, axis: 1 }, async () => {}), {
      name: "TypeError",
      message: `Cannot write ${path}:z in parts that do not follow each other`,
    });
    const failing = writeNpyParts(`${path}:z`, { ...COUNTING, axis: 0 }, () => {
      return Promise.reject(new RangeError("no more"));
    });
    await assert.rejects(failing, { message: "no more" });
    assert.deepEqual(await readNpz(path), { first: OTHER, y: COUNTING });
    assert.deepEqual(names(dir), ["all.npz"]);
  });
});

Deno.test("of several that write a member at once, and may replace none, one does", async () => {
  await inFolder(async (dir) => {
    const path = join(dir, "all.npz");
    const all = await Promise.allSettled(
      Array.from({ length: 4 }, () => writeNpy(`${path}:y`, COUNTING, { replace: false })),
    );
    const failed = all.filter(({ status }) => status === "rejected") as PromiseRejectedResult[];
    assert.equal(failed.length, 3);
    for (const { reason } of failed) {
      assert.match(String(reason), /^TypeError: .*: there is a member y, --force replaces it$/);
    }
    assert.deepEqual(await readNpz(path), { y: COUNTING });
    assert.deepEqual(names(dir), ["all.npz"]);
  });
});

Deno.test("proveNpy() asks for a member's name, and for --force where it is there", async () => {
  await inFolder(async (dir) => {
    const path = join(dir, "all.npz");
    const refused = (member: string, message: RegExp) =>
      assert.rejects(proveNpy(`${path}${member}`, false), message);
    for (const none of ["", ":"]) {
      await refused(none, /^TypeError: .* name the one to write as in .*all\.npz:y$/);
    }
    for (const odd of ["/y", "../y", "a//b", "a\\b", "a\nb", "a\0b", ".npy", "y/."]) {
      await refused(`:${odd}`, /^TypeError: .*: expected a member such as y or layer\/y/s);
    }
    await refused(`:${"é".repeat(32_766)}`, /^TypeError: .* more than 65535 bytes$/);
    await proveNpy(`${path}:y:1 ?*"`, false);
    assert.deepEqual(names(dir), []);
    await writeNpy(`${path}:y`, COUNTING);
    for (const member of ["y", "y.npy"]) {
      await refused(`:${member}`, /^TypeError: .*: there is a member y, --force replaces it$/);
      await proveNpy(`${path}:${member}`, true);
    }
    await proveNpy(`${path}:z`, false);
    await Deno.writeTextFile(path, "some text");
    await refused(":z", /^SyntaxError: .* is no \.npz archive, and would be lost$/);
    await assert.rejects(writeNpy(`${path}:z`, COUNTING), /and would be lost$/);
    assert.equal(await Deno.readTextFile(path), "some text");
    await Deno.writeTextFile(path, "");
    await writeNpy(`${path}:z`, COUNTING);
    assert.deepEqual(await readNpz(path), { z: COUNTING });
  });
});

Deno.test("archives of 4 GiB are refused before there is any data", async () => {
  await inFolder(async (dir) => {
    const path = join(dir, "all.npz");
    const overhead = 30 + 16 + 46 + 22 + 2 * "y.npy".length;
    const most = 2 ** 32 - 1 - overhead - encodeNpyHeader("u8", [2 ** 32 - 1]).length;
    await proveRoom(`${path}:y`, { dtype: "u8", shape: [most] });
    const large = (size: number) => proveRoom(`${path}:y`, { dtype: "u8", shape: [size] });
    await assert.rejects(large(most + 1), {
      name: "RangeError",
      message: `Cannot write ${path}: 4294967296 bytes are more than an .npz of 4 GiB holds, ` +
        "write .npy files",
    });
    await proveRoom(join(dir, "y.npy"), { dtype: "u8", shape: [most + 1] });
    await writeNpy(`${path}:x`, OTHER);
    await assert.rejects(large(most), /of 4 GiB/);
    await writeNpy(`${path}:y`, COUNTING);
    await Deno.remove(path);
    await writeNpy(`${path}:y`, COUNTING);
    // What is replaced takes no room.
    await large(most);
  });
});

Deno.test("an archive holds 65,535 members and no more", async () => {
  await inFolder(async (dir) => {
    const path = join(dir, "all.npz");
    const files = Array.from({ length: 65_535 }, (_, i) => [`x${i}.npy`, new Uint8Array(0)]);
    await Deno.writeFile(path, zipSync(Object.fromEntries(files), { level: 0 }));
    const room = (name: string) => proveRoom(`${path}:${name}`, { dtype: "u8", shape: [0] });
    await room("x7");
    await assert.rejects(room("y"), /an \.npz holds 65535 members, not 65536$/);
  });
});

Deno.test("of members that programs add at the same time none is lost", async () => {
  await inFolder(async (dir) => {
    const path = join(dir, "all.npz");
    const script = join(dir, "add.ts");
    await Deno.writeTextFile(
      script,
      `import { tensor, writeNpy } from ${JSON.stringify(`file://${ROOT}mod.ts`)};
       for (let i = 0; i < 20; i++) {
         const data = new Float32Array(1000).fill(i);
         await writeNpy(Deno.args[0] + Deno.args[1] + i, tensor("f32", [1000], data));
       }`,
    );
    const children = ["a", "b"].map((name) =>
      startDeno(["run", "-A", "--config", `${ROOT}deno.json`, script, `${path}:`, name], {
        stdout: "null",
        stderr: "inherit",
      })
    );
    for (const child of children) assert.equal((await child.status).code, 0);
    const all = await readNpz(path);
    const wanted = ["a", "b"].flatMap((name) => Array.from({ length: 20 }, (_, i) => name + i));
    assert.deepEqual(Object.keys(all).sort(), wanted.sort());
    for (const [name, { data }] of Object.entries(all)) {
      assert.equal(data[999], Number(name.slice(1)));
    }
  });
});

Deno.test("NumPy reads the members of every dtype, and we keep those of its archives", async () => {
  const found = await run("python3", ["-c", "import numpy"]).catch(() => ({ code: 1 }));
  if (found.code !== 0) return console.log("left out: python3 has no numpy");
  await inFolder(async (dir) => {
    const path = join(dir, "all.npz");
    const made = `import numpy as np, sys; np.savez_compressed(sys.argv[1], a=np.arange(6.), ` +
      `f=np.asfortranarray([[1, 2], [3, 4]]), **{"käse": np.float16([1.5])})`;
    assert.equal((await run("python3", ["-c", made, path])).code, 0);
    for (const dtype of DTYPES) await writeNpy(`${path}:${dtype}`, convertDType(COUNTING, dtype));
    const read = `import numpy as np, sys
all = np.load(sys.argv[1])
assert list(all.files[:3]) == ["a", "f", "käse"], all.files
assert (all["a"] == np.arange(6.)).all() and (all["f"] == [[1, 2], [3, 4]]).all()
assert all["f"].flags.f_contiguous and all["käse"] == 1.5
counting = np.arange(12).reshape(3, 4)
assert (all["bf16"].view("<u2") == counting.astype("f4").view("<u4") >> 16).all()
for name in set(all.files[3:]) - {"bf16"}:
    assert (all[name] == (counting != 0 if all[name].dtype == bool else counting)).all(), name
print(*(f"{name}={all[name].dtype}" for name in all.files[3:]))`;
    const { code, stdout, stderr } = await run("python3", ["-c", read, path]);
    assert.equal(code, 0, stderr);
    const said = stdout.trim().split(" ");
    assert.deepEqual(said.map((pair) => pair.split("=")[0]), [...DTYPES]);
    for (const pair of ["f16=float16", "i8=int8", "f32=float32"]) assert.ok(said.includes(pair));
  });
});
