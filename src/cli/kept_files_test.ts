import assert from "#assert";
import { join } from "node:path";
import { mergeFile } from "./kept_files.ts";

Deno.test("mergeFile() leaves what there was where nothing comes of it: also nothing", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const path = join(folder, "kept");
    const fail = () => {
      throw new Error("no");
    };
    await assert.rejects(mergeFile(path, fail), /no/);
    assert.deepEqual([...Deno.readDirSync(folder)], []);
    await mergeFile(path, (before) => `${before}1`);
    await assert.rejects(mergeFile(path, fail), /no/);
    assert.equal(await Deno.readTextFile(path), "1");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
