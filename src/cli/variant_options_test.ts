import assert from "#assert";
import { parseRaster, variantOption } from "./problem_options.ts";

Deno.test("--raster is rows, or grouped with rows of tiles", () => {
  assert.deepEqual(["rows", "grouped:8", " GROUPED:1 "].map(parseRaster), [0, 8, 1]);
  for (const text of ["", "columns", "grouped", "grouped:0", "grouped:-1", "grouped:1.5"]) {
    assert.throws(() => parseRaster(text), /expected rows, or grouped:8/);
  }
});

Deno.test("--raster joins the variant of the main loop; rows are what convolutions take, and products are asked for", () => {
  const dtypes = ["f32"];
  assert.deepEqual(variantOption({ raster: 8 }, { dtypes }), { raster: 8 });
  assert.deepEqual(variantOption({ without: ["peel"], raster: 2 }, { dtypes }), {
    peel: false,
    raster: 2,
  });
  assert.equal(variantOption({ raster: 0 }, { dtypes }), undefined);
  assert.deepEqual(variantOption({ raster: 0 }, { dtypes, product: true }), { raster: 0 });
  assert.equal(variantOption({}, { dtypes }), undefined);
  assert.equal(variantOption({}, { dtypes, product: true }), undefined);
});

Deno.test("what is gone is said in a sentence", () => {
  const of = (name: string) => () => variantOption({ with: [name] }, { dtypes: ["f16"] });
  assert.throws(
    of("joined-rows"),
    /joined-rows is none of .*; it is gone, each row has tiles of its own$/,
  );
  assert.throws(
    of("half-transforms"),
    /half-transforms is none of .*; it is gone, transformed data/,
  );
  assert.throws(of("output-sts64"), /output-sts64 is none of .*; it is gone, sums lie/);
});
