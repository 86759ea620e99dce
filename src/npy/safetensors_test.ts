import assert from "#assert";
import { isInputError } from "../errors.ts";
import { type DType, DTYPES } from "../tensor/dtype.ts";
import { fillTensor } from "../tensor/fill.ts";
import { tensor } from "../tensor/tensor.ts";
import { openEach, openNpy, readNpy, writeNpy, writeNpyParts } from "./mod.ts";
import { inFolder } from "../../tests/cli.ts";

/** A file as the format has it: the header's length, the header, data. */
function fileOf(header: unknown, data: number, text = JSON.stringify(header)): Uint8Array {
  const bytes = new Uint8Array(8 + text.length + data);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(text.length), true);
  bytes.set(new TextEncoder().encode(text), 8);
  for (let at = 0; at < data; at++) bytes[8 + text.length + at] = at + 1;
  return bytes;
}

async function namesOf(file: string): Promise<string[]> {
  const names: string[] = [];
  for await (const one of openEach(file)) {
    names.push("other" in one ? `${one.other.name} (${one.other.message})` : one.name!);
  }
  return names;
}

Deno.test("tensors of every type come back from a file of safetensors, the others stay", async () => {
  await inFolder(async (folder) => {
    const file = `${folder}/model.safetensors`;
    const values = Object.fromEntries(
      DTYPES.map((dtype: DType) => [`layer.${dtype}`, fillTensor(dtype, [3, 5], "integer", 1)]),
    );
    for (const [name, value] of Object.entries(values)) await writeNpy(`${file}:${name}`, value);
    await writeNpy(`${file}:brain`, tensor("bf16", [2], new Float32Array([1.5, -2])));
    await writeNpyParts(`${file}:parts`, { dtype: "f32", shape: [4], axis: 0 }, async (write) => {
      await write(new Float32Array([1, 2]), { first: 0, count: 2, size: 2 });
      await write(new Float32Array([3, 4]), { first: 2, count: 2, size: 2 });
    });
    for (const [name, value] of Object.entries(values)) {
      assert.deepEqual(await readNpy(`${file}:${name}`), value, name);
    }
    using brain = await openNpy(`${file}:brain`);
    assert.deepEqual([brain.dtype, [...(await brain.read()).data]], ["bf16", [1.5, -2]]);
    assert.deepEqual([...(await readNpy(`${file}:parts`)).data], [1, 2, 3, 4]);
    assert.equal((await namesOf(file)).length, DTYPES.length + 2);
    await assert.rejects(
      writeNpy(`${file}:brain`, values["layer.f32"]!, { replace: false }),
      /model\.safetensors:brain: there is a tensor brain, --force replaces it$/,
    );
    await writeNpy(`${file}:brain`, tensor("i8", [1], new Int8Array([7])));
    assert.deepEqual(await readNpy(`${file}:brain`), tensor("i8", [1], new Int8Array([7])));
  });
});

Deno.test("what other programs write is read and kept: texts, empty tensors, types of their own", async () => {
  await inFolder(async (folder) => {
    const file = `${folder}/model.safetensors`;
    await Deno.writeFile(
      file,
      fileOf({
        __metadata__: { format: "pt" },
        b: { dtype: "F8_E4M3", shape: [3], data_offsets: [4, 7] },
        a: { dtype: "U8", shape: [2, 2], data_offsets: [0, 4] },
        none: { dtype: "F32", shape: [0, 9], data_offsets: [4, 4] },
      }, 7),
    );
    assert.deepEqual(await namesOf(file), ["a", "none", "b (a tensor of F8_E4M3)"]);
    assert.deepEqual((await readNpy(`${file}:none`)).shape, [0, 9]);
    await assert.rejects(readNpy(`${file}:b`), /found F8_E4M3: convert it with tensor\.to/);
    await assert.rejects(readNpy(`${file}:c`), /there is no member c, only: a, none, b$/);
    await assert.rejects(
      readNpy(file),
      /expected one member, found 3: name one of a, none, b, as in/,
    );
    await writeNpy(`${file}:w`, tensor("f64", [1], new Float64Array([0.5])));
    assert.deepEqual([...(await readNpy(`${file}:a`)).data], [1, 2, 3, 4]);
    const bytes = await Deno.readFile(file);
    const text = new TextDecoder().decode(bytes.subarray(8, 8 + bytes[0]! + 256 * bytes[1]!));
    const { __metadata__: metadata, b, w } = JSON.parse(text);
    assert.deepEqual([metadata, b.data_offsets], [{ format: "pt" }, [12, 15]]);
    // The widest types first, at multiples of 8 bytes.
    assert.deepEqual([w.data_offsets, text.length % 8], [[0, 8], 0]);
    assert.deepEqual([...bytes.slice(-3)], [5, 6, 7]);
  });
});

Deno.test("a file that breaks the format's rules is refused with the byte or the tensor", async () => {
  const one = (entry: object) => ({
    x: { dtype: "F32", shape: [1], data_offsets: [0, 4], ...entry },
  });
  const cases: [Uint8Array, RegExp][] = [
    [new Uint8Array(3), /byte 3: expected 5 more bytes, found the end of the file$/],
    [fileOf(one({}), 0, '{"x"'), /byte 8: expected a header of safetensors, a JSON object/],
    [fileOf([], 0), /byte 8: expected a header of safetensors/],
    [fileOf({ x: 1 }, 0), /byte 8: expected a header of safetensors/],
    [fileOf(one({ shape: [2] }), 4), /x has 4 bytes of data, expected 8 \(\[2\] F32\)$/],
    [fileOf(one({ shape: [-1] }), 4), /x lacks its dtype, shape or data_offsets$/],
    [fileOf(one({ shape: [2 ** 40, 2 ** 40] }), 4), /x has 4 bytes of data, expected /],
    [fileOf(one({}), 5), /its tensors end at byte \d+, the file at byte \d+$/],
    [fileOf(one({ data_offsets: [4, 8] }), 8), /x begins at byte \d+, expected \d+$/],
    [fileOf({ ...one({}), y: one({}).x }, 4), /[xy] begins at byte \d+, expected \d+$/],
    [new Uint8Array(20).fill(255), /byte 0: expected the length of a header of safetensors/],
  ];
  await inFolder(async (folder) => {
    const file = `${folder}/model.safetensors`;
    for (const [bytes, message] of cases) {
      await Deno.writeFile(file, bytes);
      await assert.rejects(
        namesOf(file),
        (error: Error) =>
          isInputError(error) && message.test(error.message) &&
          error.message.startsWith("Cannot read"),
      );
      if (bytes.length === 3) continue;
      await assert.rejects(writeNpy(`${file}:z`, tensor("u8", [1], new Uint8Array(1))), message);
      assert.deepEqual(await Deno.readFile(file), bytes);
    }
    await assert.rejects(
      writeNpy(file, tensor("u8", [1], new Uint8Array(1))),
      /an archive has members, name the one to write as in .*model\.safetensors:y$/,
    );
  });
});
