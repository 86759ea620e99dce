import assert from "#assert";
import {
  fullVariant,
  parseVariant,
  TUNED_VARIANT,
  VARIANT_TRAITS,
  variantNames,
  variantTrait,
} from "./main_loop_variant.ts";

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
      /^RangeError: Cannot vary the main loop: .* is none of vector-load, /,
    );
  }
  assert.throws(() => parseVariant(["unroll"], ["unroll"]), /unroll is asked for and left out$/);
});

Deno.test("variantTrait() names what is not as tuned, in one order", () => {
  assert.equal(variantTrait(), "");
  assert.equal(variantTrait(TUNED_VARIANT), "");
  assert.equal(
    variantTrait({ doubleBuffer: true, arrays2d: false, vectorLoads: false }),
    "_no_vector_load_double_buffer_no_arrays_2d",
  );
  assert.equal(variantTrait({ prefetch: false, raster: 8 }), "_no_prefetch_grouped8");
  assert.deepEqual(parseVariant(["unroll"], [], 8), { unroll: false, raster: 8 });
  assert.equal(parseVariant([], [], 0), undefined);
});

Deno.test("every optimisation is on or off in the tuned kernel", () => {
  assert.deepEqual(fullVariant({}), TUNED_VARIANT);
  const [on, off] = [variantNames(true), variantNames(false)];
  assert.ok(on.includes("prefetch") && off.includes("half-transforms"));
  assert.deepEqual([...on, ...off].sort(), Object.keys(VARIANT_TRAITS).sort());
});
