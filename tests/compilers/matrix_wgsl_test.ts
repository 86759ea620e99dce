/** Products, convolutions and WinRS on matrix units of every shape that GPUs have are valid to Dawn's compiler. */
import assert from "#assert";
import { openValidator } from "../support/validate.ts";
import type { Kernel } from "../../src/kernels/kernel.ts";
import { unitShape } from "../../src/kernels/matrix_units.ts";
import { coverPairs } from "./kernels/cover.ts";
import { convKernels } from "../matrix_conv_kernels.ts";
import {
  classKernels,
  kernels,
  OTHER_PRODUCTS,
  PRODUCTS,
  rowKernels,
  sliceKernels,
  splitConvKernels,
} from "../matrix_kernels.ts";
import { assertWithin, usesUnits } from "../support/matrix_ends.ts";

/** All kernels of a unit but WinRS'. */
function plannedKernels(one: (typeof PRODUCTS)[number]): Kernel[] {
  const conv = {
    f16: () => [...rowKernels(one), ...classKernels(one), ...convKernels(one)],
    f32: () => splitConvKernels(one),
    i8: () => [...rowKernels(one), ...convKernels(one)],
  };
  return [...kernels(one), ...conv[one.dtype]()];
}

const planned = new Map<(typeof PRODUCTS)[number], Kernel[]>();

/** The same, planned once: it takes seconds. */
function productKernels(one: (typeof PRODUCTS)[number]): Kernel[] {
  const known = planned.get(one);
  if (known !== undefined) return known;
  const made = plannedKernels(one);
  planned.set(one, made);
  return made;
}

Deno.test("matrices that subgroups load and store lie within workgroup memory, whatever the subgroup", () => {
  for (const one of [...PRODUCTS, ...OTHER_PRODUCTS]) {
    const { lanes } = one;
    let largest = 0;
    const slices = one.dtype === "f16" ? sliceKernels(one) : [];
    for (const kernel of [...slices, ...productKernels(one)]) {
      if (usesUnits(kernel)) largest = Math.max(largest, assertWithin(kernel, lanes));
    }
    // Not far below either: skew is all that is left.
    assert.ok(largest > 0.98, `${largest}`);
  }
});

Deno.test("a matrix that ends behind its array, begins before it or lies where no text says is found", () => {
  const [one] = PRODUCTS;
  const kernel = kernels(one!).find(usesUnits)!;
  const { wgsl } = kernel;
  const load = /(subgroupMatrixLoad<.+>\(&\w+, )(.+)(, \d+u\);)/;
  const moved = (by: string) => ({ ...kernel, wgsl: wgsl.replace(load, `$1($2)${by}$3`) });
  assert.ok(assertWithin(kernel, one!.lanes) <= 1);
  assert.throws(() => assertWithin(moved(" + 9999u"), one!.lanes), /a matrix ends at \d+/);
  assert.throws(() => assertWithin(moved(" - 9999u"), one!.lanes), /begins at -\d+/);
  assert.throws(() => assertWithin(moved(" + step"), one!.lanes), /^AssertionError.*: step of /);
  const shrunk = wgsl.replaceAll(
    /(var<workgroup> \w+: array<.+, )(\d+)>/g,
    (_, head, size) => `${head}${size / 2}>`,
  );
  assert.throws(() => assertWithin({ ...kernel, wgsl: shrunk }, one!.lanes), /a matrix ends at/);
});

Deno.test("WinRS on matrix units of every shape fits workgroup memory, and is valid WGSL to dawn", async () => {
  using validator = await openValidator("dawn", { robust: false });
  for (const one of [...PRODUCTS, ...OTHER_PRODUCTS].filter(({ dtype }) => dtype === "f16")) {
    const all = sliceKernels(one);
    const own = all.filter(({ name }) => name.includes("_mma"));
    assert.equal(own.length, 4 * 7, unitShape(one.unit));
    for (const { name, workgroupBytes } of all) {
      assert.ok(workgroupBytes <= 49_152, `${name} takes ${workgroupBytes}`);
    }
    for (const kernel of coverPairs(all)) {
      const messages = await validator.validate(kernel);
      assert.deepEqual(messages.filter(({ type }) => type === "error"), [], kernel.name);
    }
  }
});

Deno.test("products and convolutions on matrix units of every shape are valid WGSL to dawn", async () => {
  using validator = await openValidator("dawn", { robust: false });
  const all = [...PRODUCTS, ...OTHER_PRODUCTS];
  for (const one of all) {
    const own = productKernels(one).filter(usesUnits);
    assert.ok(own.length > 30, `${own.length} kernels`);
    for (const { workgroupSize, wgsl } of own) {
      assert.equal(workgroupSize[0] % one.lanes, 0);
      assert.equal(wgsl.includes(`@subgroup_size(${one.lanes})`), one.unit.fixesSubgroups ?? false);
    }
  }
  const covering = coverPairs(all.flatMap(productKernels));
  assert.ok(covering.length > 1000, `${covering.length} kernels`);
  for (const kernel of covering) {
    const messages = await validator.validate(kernel);
    assert.deepEqual(messages.filter(({ type }) => type === "error"), [], kernel.name);
  }
});
