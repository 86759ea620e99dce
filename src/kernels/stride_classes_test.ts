import assert from "#assert";
import { classPlaces, classSteps, mostTaps, strideClass, tapShare } from "./stride_classes.ts";

/** `place tap source` of all that meet along an axis, by the definition. */
function meetings(axis: {
  places: number;
  taps: number;
  size: number;
  stride: number;
  padding: number;
  dilation: number;
}): string[] {
  const found: string[] = [];
  for (let source = 0; source < axis.size; source++) {
    for (let tap = 0; tap < axis.taps; tap++) {
      const place = source * axis.stride + tap * axis.dilation - axis.padding;
      if (place >= 0 && place < axis.places) found.push(`${place} ${tap} ${source}`);
    }
  }
  return found.sort();
}

Deno.test("every place and tap that meet are in one class of strides, and nothing else is", () => {
  for (let stride = 1; stride <= 4; stride++) {
    for (let dilation = 1; dilation <= 4; dilation++) {
      for (let taps = 1; taps <= 7; taps++) {
        for (let padding = 0; padding <= 5; padding++) {
          for (const places of [1, 2, 7, 12]) {
            const axis = { places, taps, size: 5, stride, padding, dilation };
            const { step, dilation: moved } = classSteps(axis);
            const found: string[] = [];
            const seen: number[] = [];
            let all = 0;
            let last = Infinity;
            for (let index = 0; index < stride; index++) {
              const one = strideClass(axis, index);
              // Of most taps first; the grid of a class reaches all of its places.
              assert.ok(one.taps <= last && one.taps <= mostTaps(axis));
              last = one.taps;
              all += one.taps;
              for (let i = 0; i < classPlaces(axis); i++) {
                const place = one.firstPlace + i * stride;
                if (place >= places) continue;
                seen.push(place);
                for (let j = 0; j < one.taps; j++) {
                  const source = one.origin + i - j * moved;
                  if (source < 0 || source >= axis.size) continue;
                  found.push(`${place} ${one.firstTap + j * step} ${source}`);
                }
              }
            }
            const what = JSON.stringify(axis);
            assert.deepEqual(
              seen.sort((a, b) => a - b),
              Array.from({ length: places }, (_, h) => h),
            );
            assert.deepEqual(found.sort(), meetings(axis), what);
            assert.equal(all, taps, what);
          }
        }
      }
    }
  }
});

Deno.test("the share of the taps is the mean of the classes over the most", () => {
  const axis = (taps: number, stride: number) => ({
    places: 9,
    taps,
    stride,
    padding: 0,
    dilation: 1,
  });
  // 4, 2, 2 and 1 taps; as many for all; and one class of four that has any.
  assert.equal(tapShare([axis(3, 2), axis(3, 2)]), 9 / 16);
  assert.equal(tapShare([axis(4, 2), axis(16, 16), axis(7, 1)]), 1);
  assert.equal(tapShare([axis(1, 2), axis(1, 2)]), 1 / 4);
});
