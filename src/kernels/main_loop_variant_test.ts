import assert from "#assert";
import {
  fullVariant,
  kernelTrait,
  parseVariant,
  TUNED_VARIANT,
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
});

Deno.test("kernelTrait() says of transformed data only where it is in half the bytes", () => {
  const variant = { halfTile: true, halfTransforms: false };
  assert.equal(variantTrait(variant), "_half_tile_no_half_transforms");
  assert.equal(kernelTrait(variant), "_half_tile");
  assert.equal(kernelTrait({ halfTransforms: true }), "_half_transforms");
});

Deno.test("every optimisation is on or off in the tuned kernel, or either by the problem", () => {
  assert.deepEqual(fullVariant({}), TUNED_VARIANT);
  const both = variantNames(true).filter((name) => variantNames(false).includes(name));
  assert.deepEqual(both, ["half-transforms"]);
  assert.equal(
    variantNames(true).length + variantNames(false).length,
    Object.keys(TUNED_VARIANT).length + 2 * both.length,
  );
});
