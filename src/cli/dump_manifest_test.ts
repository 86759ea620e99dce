import assert from "#assert";
import { readManifest } from "./dump_manifest.ts";

Deno.test("what is no manifest is refused with the place", async () => {
  const layer = { name: "a", file: "001_a.npz", op: "fwd", problem: "mb1ic1ih3oc1kh3" };
  const manifest = {
    schema: 1,
    kind: "dump",
    model: "m",
    runtime: "r",
    feeds: {},
    layers: [layer],
  };
  const path = await Deno.makeTempFile({ suffix: ".json" });
  try {
    const read = async (text: string) => {
      await Deno.writeTextFile(path, text);
      return readManifest(path);
    };
    const { manifest: own, folder } = await read(JSON.stringify(manifest));
    assert.deepEqual([own, path.startsWith(`${folder}/`)], [manifest, true]);
    const cases: [string, RegExp][] = [
      ["{", /it is no manifest of wgconv layers --dump: /],
      ["{}", /: schema: /],
      // No file outside the folder.
      [
        JSON.stringify({ ...manifest, layers: [{ ...layer, file: "../x.npz" }] }),
        /: layers\.0\.file: /,
      ],
      [JSON.stringify({ ...manifest, layers: [{ ...layer, op: "add" }] }), /: layers\.0\.op: /],
    ];
    for (const [text, message] of cases) {
      await assert.rejects(() => read(text), { name: "SyntaxError", message });
    }
  } finally {
    await Deno.remove(path);
  }
});
