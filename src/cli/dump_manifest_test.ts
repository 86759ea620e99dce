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
      ["{", /it is no manifest of wgconv layers --dump: line 1 ends in the middle$/],
      ['{"schema":\n\nNaN}', /--dump: line 3 has NaN, which JSON lacks$/],
      ['{"schema":1}', /: kind is missing$/],
      [
        JSON.stringify({ ...manifest, layers: [layer, { ...layer, problem: "xx" }] }),
        /^Cannot read \S+: layers\.1\.problem: Cannot parse problem: unknown key "xx"/,
      ],
      [
        JSON.stringify({ ...manifest, layers: [{ ...layer, op: "gemm" }] }),
        /^Cannot read \S+: layers\.0\.problem: /,
      ],
      // No file outside the folder.
      [
        JSON.stringify({ ...manifest, layers: [{ ...layer, file: "../x.npz" }] }),
        /: layers\.0\.file is "\.\.\/x\.npz", expected an \.npz file beside the manifest$/,
      ],
      [
        JSON.stringify({ ...manifest, layers: [{ ...layer, op: "add" }] }),
        /: layers\.0\.op is "add", expected "fwd", .* or "gemm"$/,
      ],
    ];
    for (const [text, message] of cases) {
      await assert.rejects(() => read(text), { message });
    }
  } finally {
    await Deno.remove(path);
  }
});
