import assert from "#assert";
import { writeNpy } from "../npy/mod.ts";
import { tensor } from "../tensor/tensor.ts";
import { proveOutputs } from "./outputs.ts";

async function inFolder(body: (folder: string) => Promise<void>) {
  const folder = await Deno.makeTempDir();
  try {
    await body(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

function names(folder: string): string[] {
  return [...Deno.readDirSync(folder)].map(({ name }) => name).sort();
}

Deno.test("proveOutputs() refuses an input as an output, by whatever name, unless forced", async () => {
  await inFolder(async (folder) => {
    const input = `${folder}/x.npy`;
    await Deno.writeTextFile(input, "data");
    await Deno.mkdir(`${folder}/sub`);
    await Deno.symlink(input, `${folder}/soft`);
    await Deno.link(input, `${folder}/hard`);
    await Deno.symlink(folder, `${folder}/sub/up`);
    for (const path of ["x.npy", "./x.npy", "sub/../x.npy", "soft", "hard", "sub/up/x.npy"]) {
      const output = { option: "--output", path: `${folder}/${path}`, kind: "file" } as const;
      await assert.rejects(proveOutputs([output], { inputs: [undefined, "-", input] }), {
        name: "TypeError",
        message: `Cannot write ${output.path}: it is an input too, --force overwrites it`,
      });
      await proveOutputs([output], { inputs: [input], force: true });
      await proveOutputs([output]);
    }
    const archive = `${folder}/a.npz`;
    await writeNpy(`${archive}:member`, tensor("u8", [1], Uint8Array.of(1)));
    const members = (member: string) => [
      { option: "--output", path: `${archive}:${member}`, kind: "npy" } as const,
    ];
    const inputs = [`${archive}:member`];
    await proveOutputs(members("other"), { inputs });
    await proveOutputs(members("member"), { inputs, force: true });
    await assert.rejects(proveOutputs(members("member"), { inputs }), /--force replaces it$/);
    const whole = [{ option: "--output", path: archive, kind: "archive" }] as const;
    await assert.rejects(proveOutputs(whole), /: it is not empty, --force overwrites it$/);
    await proveOutputs(whole, { force: true });
    await assert.rejects(
      proveOutputs([{ option: "--jsonl", path: archive, kind: "records" }], {
        inputs: [`${archive}:member`],
      }),
      /it is an input too/,
    );
    assert.equal(await Deno.readTextFile(input), "data");
    assert.deepEqual(names(folder), ["a.npz", "hard", "soft", "sub", "x.npy"]);
  });
});

Deno.test("proveOutputs() refuses two outputs in one file, but for devices", async () => {
  await inFolder(async (folder) => {
    const outputs = (one: string, other: string) => [
      { option: "--junit", path: one, kind: "file" } as const,
      { option: "--jsonl", path: other, kind: "records" } as const,
    ];
    await assert.rejects(proveOutputs(outputs(`${folder}/x`, `${folder}/./x`)), {
      message: `Cannot write ${folder}/./x: --junit and --jsonl name the same file`,
    });
    await proveOutputs(outputs("/dev/null", "/dev/null"));
    await proveOutputs(outputs("-", "-"));
    assert.deepEqual(names(folder), []);
  });
});

Deno.test("proveOutputs() finds what cannot be written, and leaves nothing behind", async () => {
  await inFolder(async (folder) => {
    const file = `${folder}/file`;
    await Deno.writeTextFile(file, "");
    const refused = (
      path: string,
      kind: "npy" | "archive" | "file" | "merged" | "folder",
      message: RegExp,
    ) => assert.rejects(proveOutputs([{ option: "--output", path, kind }]), message);
    await refused(
      `${folder}/y.npz`,
      "npy",
      /^TypeError: .* name the one to write as in .*y\.npz:y$/,
    );
    await refused(`${folder}/none/y.npz:y`, "npy", /^NotFound: .*there is no directory/);
    await refused(folder, "npy", /it is a directory/);
    await refused(folder, "merged", /it is a directory/);
    await refused(
      "/dev/null",
      "merged",
      /^TypeError: Cannot merge into \/dev\/null: it is no file$/,
    );
    await Deno.writeFile(`${folder}/w.npy`, new Uint8Array([0x93, 0x4e, 0, 1]));
    await refused(`${folder}/w.npy`, "merged", /^TypeError: .*w\.npy: it is no text$/);
    await Deno.remove(`${folder}/w.npy`);
    await refused("-", "merged", /^TypeError: Cannot merge into -: it is no file$/);
    await refused(`${folder}/none/x`, "file", /^NotFound: .*there is no directory/);
    await refused(`${file}/x`, "file", /there is no directory/);
    await refused(`${file}/a/b`, "merged", /is no directory$/);
    await refused(file, "folder", /file is no directory$/);
    await refused("/dev/full", "folder", /\/dev\/full is no directory$/);
    await proveOutputs([
      { option: "--a", path: `${folder}/a/b/c.jsonl`, kind: "merged" },
      { option: "--b", path: `${folder}/b/c`, kind: "folder" },
      { option: "--c", path: `${folder}/c.npy`, kind: "npy" },
      { option: "--d", path: `${folder}/none/d`, kind: "records" },
    ]);
    assert.deepEqual(names(folder), ["file"]);
  });
});
