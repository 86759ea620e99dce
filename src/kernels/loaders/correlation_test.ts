import assert from "#assert";
import { moduleBuilder, WHOLE } from "../module.ts";
import type { Axis } from "../axes.ts";
import { shiftedInputLoader } from "./correlation.ts";

/** The text of a load where places of one axis meet taps of the filter. */
function loadOf(axis: Axis, mode: "constant" | "uniform"): string {
  const module = moduleBuilder(mode);
  const input = module.tensor("input", "read", 1, WHOLE);
  const depth = { batch: 2, places: [axis.places], batchInner: false, tileDepth: 8 };
  const shape = {
    axes: [axis],
    channels: 4,
    channelStride: axis.size,
    batchStride: 4 * axis.size,
    channelsInner: false,
    vector: 1,
    along: "depth",
  } as const;
  return shiftedInputLoader(module, input, depth, shape).load(0, 0, "value");
}

Deno.test("shiftedInputLoader() masks an axis where some tap of some place falls outside the input, and only there", () => {
  let masked = 0, free = 0;
  for (const stride of [1, 2, 3]) {
    for (const dilation of [1, 2]) {
      for (const taps of [1, 2, 3]) {
        for (const padding of [0, 1, 2]) {
          for (const size of [5, 6, 7, 8]) {
            for (const places of [1, 2, 3, 4, 5, 6, 7]) {
              const axis = { places, taps, size, stride, padding, dilation, sourceStride: 1 };
              const all = Array.from(
                { length: places * taps },
                (_, i) => Math.floor(i / taps) * stride + (i % taps) * dilation - padding,
              );
              const outside = all.some((at) => at < 0 || at >= size);
              const text = loadOf(axis, "constant");
              assert.equal(text.includes(`b_at0_0 + b_shift0_0 < ${size}u`), outside, text);
              if (outside) masked++;
              else free++;
            }
          }
        }
      }
    }
  }
  assert.ok(masked > 100 && free > 100, `${masked} and ${free}`);
});

Deno.test("shiftedInputLoader() masks every axis where sizes are not known yet", () => {
  const axis = { places: 5, taps: 1, size: 5, stride: 1, padding: 0, dilation: 1, sourceStride: 1 };
  assert.match(loadOf(axis, "uniform"), /b_at0_0 \+ b_shift0_0 < sizes\.input_size0/);
});
