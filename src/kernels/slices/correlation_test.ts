import assert from "#assert";
import { moduleBuilder, WHOLE } from "../module.ts";
import { winogradTransform } from "../../winograd/transform.ts";
import { identity } from "../../winograd/matrix.ts";
import {
  correlationBatches,
  correlationBatchText,
  type CorrelationShape,
  type GradientAxis,
} from "./correlation.ts";
import { correlationLoader, correlationStore } from "./correlation_loader.ts";
import { tileTransforms } from "./patch.ts";
import { parseSlicePolicy } from "./policy.ts";
import { sliceTile } from "./tile.ts";

/** Padding 1, stride and dilation 1; strides of memory do not matter here. */
function axis(places: number, taps: number): GradientAxis {
  return {
    size: places + taps - 3,
    places,
    taps,
    stride: 1,
    dilation: 1,
    padding: 1,
    sourceStride: 1,
    gradientStride: 1,
    filterStride: 1,
  };
}

const SEGMENTS = {
  tiles: 4,
  firstColumn: 0,
  columns: 2,
  rows: 3,
  heights: { long: 3, longOnes: 0, short: 3 },
  firstBucket: 0,
  bucketColumns: 2,
};

/** Ω4(3,2) on the first 4 tiles of rows of 10, in 2 x 3 segments. */
function shape(more: Partial<CorrelationShape> = {}): CorrelationShape {
  return {
    batch: 8,
    groups: 2,
    outChannels: 16,
    inChannels: 8,
    strides: {
      input: { batch: 1, channel: 1 },
      gradient: { batch: 1, channel: 1 },
      filter: { out: 1, in: 1 },
    },
    outer: [axis(9, 3)],
    width: axis(10, 6),
    tile: { n: 3, r: 2 },
    segments: SEGMENTS,
    imagesFirst: true,
    channelsInner: true,
    ...more,
  };
}

Deno.test("correlationBatches() counts pieces of the width, filter rows, groups and segments", () => {
  assert.equal(correlationBatches(shape()), 2 * 3 * 2 * 6);
  assert.equal(correlationBatches(shape({ outer: [], groups: 1 })), 2 * 6);
});

Deno.test("correlationBatchText() is the same for any number of segment rows, however high", () => {
  const text = (rows: number, long: number) => {
    const module = moduleBuilder("constant");
    const heights = { long, longOnes: rows - 1, short: 1 };
    const segments = { ...SEGMENTS, rows, heights };
    const made = correlationBatchText(module, shape({ segments }));
    return { made, uniforms: [...module.bound().uniforms!] };
  };
  assert.equal(text(2, 8).made, text(9, 1).made);
  assert.notDeepEqual(text(2, 8).uniforms, text(9, 1).uniforms);
  assert.notDeepEqual(text(3, 4).uniforms, text(3, 3).uniforms);
});

Deno.test("correlationBatchText() bakes in the tiles of segments that have equally many", () => {
  const text = (mode: "constant" | "uniform", columns: number) =>
    correlationBatchText(moduleBuilder(mode), shape({ segments: { ...SEGMENTS, columns } }));
  assert.match(text("constant", 2), /tile_count = 2u;/);
  const either =
    /tile_count = select\(sizes\.winrs_column_short, sizes\.winrs_column_long, segment_column < sizes\.winrs_column_long_ones\);/;
  assert.match(text("constant", 3), either);
  assert.match(text("uniform", 2), either);
});

function loaderOf(
  more: Partial<CorrelationShape>,
  { mode = "constant", vector = 1, side = "b" }: {
    readonly mode?: "constant" | "uniform";
    readonly vector?: 1 | 4;
    readonly side?: "a" | "b";
  } = {},
) {
  const module = moduleBuilder(mode);
  const tensor = module.tensor("input", "read", vector, WHOLE);
  const { input } = tileTransforms([winogradTransform(3, 2)], identity(1));
  const at = {
    side,
    extent: 8,
    depth: 4,
    threads: 16,
    tile: sliceTile(parseSlicePolicy("8x8x4_4x4")!, { slices: 4, across: [], scalar: "f32" }),
    scalar: "f32",
  } as const;
  return correlationLoader(module, tensor, "input", shape(more), input, at);
}

Deno.test("correlationLoader() finds tile and row once where whole steps share them", () => {
  const divisions = (text: string) => text.match(/tile_count/g)?.length;
  assert.equal(divisions(loaderOf({}).fetch), 2);
  assert.ok(divisions(loaderOf({ batch: 6 }).fetch)! > 2);
  assert.ok(divisions(loaderOf({}, { mode: "uniform" }).fetch)! > 2);
  assert.match(loaderOf({}).fetch, /b_index \/ 2u/);
});

Deno.test("correlationLoader() counts tiles where a step of single channels would divide by how many there are", () => {
  const uneven = { segments: { ...SEGMENTS, columns: 3 } };
  const [first, second] = (["a", "b"] as const).map((side) => loaderOf(uneven, { side })) as [
    ReturnType<typeof loaderOf>,
    ReturnType<typeof loaderOf>,
  ];
  assert.doesNotMatch(first.fetch, /tile_count/);
  assert.match(first.begin!, /step_tile = 0u/);
  assert.match(first.advance!, /step_image == 2u.*step_tile == tile_count/s);
  // Both operands' steps are the same.
  assert.deepEqual([second.begin, second.advance], ["", ""]);
  for (
    const [more, asked] of [
      [{}, {}],
      [uneven, { vector: 4 }],
      [uneven, { mode: "uniform" }],
      [{ ...uneven, batch: 6 }, {}],
    ] as const
  ) {
    assert.equal(loaderOf(more, asked).advance, undefined);
  }
});

Deno.test("correlationLoader() stores vectors of channels as vectors, and of single ones elements", () => {
  const stores = (vector: 1 | 4) => loaderOf({}, { vector }).store.match(/^ *tile\[.*$/gm)!;
  assert.equal(stores(4).length, 4);
  assert.equal(stores(1).length, 2 * 4);
  assert.ok(stores(1).every((line) => line.includes("[b_place0 % 4u] = ")));
  assert.ok(stores(4).every((line) => line.includes("[2u + b_place0 / 4u] = ")), stores(4)[0]);
  assert.match(loaderOf({}, { vector: 4 }).fetch, /= input_data\[/);
});

Deno.test("correlationLoader() masks patches where they are, at edges alone where threads agree on the tile", () => {
  const { store } = loaderOf({});
  const [edges, ...inner] = store.split("\n    }\n") as [string, ...string[]];
  assert.match(
    edges,
    /^ {4}if \(b_c0 > \d+u\) \{\n {6}b_x0_0 = select\(0\.0f, b_x0_0, b_c0 \+ 0u < /,
  );
  assert.doesNotMatch(inner.join(), /select/);
  for (const other of [loaderOf({ batch: 6 }), loaderOf({}, { mode: "uniform" })]) {
    assert.match(other.store, /let b_m0_0 = select\(/);
    assert.doesNotMatch(other.store, /if \(b_c0/);
  }
});

Deno.test("correlationStore() adds to what is there: never, after the first part, or always", () => {
  const text = (adding: "never" | "again" | "always", buckets: boolean, early = false) => {
    const module = moduleBuilder("constant");
    const result = module.tensor("result", "write", 4, WHOLE);
    const workspace = buckets ? module.tensor("buckets", "write", 4, WHOLE) : undefined;
    return correlationStore(module, result, workspace, shape(), 96, adding, early)
      .text(["p", "q", "s"]);
  };
  assert.doesNotMatch(text("never", false), /result_data\[[^\]]*\] \+/);
  assert.match(text("always", false), /= result_data\[[^\]]*\] \+ out0/);
  assert.match(text("again", false), /if \(again\) \{ result_data/);
  assert.doesNotMatch(text("never", false), /bucket ==/);
  assert.match(text("never", true), /if \(bucket == 0u\) \{ result_data.*else \{ buckets_data/);
  assert.equal(text("never", true, true), text("never", true));
  for (const adding of ["again", "always"] as const) {
    for (const buckets of [false, true]) {
      const lines = text(adding, buckets, true).split("\n");
      const places = (pattern: RegExp) => lines.flatMap((line, i) => pattern.test(line) ? i : []);
      const loads = places(/there[012] = result_data\[[^\]]*\];/);
      const stores = places(/result_data\[[^\]]*\] = there[012] \+ out[012];/);
      assert.deepEqual([loads.length, stores.length], [3, 3]);
      // A load behind a store would wait for it.
      assert.ok(Math.max(...loads) < Math.min(...stores));
      const guards = places(/^\s*if \(again\) \{$/);
      assert.deepEqual(guards.map((guard) => guard < loads[0]!), adding === "again" ? [true] : []);
      if (buckets) {
        assert.match(
          lines[loads[0]!]!,
          /bucket == 0u.*else \{ there0 = buckets_data\[[^\]]*\(bucket - 1u\) \* 96u\) \/ 4u\]; \}/,
        );
        assert.match(
          lines[stores[0]!]!,
          /else \{ buckets_data\[[^\]]*\(bucket - 1u\) \* 96u\) \/ 4u\] = there0 \+ out0; \}/,
        );
      }
    }
  }
});
