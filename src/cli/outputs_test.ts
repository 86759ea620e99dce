import assert from "#assert";
import { writeNpy } from "../npy/mod.ts";
import { tensor } from "../tensor/tensor.ts";
import { type Output, proveOutputs } from "./outputs.ts";
import { formatOf } from "./report.ts";
import { inFolder } from "../../tests/cli.ts";

function names(folder: string): string[] {
  return [...Deno.readDirSync(folder)].map(({ name }) => name).sort();
}

Deno.test("proveOutputs() refuses an input as an output, by whatever name, unless forced", async () => {
  await inFolder(async (folder) => {
    const input = `${folder}/x.jsonl`;
    await Deno.writeTextFile(input, "data");
    await Deno.mkdir(`${folder}/sub`);
    await Deno.symlink(input, `${folder}/soft`);
    await Deno.link(input, `${folder}/hard`);
    await Deno.symlink(folder, `${folder}/sub/up`);
    for (
      const path of ["x.jsonl", "./x.jsonl", "sub/../x.jsonl", "soft", "hard", "sub/up/x.jsonl"]
    ) {
      const output = { option: "--output", path: `${folder}/${path}`, kind: "file" } as const;
      await assert.rejects(proveOutputs([output], { inputs: [undefined, "-", input] }), {
        name: "TypeError",
        message: `Cannot write ${output.path}: it is an input too, --force overwrites it`,
      });
      await proveOutputs([output], { inputs: [input], force: true });
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
      proveOutputs(whole, {
        inputs: [`${archive}:member`],
      }),
      /it is an input too/,
    );
    assert.equal(await Deno.readTextFile(input), "data");
    assert.deepEqual(names(folder), ["a.npz", "hard", "soft", "sub", "x.jsonl"]);
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

Deno.test("proveOutputs() refuses names that say another kind of file", async () => {
  const folder = "no/such/folder";
  const prove = (kind: "file" | "picture" | "records" | "merged", name: string, more = {}) =>
    proveOutputs([{ option: "--output", path: `${folder}/${name}`, kind, ...more }]);
  for (const name of ["a.jpg", "a.npz:p", "a", "a.png.txt"]) {
    await assert.rejects(prove("picture", name), {
      name: "TypeError",
      message: `Cannot write ${folder}/${name}: --output is a PNG picture, its name ends in .png`,
    });
  }
  for (const kind of ["file", "records", "merged"] as const) {
    for (const name of ["a.png", "a.PNG", "a.npy", "a.npz:p", "a.html", "a.jpeg"]) {
      await assert.rejects(
        prove(kind, name),
        /: --output does not write a \.\w+ file, name it .*a\.(txt|jsonl)$/,
      );
    }
  }
  await assert.rejects(prove("picture", "a.PNG"), /there is no directory/);
  await assert.rejects(prove("file", "a.xml"), /there is no directory/);
  await assert.rejects(prove("file", "a.html", { endings: [".html"] }), /there is no directory/);
});

Deno.test("formatOf() goes by the ending of --output", () => {
  const names = ["r.html", "r.HTM", "r.csv", "r.md", "r.jsonl", "r.txt", "-"];
  const formats = ["html", "html", "csv", "markdown", "json", "table", "table"];
  assert.deepEqual(names.map(formatOf), formats);
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
    await Deno.writeFile(`${folder}/w.jsonl`, new Uint8Array([0x93, 0x4e, 0, 1]));
    await refused(`${folder}/w.jsonl`, "merged", /^TypeError: .*w\.jsonl: it is no text$/);
    await Deno.remove(`${folder}/w.jsonl`);
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

Deno.test("proveOutputs() lets nothing that holds something be replaced, unless forced", async () => {
  await inFolder(async (folder) => {
    const at = (name: string) => `${folder}/${name}`;
    await Deno.mkdir(at("failed"));
    for (const name of ["full.npy", "full.png", "failed/one.npz"]) {
      await Deno.writeTextFile(at(name), "data");
    }
    await Deno.writeTextFile(at("empty.npy"), "");
    await Deno.symlink("full.npy", at("link.npy"));
    const refusals: [Output["kind"], string, string][] = [
      ["npy", "full.npy", "it is not empty, --force overwrites it"],
      ["npy", "link.npy", "it is not empty, --force overwrites it"],
      ["file", "full.npy", "it is not empty, --force overwrites it"],
      ["archive", "full.npy", "it is not empty, --force overwrites it"],
      ["picture", "full.png", "it is not empty, --force overwrites it"],
      ["member", "full.npy", "it is not empty, --resume keeps it, --force overwrites it"],
    ];
    for (const [kind, name, why] of refusals) {
      const outputs = [{ option: "--output", path: at(name), kind, endings: [".npy"] }];
      await assert.rejects(proveOutputs(outputs), {
        name: "TypeError",
        message: `Cannot write ${at(name)}: ${why}`,
      });
      await proveOutputs(outputs, { force: true });
      if (kind === "member") await proveOutputs(outputs, { resume: true });
      if (kind === "picture") continue;
      await proveOutputs([{ ...outputs[0]!, path: at("empty.npy") }]);
      await proveOutputs([{ ...outputs[0]!, path: "/dev/null" }]);
    }
    const saved = { option: "--save-failures", path: at("failed"), kind: "folder" } as const;
    await proveOutputs([saved]);
    const failures = [{ ...saved, endings: [".npz"] }];
    await assert.rejects(proveOutputs(failures), /failed: it has one\.npz, --force overwrites/);
    await proveOutputs(failures, { force: true });
  });
});

Deno.test("proveOutputs() names the option whose file has no name", async () => {
  for (const kind of ["npy", "records", "folder", "merged"] as const) {
    await assert.rejects(proveOutputs([{ option: "--output", path: "", kind }]), {
      name: "TypeError",
      message: 'Cannot write a file: --output is ""',
    });
  }
});

Deno.test("proveOutputs() tells files to come apart by what links lead to", async () => {
  await inFolder(async (folder) => {
    await Deno.symlink("y.npy", `${folder}/link.npy`);
    const outputs = ["link.npy", "y.npy"].map((name) => ({
      option: `--${name}`,
      path: `${folder}/${name}`,
      kind: "npy",
    } as const));
    await assert.rejects(proveOutputs(outputs), /--link.npy and --y.npy name the same file$/);
  });
});
