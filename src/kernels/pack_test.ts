import assert from "#assert";
import { moduleBuilder, WHOLE } from "./module.ts";
import { packBytesKernel, type PackBytesShape } from "./pack.ts";

const TENSORS = { unpacked: WHOLE, packed: WHOLE };
const SHAPE = { groups: 2, places: 62, paddedPlaces: 64, depth: 2047 } as const;

function shapes(): PackBytesShape[] {
  return [1, 4, 8, 12, 16, 20, 24, 28, 32, 48].flatMap((panel) =>
    (["place", "depth"] as const).map((along) => ({
      ...SHAPE,
      along,
      panel,
      paddedWords: Math.ceil(512 / panel) * panel,
    }))
  );
}

Deno.test("panels of any whole vectors are dealt to whole threads, by whole numbers", () => {
  for (const shape of shapes()) {
    const what = JSON.stringify(shape);
    const { kernel, workgroups } = packBytesKernel(moduleBuilder("constant", TENSORS), shape);
    const words = (shape.panel === 1 ? 1 : 4) * (kernel.wgsl.includes("fn transposed") ? 4 : 1);
    const all = shape.groups * shape.paddedPlaces * shape.paddedWords;
    assert.ok(256 * workgroups * words >= all, what);
    assert.doesNotMatch(kernel.wgsl, /\d\.\d/, what);
  }
});

Deno.test("kernels of one name that take their sizes at run time are one text", () => {
  const texts = new Map<string, string>();
  for (const shape of shapes()) {
    const { kernel } = packBytesKernel(moduleBuilder("uniform", TENSORS), shape);
    assert.equal(texts.get(kernel.name) ?? kernel.wgsl, kernel.wgsl, kernel.name);
    texts.set(kernel.name, kernel.wgsl);
  }
  assert.ok(texts.size >= 4);
});
