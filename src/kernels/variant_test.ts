import assert from "#assert";
import {
  askedVariant,
  fullVariant,
  parseVariant,
  TUNED_VARIANT,
  VARIANT_TRAITS,
  variantNames,
  variantTrait,
  variesLoop,
} from "./variant.ts";

Deno.test("parseVariant() turns names on and off, and says nothing where none is given", () => {
  assert.equal(parseVariant([], []), undefined);
  assert.deepEqual(parseVariant(["prefetch", "unroll"], ["double-buffer"]), {
    prefetch: false,
    unroll: false,
    doubleBuffer: true,
  });
});

Deno.test("parseVariant() refuses unknown names, and one that is on and off", () => {
  for (const name of ["speed", "toString", ""]) {
    assert.throws(
      () => parseVariant([name], []),
      /^RangeError: Cannot vary the main loop: .* is none of prefetch, /,
    );
  }
  assert.throws(() => parseVariant(["unroll"], ["unroll"]), /unroll is asked for and left out$/);
});

Deno.test("variantTrait() names what is not as tuned, in one order", () => {
  assert.equal(variantTrait(), "");
  assert.equal(variantTrait(TUNED_VARIANT), "");
  assert.equal(
    variantTrait({ doubleBuffer: true, unroll: false, peel: false }),
    "_double_buffer_no_unroll_no_peel",
  );
  assert.equal(variantTrait({ prefetch: false, raster: 8 }), "_no_prefetch_grouped8");
  assert.deepEqual(parseVariant(["unroll"], [], 8), { unroll: false, raster: 8 });
  // Rows that are asked for are not what would be planned.
  assert.deepEqual(parseVariant([], [], 0), { raster: 0 });
  assert.deepEqual([{ raster: 0 }, { raster: 8 }].map(askedVariant), ["_rows", "_grouped8"]);
  // What is said counts, also where the tuned kernel has it: others would be planned.
  const said = [{}, { halfTile: false }, { raster: 0 }] as const;
  assert.deepEqual(said.map(variesLoop), [false, true, true]);
});

Deno.test("every optimisation is on or off in the tuned kernel", () => {
  assert.deepEqual(fullVariant({}), TUNED_VARIANT);
  const [on, off] = [variantNames(true), variantNames(false)];
  assert.ok(on.includes("prefetch") && off.includes("half-tile"));
  assert.deepEqual([...on, ...off].sort(), Object.keys(VARIANT_TRAITS).sort());
});
