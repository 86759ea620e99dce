import assert from "#assert";
import {
  unitSliceBytes,
  unitSliceName,
  unitSlicePolicies,
  unitSliceSums,
  unitSliceThreads,
  unitSliceTile,
} from "./unit_loop.ts";

const unit = (m: number, n: number, k: number) =>
  ({ component: "f16", result: "f32", m, n, k }) as const;
const nvidia = { lanes: 32, units: [unit(16, 8, 8), unit(16, 16, 16), unit(16, 8, 16)] };

Deno.test("unitSlicePolicies() gives each slice a subgroup, by units from the largest on", () => {
  const names = (slices: number) => unitSlicePolicies(slices, nvidia).map(unitSliceName);
  const tiles = [
    "64x64x16_mma16x16x16_4x4",
    "64x64x16_mma16x8x16_4x8",
    "64x64x8_mma16x8x8_4x8",
  ];
  assert.deepEqual(names(4), tiles);
  assert.deepEqual(names(8), tiles);
  // Sums of 16 slices would leave no registers: two kernels have eight each.
  assert.deepEqual(names(16), tiles);
  assert.equal(unitSlicePolicies(16, nvidia)[0]!.slices, 8);
  assert.deepEqual(
    [4, 8].map((slices) => unitSliceThreads(unitSlicePolicies(slices, nvidia)[0]!)),
    [
      128,
      256,
    ],
  );
  const whole = { lanes: 32, units: [{ ...unit(16, 16, 16), component: "i8", result: "i32" }] };
  assert.deepEqual(unitSlicePolicies(8, whole as never), []);
});

Deno.test("loops of long steps are written out less often, and ask for the end in memory of their own", () => {
  const policies = [4, 8, 16].map((alpha) => unitSlicePolicies(alpha, nvidia)[0]!);
  assert.deepEqual(policies.map(({ written }) => written), [undefined, 2, 1]);
  const [, eight, sixteen] = policies.map(unitSliceBytes);
  assert.equal(sixteen, eight! + 4);
});

Deno.test("the tile holds both operands of every slice, and sums pass through the same memory", () => {
  const [policy] = unitSlicePolicies(8, nvidia);
  const tile = unitSliceTile(policy!);
  // 64 rows are eight vectors, and one lies between them and the next; so do 64 columns.
  assert.deepEqual(tile.strides, { a: 9, b: 9 });
  assert.equal(tile.slice, 16 * (9 + 9));
  assert.equal(tile.vectors, 8 * tile.slice);
  assert.equal(tile.at("b", 3, "d", "v"), `tile[${3 * tile.slice + 16 * 9}u + d * 9u + v]`);
  // 16 rows of 64 sums, four a vector, of eight slices; two vectors between rows, so that units store four of them to different banks.
  const sums = unitSliceSums(policy!);
  assert.deepEqual([sums.width, sums.stride, sums.slice], [16, 18, 16 * 18]);
  assert.equal(sums.vectors, 8 * 16 * 18);
  assert.equal(unitSliceBytes(policy!), 16 * Math.max(tile.vectors, sums.vectors));
});
