import assert from "#assert";
import { convProblem } from "../problem/conv_problem.ts";
import { filterLayoutFor, layoutAxes, LAYOUTS, permute } from "../tensor/layout.ts";
import { tensor } from "../tensor/tensor.ts";
import { channelLengths } from "./channel_lengths.ts";

const SIZES = { batch: 2, inChannels: 4, outChannels: 4, groups: 2, inputSize: [3, 2] };

/** Values of a tensor in one layout, from what each index holds. */
function values(
  shape: readonly number[],
  layout: Parameters<typeof layoutAxes>[0],
  at: (outer: number, channel: number) => number,
): Float32Array<ArrayBuffer> {
  const [outer, channels, ...spatial] = shape as [number, number, ...number[]];
  const places = spatial.reduce((product, size) => product * size, 1);
  const data = new Float32Array(outer * channels * places);
  data.forEach((_, i) =>
    data[i] = at(Math.floor(i / places / channels), Math.floor(i / places) % channels)
  );
  return permute(tensor("f32", shape, data), layoutAxes(layout, spatial.length)).data;
}

for (const layout of LAYOUTS) {
  Deno.test(`channelLengths() counts the products that are not 0, in ${layout}`, () => {
    const filterLayout = filterLayoutFor(layout);
    const layouts = { layout, filterLayout };
    const input = values([2, 4, 3, 2], layout, (n, c) => c === 0 ? 0 : c === 1 ? n : 1);
    const output = values([2, 4, 3, 2], layout, (n, k) => k === 3 ? n : 1);
    const filter = values([4, 2, 1, 1], filterLayout, (k, c) => k === 2 && c === 0 ? 0 : 1);
    const lengths = (
      op: "fwd" | "bwd-data" | "bwd-filter",
    ) => [
      ...channelLengths(convProblem({ ...SIZES, filterSize: [1, 1], op }), {
        input,
        filter,
        output,
      }, layouts),
    ];
    // Input channels 0 to 3 hold something in 0, 1/2, 1 and 1 of their places.
    assert.deepEqual(lengths("fwd"), [0.5, 0.5, 1, 2]);
    assert.deepEqual(lengths("bwd-data"), [2, 2, 0.5, 1.5]);
    assert.deepEqual(lengths("bwd-filter"), [3, 3, 12, 6]);
  });
}

Deno.test("channelLengths() of dense tensors are the accumulation length, of empty ones 0", () => {
  const layouts = { layout: "nchw", filterLayout: "kcrs" } as const;
  const problem = convProblem({ ...SIZES, groups: 1, filterSize: [3, 2] });
  const input = new Float32Array(48).fill(1);
  const filter = new Float32Array(96).fill(1);
  assert.deepEqual([...channelLengths(problem, { input, filter }, layouts)], [24, 24, 24, 24]);
  const empty = convProblem({ ...SIZES, inChannels: 0, groups: 1, filterSize: [1, 1] });
  const none = new Float32Array();
  assert.deepEqual([...channelLengths(empty, { input: none, filter: none }, layouts)].length, 4);
});
