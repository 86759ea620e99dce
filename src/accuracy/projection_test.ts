import assert from "#assert";
import type { ChannelSums } from "../reference/project_channels.ts";
import type { Projection } from "../reference/projection.ts";
import type { ResultTiles } from "../problem/plan_arithmetic.ts";
import { fillTensor } from "../tensor/fill.ts";
import { judgeProjection, measureProjection } from "./projection.ts";

const NOISE = { products: 1, result: 0, additions: 0, smallest: 0 };

/** A projection that is 0 everywhere, with a variance of 1 a place; and sums that differ as said. */
function different(
  shape: readonly number[],
  difference: (place: number) => number,
  variance: (place: number) => number = () => 1,
): { projection: Projection; sums: ChannelSums } {
  const count = shape.reduce((product, size) => product * size, 1);
  const make = (value: (place: number) => number) =>
    Float64Array.from({ length: count }, (_, place) => value(place));
  return {
    projection: {
      shape,
      members: 64,
      expected: new Float64Array(count),
      variances: make(variance),
      weightSquares: Float64Array.of(64),
      project: () => {
        throw new Error("nothing is projected here");
      },
      indicesOf: () => new Float64Array(0),
    },
    sums: { sums: make(difference), squares: new Float64Array(count) },
  };
}

const NORMAL = fillTensor("f64", [2 ** 16], "normal", 3).data;

function reasons(
  { projection, sums }: ReturnType<typeof different>,
  tiles?: ResultTiles,
): string[] {
  const { report } = measureProjection(projection, sums, { noise: NOISE, tiles });
  return judgeProjection(report, (index) => `[${index}]`);
}

Deno.test("noise of the expected size passes, one place beyond it fails by name", () => {
  const shape = [4, 1, 60, 70];
  assert.deepEqual(reasons(different(shape, (place) => NORMAL[place]!)), []);
  const at = (2 * 60 + 17) * 70 + 9;
  const wrong = different(shape, (place) => place === at ? 14 : NORMAL[place]!);
  assert.match(reasons(wrong)[0]!, /^\[2,0,17,9\] is 14 times its noise, above 13\.2$/);
});

Deno.test("a patch of four times the noise fails, one whose places are alike does not", () => {
  const shape = [4, 1, 60, 72];
  const inPatch = (place: number) => {
    const x = place % 72, y = Math.floor(place / 72) % 60, image = Math.floor(place / (60 * 72));
    return image === 1 && x >= 12 && x < 18 && y >= 6 && y < 12;
  };
  const noisy = different(shape, (place) => NORMAL[place]! * (inPatch(place) ? 4.5 : 1));
  assert.match(reasons(noisy)[0]!, /RMS of 6x6 places from \[1,0,6,12\] on is \d\.\d+ times/);
  const alike = different(shape, (place) => inPatch(place) ? 4.5 : NORMAL[place]!);
  assert.deepEqual(reasons(alike), []);
  // A whole picture of three times the noise, and of one error.
  const picture = (value: (place: number) => number) =>
    different(
      shape,
      (place) => Math.floor(place / (60 * 72)) === 2 ? value(place) : NORMAL[place]!,
    );
  assert.match(
    reasons(picture((place) => 3 * NORMAL[place]!))[0]!,
    /RMS of 60x72 places from \[2,0,0,0\]/,
  );
  assert.deepEqual(reasons(picture(() => 4)), []);
});

Deno.test("a tile's places share its noise", () => {
  const shape = [1, 1, 12, 12];
  // All the noise of a tile is in its first place.
  const first = (place: number) => place % 12 % 6 === 0 && Math.floor(place / 12) % 6 === 0;
  const noise = different(shape, (place) => NORMAL[place]!, (place) => first(place) ? 36 : 1e-6);
  assert.deepEqual(reasons(noise, { tile: [6, 6] }), []);
  assert.notDeepEqual(reasons(noise), []);
});

Deno.test("what is no number is masked, and says nothing of its patch", () => {
  const shape = [1, 1, 12, 12];
  const odd = (place: number) => place === 5 ? NaN : place === 77 ? Infinity : NORMAL[place]!;
  const { projection, sums } = different(shape, odd, (place) => place === 100 ? NaN : 1);
  const { report, masked } = measureProjection(projection, sums, { noise: NOISE });
  assert.deepEqual(masked, [5, 77, 100]);
  assert.equal(report.masked, 3);
  assert.ok(report.max_ratio < 5 && report.patch.rms < 3);
  assert.deepEqual(judgeProjection(report, String), []);
});

Deno.test("an exact place without noise passes, any difference there fails", () => {
  const none = () => 0;
  assert.deepEqual(reasons(different([1, 1, 40], none, none)), []);
  assert.match(
    reasons(different([1, 1, 40], (place) => place === 3 ? 1e-30 : 0, none))[0]!,
    /^\[0,0,3\] is Infinity times/,
  );
});
