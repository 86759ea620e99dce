import assert from "#assert";
import { ROOT, run, temporaryDirectory } from "../../tests/cli.ts";
import { isInputError } from "../errors.ts";
import { readText } from "../read_text.ts";
import { openBytes, type StreamStart } from "./bytes.ts";

/** A format of three bytes before as many as the first of them says. */
const START: StreamStart = {
  bytes: 3,
  promised: ([count = 0]) => 3 + count,
  inSequence: () => false,
};

Deno.test({
  name: "openBytes() reads what is no file at rest into memory",
  ignore: Deno.build.os === "windows",
  async fn() {
    const bytes = await openBytes("/dev/null", START);
    assert.equal(bytes.size, 0);
    bytes.close();
    using temporary = temporaryDirectory();
    const directory = temporary.path;
    const pipe = `${directory}/pipe`;
    await run("mkfifo", [pipe]);
    const writing = run("sh", ["-c", 'printf hello > "$0"', pipe]);
    const piped = await openBytes(pipe, START);
    await writing;
    const into = new Uint8Array(4);
    assert.deepEqual([piped.size, await piped.read(into, 1)], [5, 4]);
    assert.equal(new TextDecoder().decode(into), "ello");
    piped.close();
  },
});

Deno.test({
  name: "openBytes() reads no more of an endless stream than its beginning promises",
  ignore: Deno.build.os === "windows",
  async fn() {
    const promises = (count: number) => openBytes("/dev/zero", { ...START, promised: () => count });
    const bytes = await promises(2 ** 20);
    // One byte more says that the stream goes on; a chunk is what a system call brings.
    assert(bytes.size > 2 ** 20 && bytes.size < 2 ** 21, `${bytes.size}`);
    await assert.rejects(promises(2 ** 40), {
      name: "RangeError",
      message:
        "Cannot read /dev/zero: a pipe may bring 4294967296 bytes, this one has 1099511627776 or more",
    });
  },
});

Deno.test({
  name: "openBytes() reads a long stream once, from front to back, and finds its end",
  ignore: Deno.build.os === "windows",
  async fn() {
    const size = 300 * 2 ** 20;
    using temporary = temporaryDirectory();
    const directory = temporary.path;
    const pipe = `${directory}/pipe`;
    await run("mkfifo", [pipe]);
    const open = (bytes: number) => {
      const writing = run("sh", ["-c", `head -c ${bytes} /dev/zero > "$0"`, pipe]);
      const start = { ...START, promised: () => size, inSequence: () => true };
      return { writing, opening: openBytes(pipe, start) };
    };
    const readAll = async (bytes: number) => {
      const { writing, opening } = open(bytes);
      const piped = await opening;
      assert.equal(piped.size, size);
      const into = new Uint8Array(2 ** 20);
      assert.equal(await piped.read(into.subarray(0, 4), 0), 4);
      let read = 0;
      try {
        for (; read < size; read += into.length) {
          const count = await piped.read(into, read);
          if (count < into.length) return read + count;
        }
        const again = {
          name: "TypeError",
          message: `Cannot read ${pipe} twice: it is a pipe of ${size} bytes`,
        };
        await assert.rejects(piped.read(into, 0), again);
        return read;
      } finally {
        piped.close();
        await writing;
      }
    };
    assert.equal(await readAll(size), size);
    assert.equal(await readAll(size - 5), size - 5);
    await assert.rejects(readAll(size + 1), {
      name: "SyntaxError",
      message: `Cannot read ${pipe}: byte ${size}: expected the end of the file, found more bytes`,
    });
  },
});

Deno.test("a name that is empty is no file to read", async () => {
  await assert.rejects(
    () => openBytes("", START),
    /^NotFound: Cannot read a file: its name is ""$/,
  );
});

Deno.test({
  name: "what fails while a file is read names the file",
  ignore: Deno.build.os !== "linux",
  async fn() {
    const memory = await openBytes("/proc/self/mem", START);
    await assert.rejects(
      memory.read(new Uint8Array(4), 0),
      /^\w+: Cannot read \/proc\/self\/mem: input\/output error/,
    );
    memory.close();
  },
});

Deno.test({
  name: "what fails while stdin is read names it",
  ignore: Deno.build.os === "windows",
  async fn() {
    const script = `import { openBytes } from "./src/npy/bytes.ts";
      const start = { bytes: 1, promised: () => 1, inSequence: () => false };
      await openBytes("-", start).catch(({ message }) => console.log(message));`;
    const { stdout } = await run("sh", [
      "-c",
      '"$0" eval --no-check "$1" < /',
      Deno.execPath(),
      script,
    ], {
      cwd: ROOT,
    });
    assert.match(stdout, /^Cannot read stdin: it is a directory/);
  },
});

Deno.test("a name with a NUL is refused as input, not as a fault", async () => {
  const start = START;
  await assert.rejects(
    () => openBytes("a\0b", start),
    /^TypeError: Cannot read a file: its name has a NUL$/,
  );
  await assert.rejects(() => openBytes("a\0b", start), (error: unknown) => isInputError(error));
  assert.throws(() => readText("a\0b"), /^TypeError: Cannot read a file: its name has a NUL$/);
});
