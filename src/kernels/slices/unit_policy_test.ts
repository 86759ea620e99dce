import assert from "#assert";
import {
  unitSliceBytes,
  unitSliceName,
  unitSlicePolicies,
  unitSliceSums,
  unitSliceThreads,
  unitSliceTile,
} from "./unit_policy.ts";

const unit = (m: number, n: number, k: number) =>
  ({ component: "f16", result: "f32", m, n, k }) as const;
const nvidia = { lanes: 32, units: [unit(16, 8, 8), unit(16, 16, 16), unit(16, 8, 16)] };

Deno.test("unitSlicePolicies() shares slices among eight subgroups, by units from the largest on", () => {
  const names = (slices: number) => unitSlicePolicies(slices, nvidia).map(unitSliceName);
  assert.deepEqual(names(4), [
    "128x64x16_mma16x16x16_4x4",
    "128x64x16_mma16x8x16_4x8",
    "128x64x8_mma16x8x8_4x8",
  ]);
  assert.equal(names(8)[0], "64x64x16_mma16x16x16_4x4");
  assert.deepEqual(names(16), [
    "64x32x16_mma16x16x16_4x2",
    "64x32x16_mma16x8x16_4x4",
    "64x32x8_mma16x8x8_4x4",
  ]);
  assert.deepEqual(names(6), []);
  const whole = { lanes: 32, units: [{ ...unit(16, 16, 16), component: "i8", result: "i32" }] };
  assert.deepEqual(unitSlicePolicies(8, whole as never), []);
});

Deno.test("subgroups of a policy take every result of every slice once", () => {
  for (const slices of [2, 4, 8, 16]) {
    for (const policy of unitSlicePolicies(slices, nvidia)) {
      const { rows, columns, each, lanes, subgroups, matrices, unit: { m, n } } = policy;
      assert.equal(unitSliceThreads(policy), lanes * slices / each * subgroups[0] * subgroups[1]);
      assert.equal(rows, subgroups[0] * matrices[0] * m);
      assert.equal(columns, subgroups[1] * matrices[1] * n);
    }
  }
});

Deno.test("the tile holds both operands of every slice, and sums pass through the same memory", () => {
  const [policy] = unitSlicePolicies(8, nvidia);
  const tile = unitSliceTile(policy!);
  // 64 rows are eight vectors, and one lies between them and the next; so do 64 columns.
  assert.deepEqual(tile.strides, { a: 9, b: 9 });
  assert.equal(tile.slice, 16 * (9 + 9));
  assert.equal(tile.vectors, 8 * tile.slice);
  assert.equal(tile.at("b", 3, "d", "v"), `tile[${3 * tile.slice + 16 * 9}u + d * 9u + v]`);
  // 16 rows of 64 sums, four a vector, of eight slices.
  const sums = unitSliceSums(policy!);
  assert.deepEqual([sums.rows, sums.width, sums.stride], [16, 16, 17]);
  assert.equal(sums.vectors, 8 * 16 * 17);
  assert.equal(unitSliceBytes(policy!), 16 * Math.max(tile.vectors, sums.vectors));
});
