import assert from "#assert";
import { readNpy } from "../npy/mod.ts";
import { untimed } from "../run/timeline.ts";
import { writeBeside } from "./overlap.ts";
import { inFolder } from "../../tests/cli.ts";

const RESULT = Float32Array.of(1, 2, 3);

function names(folder: string): string[] {
  return [...Deno.readDirSync(folder)].map(({ name }) => name).sort();
}

/** Waits until the whole of a result is in the unfinished file beside `path`. */
async function writtenBeside(folder: string): Promise<void> {
  for (let size = 0; size < 128 + RESULT.byteLength;) {
    await new Promise((done) => setTimeout(done, 5));
    const unfinished = names(folder).find((name) => name.includes(".tmp-"));
    size = unfinished === undefined ? 0 : Deno.statSync(`${folder}/${unfinished}`).size;
  }
}

Deno.test("writeBeside() writes while the check goes on, and the file is there when it has ended", async () => {
  await inFolder(async (folder) => {
    const path = `${folder}/y.npy`;
    const file = { path, dtype: "f32", shape: [3] } as const;
    const { computed, written } = await writeBeside(file, untimed, async (onResult) => {
      onResult(RESULT);
      await writtenBeside(folder);
      assert.match(names(folder).join(), /^y\.npy\.tmp-[^,]*$/);
      return "a verdict";
    });
    assert.equal(computed, "a verdict");
    await written;
    assert.deepEqual(names(folder), ["y.npy"]);
    assert.deepEqual([...(await readNpy(path)).data], [...RESULT]);
  });
});

Deno.test("writeBeside() leaves what was there where the check throws", async () => {
  await inFolder(async (folder) => {
    const path = `${folder}/y.npy`;
    await Deno.writeTextFile(path, "before");
    const file = { path, dtype: "f32", shape: [3] } as const;
    const failing = writeBeside(file, untimed, async (onResult) => {
      onResult(RESULT);
      await writtenBeside(folder);
      throw new Error("the device was lost");
    });
    await assert.rejects(failing, /^Error: the device was lost$/);
    assert.deepEqual(names(folder), ["y.npy"]);
    assert.equal(await Deno.readTextFile(path), "before");
  });
});

Deno.test("writeBeside() gives what was computed though it cannot be written", async () => {
  await inFolder(async (folder) => {
    const file = { path: `${folder}/none/y.npy`, dtype: "f32", shape: [3] } as const;
    const { computed, written } = await writeBeside(file, untimed, async (onResult) => {
      onResult(RESULT);
      await new Promise((done) => setTimeout(done, 20));
      return "a verdict";
    });
    assert.equal(computed, "a verdict");
    await assert.rejects(written!, /there is no directory/);
    const nowhere = await writeBeside({ ...file, path: undefined }, untimed, (onResult) => {
      onResult(RESULT);
      return Promise.resolve(1);
    });
    assert.deepEqual(nowhere, { computed: 1, written: undefined });
  });
});

Deno.test("writeBeside() adds a member to an archive when the check has ended, and none where it throws", async () => {
  await inFolder(async (folder) => {
    const file = { path: `${folder}/all.npz:y`, dtype: "f32", shape: [3] } as const;
    const failing = writeBeside(file, untimed, async (onResult) => {
      onResult(RESULT);
      await new Promise((done) => setTimeout(done, 20));
      throw new Error("the device was lost");
    });
    await assert.rejects(failing, /^Error: the device was lost$/);
    assert.deepEqual(names(folder), []);
    const { written } = await writeBeside(file, untimed, async (onResult) => {
      onResult(RESULT);
      await new Promise((done) => setTimeout(done, 20));
      assert.ok(!names(folder).includes("all.npz"));
    });
    await written;
    assert.deepEqual([...(await readNpy(file.path)).data], [...RESULT]);
  });
});
