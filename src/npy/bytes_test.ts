import assert from "#assert";
import { run } from "../../tests/cli.ts";
import { openBytes } from "./bytes.ts";

Deno.test({
  name: "openBytes() reads what is no file at rest into memory",
  ignore: Deno.build.os === "windows",
  async fn() {
    const bytes = await openBytes("/dev/null");
    assert.equal(bytes.size, 0);
    bytes.close();
    const directory = await Deno.makeTempDir();
    try {
      const pipe = `${directory}/pipe`;
      await run("mkfifo", [pipe]);
      const writing = run("sh", ["-c", 'printf hello > "$0"', pipe]);
      const piped = await openBytes(pipe);
      await writing;
      const into = new Uint8Array(4);
      assert.deepEqual([piped.size, await piped.read(into, 1)], [5, 4]);
      assert.equal(new TextDecoder().decode(into), "ello");
      piped.close();
    } finally {
      await Deno.remove(directory, { recursive: true });
    }
  },
});
