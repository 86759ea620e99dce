import assert from "#assert";
import { tileTransform } from "../../winograd/transform.ts";
import {
  type AcrossSides,
  parseSlicePolicy,
  scheduleItems,
  sliceBytes,
  slicePolicyName,
  sliceRowVectors,
  sliceSets,
  sumLines,
  sumsPerRound,
  threadResults,
  unfitPolicy,
  workgroupThreads,
} from "./policy.ts";

Deno.test("parseSlicePolicy() reads what slicePolicyName() prints", () => {
  const names = ["64x32x8_8x8", "16x16x2_4x4", "64x64x8_8x16", "64x32x3_4x4a"];
  for (const name of names) {
    assert.equal(slicePolicyName(parseSlicePolicy(name)!), name);
  }
  assert.equal(slicePolicyName(parseSlicePolicy("64x32x8")!), "64x32x8_8x8");
  assert.equal(parseSlicePolicy("64x32x3a")!.allSlices, true);
});

Deno.test("parseSlicePolicy() refuses other text and tiles that do not divide", () => {
  for (
    const text of ["", "64x32", "64x32x8_8", "64x32x8_8x8e", "-64x32x8", "16x16x4_4x4d", "64x32a"]
  ) {
    assert.equal(parseSlicePolicy(text), undefined, text);
  }
  assert.equal(parseSlicePolicy("small"), undefined);
  for (const text of ["60x32x8", "64x36x8", "64x32x0", "0x32x8", "12x12x8_6x6", "8x8x4_0x4"]) {
    assert.equal(parseSlicePolicy(text), undefined, text);
  }
});

Deno.test("sliceBytes() counts both operands of every slice, and a vector against bank conflicts where rows are not swizzled", () => {
  // Yan et al.'s (64, 32, 8) of 16 slices: 48 KiB.
  const bytes = (policy: string, across: AcrossSides) =>
    sliceBytes(parseSlicePolicy(policy)!, 16, across, "f32");
  assert.equal(bytes("64x32x8", []), 49_152);
  assert.equal(bytes("64x32x8", ["b"]), 49_152);
  assert.equal(bytes("64x32x8", ["a", "b"]), 49_152 + 16 * 16 * 8);
  assert.equal(bytes("48x32x8", ["b"]), bytes("48x32x8", []));
  assert.equal(bytes("48x32x8", ["a"]), bytes("48x32x8", []) + 16 * 16 * 8);
});

Deno.test("sliceBytes() of f16 is half the tile and sums that take no more than that, one a thread at least", () => {
  const tile = (name: string, slices: number) =>
    16 * slices * parseSlicePolicy(name)!.depth * sliceRowVectors(parseSlicePolicy(name)!, []);
  for (const [name, slices] of [["64x64x8_8x16", 8], ["64x32x8_8x16", 16], ["32x32x4_8x8", 8]]) {
    const bytes = sliceBytes(parseSlicePolicy(name as string)!, slices as number, [], "f16");
    const whole = tile(name as string, slices as number);
    assert.ok(bytes > whole / 2 && bytes <= whole, `${name}: ${bytes} of ${whole}`);
  }
  // Sixteen threads a slice pass on four vectors each of their 32, in three rows as long as the tile's.
  const policy = parseSlicePolicy("64x32x8_8x16")!;
  assert.equal(sumsPerRound(policy, "f16"), 4);
  assert.equal(sumLines(policy, "f16"), 3);
  assert.equal(sliceBytes(policy, 16, ["a", "b"], "f16"), 16 * 8 * 25 * 8 + 16 * 3 * 24 * 16);
  assert.equal(sumsPerRound(parseSlicePolicy("64x64x1_4x4")!, "f16"), 1);
});

Deno.test("threads that have all slices are as many as a slice's, and pass no sums through workgroup memory", () => {
  const [own, shared] = ["64x32x4_4x4a", "64x32x4_4x4"].map((name) => parseSlicePolicy(name)!);
  assert.equal(workgroupThreads(own!, 8), 128);
  assert.equal(workgroupThreads(shared!, 8), 1024);
  assert.equal(threadResults(own!, 8), 128);
  assert.equal(threadResults(shared!, 8), 16);
  assert.equal(sliceBytes(own!, 8, [], "f32"), 8 * 4 * 24 * 16);
  assert.equal(sliceBytes(own!, 8, [], "f16"), 8 * 4 * 24 * 8);
  assert.ok(sliceBytes(shared!, 8, [], "f16") > sliceBytes(own!, 8, [], "f16"));
  assert.equal(unfitPolicy(own!, 8, "f32"), undefined);
  const few = parseSlicePolicy("8x8x4_4x4a")!;
  assert.equal(
    unfitPolicy(few, 6, "f32"),
    "policy 8x8x4_4x4a has 4 threads for 6 slices",
  );
});

/** What WGSL such as `t / 8u + 4u` is for a thread. */
function evaluate(text: string, t: number): number {
  const match = /^t ([%/]) (\d+)u(?: \+ (\d+)u)?$/.exec(text);
  assert.notEqual(match, null, text);
  const [, operator, divisor, offset] = match!;
  const by = Number(divisor);
  return (operator === "%" ? t % by : Math.floor(t / by)) + Number(offset ?? 0);
}

Deno.test("scheduleItems() deals every element to one thread, whatever their number", () => {
  for (const along of ["place", "depth"] as const) {
    for (const [extent, depth] of [[8, 4], [16, 2], [32, 8], [64, 8]] as const) {
      for (const threads of [4, 12, 20, 36, 64, 100, 128, 576, 1024]) {
        const schedule = scheduleItems(extent, depth, threads, along);
        const times = new Map<string, number>();
        for (let t = 0; t < (schedule.active ?? threads); t++) {
          for (const { placeSlot, depthSlot } of schedule.items) {
            const place = evaluate(schedule.places[placeSlot]!, t);
            const key = `${place} ${evaluate(schedule.depths[depthSlot]!, t)}`;
            assert.ok(place < extent);
            times.set(key, (times.get(key) ?? 0) + 1);
          }
        }
        assert.equal(times.size, extent * depth, `${extent} x ${depth}, ${threads} threads`);
        assert.ok([...times.values()].every((count) => count === 1));
      }
    }
  }
});

Deno.test("scheduleItems() lays neighbouring threads along one axis", () => {
  const byPlace = scheduleItems(32, 8, 128, "place");
  assert.deepEqual(byPlace.places, ["t % 32u + 0u"]);
  assert.deepEqual(byPlace.depths, ["t / 32u + 0u", "t / 32u + 4u"]);
  const byDepth = scheduleItems(32, 8, 128, "depth");
  assert.deepEqual(byDepth.depths, ["t % 8u + 0u"]);
  assert.equal(byDepth.active, undefined);
  assert.equal(scheduleItems(32, 8, 100, "place").active, 64);
});

Deno.test("sliceSets() keeps both slices of a pair of points in one kernel", () => {
  assert.deepEqual(sliceSets(4, 1), [[0, 1, 2, 3]]);
  assert.deepEqual(sliceSets(4, 2), [[3, 0], [1, 2]]);
  const sets = sliceSets(16, 2);
  assert.deepEqual(sets.map((set) => set.length), [8, 8]);
  for (const r of [8, 9, 10, 11, 12]) {
    const { points } = tileTransform(17 - r, r, "f16");
    for (const set of sets) {
      const own = set.map((slice) => points[slice]!);
      const paired = own.filter((point) => point !== "0" && point !== "inf");
      assert(
        paired.every((point) => own.includes(point.replace(/^-?/, (sign) => sign ? "" : "-"))),
      );
    }
  }
  assert.deepEqual(sets.flat().toSorted((a, b) => a - b), Array.from({ length: 16 }, (_, i) => i));
});
