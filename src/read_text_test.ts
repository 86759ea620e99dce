import assert from "#assert";
import { temporaryDirectory } from "../tests/cli.ts";
import { join } from "node:path";
import { MAX_TEXT_BYTES, readText } from "./read_text.ts";

Deno.test("readText() reads a text, and names what it cannot read", async () => {
  using temporary = temporaryDirectory();
  const folder = temporary.path;
  const path = join(folder, "x.txt");
  await Deno.writeTextFile(path, "größer\n".repeat(20_000));
  assert.equal(readText(path), "größer\n".repeat(20_000));
  assert.throws(() => readText(join(folder, "no.txt")), {
    name: "NotFound",
    message: `Cannot read ${join(folder, "no.txt")}: there is no such file`,
  });
  assert.throws(() => readText(folder), {
    name: "IsADirectory",
    message: `Cannot read ${folder}: it is a directory`,
  });
  await Deno.writeTextFile(path, "a\0b");
  assert.throws(() => readText(path), {
    name: "TypeError",
    message: `Cannot read ${path}: it is no text`,
  });
  await Deno.writeFile(path, Uint8Array.of(0xff, 0xfe, 0x6d, 0, 0x62, 0));
  assert.throws(
    () => readText(path),
    /: it is UTF-16, as PowerShell's > writes; save it as UTF-8/,
  );
  // A hole in a file takes no disk.
  await Deno.truncate(path, MAX_TEXT_BYTES + 1);
  assert.throws(() => readText(path), {
    name: "RangeError",
    message: `Cannot read ${path}: it is longer than the 64 MiB of a text`,
  });
});
