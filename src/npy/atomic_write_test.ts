import assert from "#assert";
import { join } from "node:path";
import { inFolder, ROOT, run, startDeno } from "../../tests/cli.ts";
import { proveWritable, writeAtomically } from "./atomic_write.ts";

function names(dir: string): string[] {
  return [...Deno.readDirSync(dir)].map(({ name }) => name).sort();
}

Deno.test("writeAtomically() shows the file only when it is whole", async () => {
  await inFolder(async (dir) => {
    const path = join(dir, "out.txt");
    await Deno.writeTextFile(path, "old");
    await writeAtomically(path, async (write) => {
      await write(new TextEncoder().encode("new "));
      assert.equal(await Deno.readTextFile(path), "old");
      await write(new TextEncoder().encode("text"));
    });
    assert.equal(await Deno.readTextFile(path), "new text");
    assert.deepEqual(names(dir), ["out.txt"]);
  });
});

Deno.test("writeAtomically() leaves the old file and no temporary after an error", async () => {
  await inFolder(async (dir) => {
    const path = join(dir, "out.txt");
    await Deno.writeTextFile(path, "old");
    const failing = writeAtomically(path, async (write) => {
      await write(new Uint8Array(100));
      throw new RangeError("no more");
    });
    await assert.rejects(failing, { message: "no more" });
    assert.equal(await Deno.readTextFile(path), "old");
    assert.deepEqual(names(dir), ["out.txt"]);
  });
});

Deno.test("writeAtomically() names the path where it cannot write", async () => {
  await inFolder(async (dir) => {
    const write = (path: string) => writeAtomically(path, async (write) => await write(bytes));
    const bytes = new Uint8Array(8);
    const missing = join(dir, "none", "x.npy");
    await assert.rejects(write(missing), {
      name: "NotFound",
      message: `Cannot write ${missing}: there is no directory ${join(dir, "none")}`,
    });
    await assert.rejects(write(dir), { name: "IsADirectory" });
  });
});

Deno.test({
  name: "writeAtomically() makes what a link leads to, and leaves the link",
  ignore: Deno.build.os === "windows",
  fn: async () => {
    await inFolder(async (dir) => {
      await Deno.mkdir(join(dir, "folder"));
      await Deno.symlink("folder/second", join(dir, "first"));
      await Deno.symlink("../file", join(dir, "folder/second"));
      await proveWritable(join(dir, "first"));
      assert.deepEqual(names(dir), ["first", "folder"]);
      await writeAtomically(join(dir, "first"), (write) => write(Uint8Array.of(1)));
      assert.deepEqual(await Deno.readFile(join(dir, "file")), Uint8Array.of(1));
      for (const link of ["first", "folder/second"]) {
        assert((await Deno.lstat(join(dir, link))).isSymlink);
      }
      await Deno.symlink("none/file", join(dir, "lost"));
      await assert.rejects(proveWritable(join(dir, "lost")), /there is no directory .*none$/);
      await Deno.symlink("circle", join(dir, "circle"));
      await assert.rejects(proveWritable(join(dir, "circle")), /^\w+: Cannot write .*circle: /);
    });
  },
});

Deno.test("writeAtomically() refuses a name that is empty", async () => {
  await assert.rejects(proveWritable(""), /^TypeError: Cannot write a file: its name is ""$/);
});

Deno.test({
  name: "writeAtomically() writes through a link and keeps the file's mode",
  ignore: Deno.build.os === "windows",
  fn: async () => {
    await inFolder(async (dir) => {
      const [file, link] = [join(dir, "file"), join(dir, "link")];
      await Deno.writeTextFile(file, "old", { mode: 0o600 });
      await Deno.symlink(file, link);
      await writeAtomically(link, async (write) => await write(new TextEncoder().encode("new")));
      assert.equal(await Deno.readTextFile(file), "new");
      assert((await Deno.lstat(link)).isSymlink);
      assert.equal((await Deno.stat(file)).mode! & 0o777, 0o600);
    });
  },
});

Deno.test({
  name: "writeAtomically() says that the disk is full, and writes to devices as they are",
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    const body = async (write: (chunk: Uint8Array) => Promise<void>) => {
      await write(new Uint8Array(8));
    };
    await assert.rejects(writeAtomically("/dev/full", body), {
      name: "WriteZero",
      message: "Cannot write /dev/full: the disk is full",
    });
    await writeAtomically("/dev/null", body);
    assert((await Deno.stat("/dev/null")).isCharDevice);
  },
});

Deno.test("proveWritable() leaves what is there as it is, and nothing beside it", async () => {
  await inFolder(async (dir) => {
    const path = join(dir, "out.txt");
    await proveWritable(path);
    assert.deepEqual(names(dir), []);
    await Deno.writeTextFile(path, "old");
    await proveWritable(path);
    assert.equal(await Deno.readTextFile(path), "old");
    assert.deepEqual(names(dir), ["out.txt"]);
    await assert.rejects(proveWritable(dir), { name: "IsADirectory" });
    await assert.rejects(proveWritable(join(path, "x")), {
      message: `Cannot write ${join(path, "x")}: there is no directory ${path}`,
    });
    await assert.rejects(proveWritable(join(dir, "none", "x")), { name: "NotFound" });
  });
});

const CONFIG = join(ROOT, "deno.json");
const CHILD = `
  import { writeAtomically } from ${JSON.stringify(import.meta.resolve("./atomic_write.ts"))};
  await writeAtomically(Deno.args[0], async (write) => {
    while (true) {
      await write(new Uint8Array(1 << 16));
      console.log("written");
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  });
`;

for (const [signal, code] of [["SIGHUP", 129], ["SIGINT", 130], ["SIGTERM", 143]] as const) {
  Deno.test({
    name: `writeAtomically() removes its temporary on ${signal} and exits ${code}`,
    ignore: Deno.build.os === "windows",
    fn: async () => {
      await inFolder(async (dir) => {
        const script = join(dir, "child.ts");
        await Deno.writeTextFile(script, CHILD);
        const args = ["run", "-A", "--no-check", "--config", CONFIG, script, join(dir, "out.npy")];
        const child = startDeno(args, { stdout: "piped" });
        const output = child.stdout.getReader();
        await output.read();
        assert(names(dir).some((name) => name.startsWith("out.npy.tmp-")), names(dir).join());
        child.kill(signal);
        while (!(await output.read()).done);
        // It has ended itself: a signal that nobody heard would have the same code.
        const status = await child.status;
        assert.deepEqual([status.code, status.signal], [code, null]);
        assert.deepEqual(names(dir), ["child.ts"]);
      });
    },
  });
}

Deno.test({
  name:
    "writeAtomically() says that a file is larger than the process may write, and leaves nothing",
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    await inFolder(async (dir) => {
      const script = join(dir, "child.ts");
      const large = `
        import { writeAtomically } from ${JSON.stringify(import.meta.resolve("./atomic_write.ts"))};
        const chunk = new Uint8Array(8 << 20);
        await writeAtomically(Deno.args[0], async (write) => {
          for (let piece = 0; piece < 8; piece++) await write(chunk);
        }).catch(({ name, message }) => console.log(name, message));`;
      await Deno.writeTextFile(script, large);
      const path = join(dir, "out.npy");
      const limited = 'ulimit -f 32768; exec "$@"';
      const deno = [Deno.execPath(), "run", "-A", "--no-check", "--config", CONFIG, script, path];
      // In KiB. The caches that all tests share may be larger, and the runtime is killed where it writes to them.
      const { code, stdout } = await inFolder((cache) =>
        run("bash", ["-c", limited, "bash", ...deno], { env: { DENO_DIR: cache } })
      );
      assert.equal(code, 0);
      assert.equal(
        stdout,
        `WriteZero Cannot write ${path}: it is larger than a file may be here (ulimit -f)\n`,
      );
      assert.deepEqual(names(dir), ["child.ts"]);
    });
  },
});

Deno.test({
  name: "a signal that comes while a file is written without a pause is heard when it is",
  ignore: Deno.build.os === "windows",
  fn: async () => {
    await inFolder(async (dir) => {
      const script = join(dir, "child.ts");
      const busy = `
        import { existsSync } from "node:fs";
        import { writeAtomically } from ${JSON.stringify(import.meta.resolve("./atomic_write.ts"))};
        await writeAtomically(Deno.args[0], async (write) => {
          await write(new Uint8Array(8));
          console.log("written");
          while (!existsSync(Deno.args[1]));
        });
        await new Promise((resolve) => setTimeout(resolve, 60_000));`;
      await Deno.writeTextFile(script, busy);
      const args = ["run", "-A", "--no-check", "--config", CONFIG, script];
      const killed = join(dir, "killed");
      const child = startDeno([...args, join(dir, "out.npy"), killed], { stdout: "piped" });
      const output = child.stdout.getReader();
      await output.read();
      child.kill("SIGINT");
      await Deno.writeTextFile(killed, "");
      while (!(await output.read()).done);
      const { code, signal } = await child.status;
      assert.deepEqual([code, signal], [130, null]);
    });
  },
});

Deno.test("writeAtomically() waits for what has to go well before the file is there", async () => {
  await inFolder(async (dir) => {
    const path = join(dir, "out.txt");
    const bytes = new TextEncoder().encode("new");
    await Deno.writeTextFile(path, "old");
    const well = Promise.withResolvers<void>();
    const writing = writeAtomically(path, (write) => write(bytes), well.promise);
    while (names(dir).length < 2) await new Promise((done) => setTimeout(done, 1));
    assert.equal(await Deno.readTextFile(path), "old");
    well.resolve();
    await writing;
    assert.equal(await Deno.readTextFile(path), "new");
    const failed = Promise.reject(new Error("it went wrong"));
    const failing = writeAtomically(path, (write) => write(new Uint8Array(9)), failed);
    await assert.rejects(failing, { message: "it went wrong" });
    assert.deepEqual(names(dir), ["out.txt"]);
    assert.equal(await Deno.readTextFile(path), "new");
  });
});

Deno.test({
  name: "writeAtomically() gives nothing to a device before what has to go well",
  ignore: Deno.build.os === "windows",
  async fn() {
    const failed = Promise.reject(new Error("it went wrong"));
    const writing = writeAtomically("/dev/null", () => Promise.reject(new Error("begun")), failed);
    await assert.rejects(writing, { message: "it went wrong" });
  },
});
