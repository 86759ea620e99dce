import assert from "#assert";
import {
  classPlaces,
  classSteps,
  classWindow,
  mostTaps,
  strideClass,
  tapShare,
} from "./stride_classes.ts";

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

/** Axes of strides and dilations from 1 to 4, filters from 1 to 7, with all paddings that matter. */
function* axes() {
  for (let stride = 1; stride <= 4; stride++) {
    for (let dilation = 1; dilation <= 4; dilation++) {
      for (let taps = 1; taps <= 7; taps++) {
        for (let padding = 0; padding <= 5; padding++) {
          for (const places of [1, 2, 7, 12]) {
            yield { places, taps, size: 5, stride, padding, dilation };
          }
        }
      }
    }
  }
}

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i);

Deno.test("every place and tap that meet are in one class of strides, and nothing else is", () => {
  for (const axis of axes()) {
    const { stride, places, taps } = axis;
    const { step, dilation } = classSteps(axis);
    const classes = upTo(stride).map((index) => strideClass(axis, index));
    const found: string[] = [];
    const seen: number[] = [];
    for (const { firstPlace, firstTap, taps, origin } of classes) {
      for (const i of upTo(classPlaces(axis))) {
        const place = firstPlace + i * stride;
        if (place >= places) continue;
        seen.push(place);
        for (const j of upTo(taps)) {
          const source = origin + i - j * dilation;
          if (source < 0 || source >= axis.size) continue;
          found.push(`${place} ${firstTap + j * step} ${source}`);
        }
      }
    }
    const what = JSON.stringify(axis);
    assert.deepEqual(seen.sort((a, b) => a - b), upTo(places), what);
    assert.deepEqual(found.sort(), meetings(axis), what);
    // Of most taps first, and each tap in one class.
    const counts = classes.map(({ taps }) => taps);
    assert.deepEqual(counts.toSorted((a, b) => b - a), counts, what);
    assert.equal(mostTaps(axis), counts[0]);
    assert.equal(counts.reduce((sum, count) => sum + count, 0), taps, what);
  }
});

Deno.test("the window of all classes has every place and tap that meet once", () => {
  for (const axis of axes()) {
    const window = classWindow(axis);
    const { stride, dilation } = axis;
    assert.equal(window === undefined, stride > 1 && dilation > 1);
    if (window === undefined) continue;
    const found: string[] = [];
    const seen: number[] = [];
    for (const index of upTo(stride)) {
      for (const i of upTo(window.grid)) {
        const place = window.first + index + i * stride;
        if (place < 0 || place >= axis.places) continue;
        seen.push(place);
        for (const t of upTo(window.taps)) {
          const tap = index + t * stride - window.lead;
          const source = window.origin + i - t * dilation;
          if (tap < 0 || tap >= axis.taps || source < 0 || source >= axis.size) continue;
          found.push(`${place} ${tap} ${source}`);
        }
      }
    }
    const what = JSON.stringify(axis);
    assert.deepEqual(seen.sort((a, b) => a - b), upTo(axis.places), what);
    assert.deepEqual(found.sort(), meetings(axis), what);
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
  // 4, 2, 2 and 1 taps; as many for all; and one class of four that has taps.
  assert.equal(tapShare([axis(3, 2), axis(3, 2)]), 9 / 16);
  assert.equal(tapShare([axis(4, 2), axis(16, 16), axis(7, 1)]), 1);
  assert.equal(tapShare([axis(1, 2), axis(1, 2)]), 1 / 4);
});
