import assert from "#assert";
import fc from "fast-check";
import { shapeInLayout } from "../tensor/layout.ts";
import { batchAxis, type LyingShapes, problemOfLying, shapeHint } from "./shape_hints.ts";

const FLAGS = ["--input", "--filter"];

/** The hint of a forward convolution of files that lie so. */
function hint(
  input: readonly number[],
  filter: readonly number[],
  more: Partial<LyingShapes> = {},
): string {
  const asked = {
    op: "fwd",
    shapes: { input, filter },
    layout: "nchw",
    filterLayout: "kcrs",
    groups: 1,
    ...more,
  } as const;
  assert.throws(() => problemOfLying(asked));
  return shapeHint(asked, FLAGS);
}

Deno.test("shapeHint() tells the layouts in which files fit, and what their axes mean", () => {
  const pytorch =
    "; they fit if they lie as N,H,W,C and K,C,R,S (--layout nhwc --filter-layout kcrs)";
  assert.equal(hint([1, 32, 32, 16], [8, 16, 3, 3]), pytorch);
  const tensorflow =
    "; they fit if they lie as N,H,W,C and R,S,C,K (--layout nhwc --filter-layout rsck)";
  assert.equal(hint([1, 224, 224, 3], [7, 7, 3, 64]), tensorflow);
  assert.equal(
    hint([1, 16, 32, 32], [3, 3, 16, 32]),
    "; they fit if they lie as N,C,H,W and R,S,C,K (--layout nchw --filter-layout rsck)",
  );
  assert.equal(
    hint([1, 64, 48, 3], [3, 3, 3, 8], { layout: "nhwc", filterLayout: "krsc" }),
    "; they fit if they lie as N,H,W,C and R,S,C,K (--layout nhwc --filter-layout rsck)",
  );
  assert.equal(
    hint([1, 30, 16], [3, 16, 8]),
    "; they fit if they lie as N,W,C and K,C,S (--layout nhwc --filter-layout kcrs), " +
      "or as N,W,C and S,C,K (--layout nhwc --filter-layout rsck); if the filter is S,C,M of a " +
      "depthwise convolution, reshape it to [3, 1, 128] and take --groups 16",
  );
  assert.equal(
    hint([1, 9, 8, 7, 5], [2, 5, 3, 3, 3]),
    "; they fit if they lie as N,D,H,W,C and K,C,T,R,S (--layout nhwc --filter-layout kcrs)",
  );
  assert.equal(
    hint([1, 9, 40, 16], [24, 16, 1, 7]),
    "; they fit if they lie as N,H,W,C and K,C,R,S (--layout nhwc --filter-layout kcrs)",
  );
  // Where several fit, all are told: which it is only their owner knows.
  assert.equal(
    hint([1, 8, 8, 3], [4, 3, 3, 3]),
    "; they fit if they lie as N,H,W,C and K,R,S,C (--layout nhwc --filter-layout krsc), " +
      "or as N,H,W,C and K,C,R,S (--layout nhwc --filter-layout kcrs)",
  );
});

Deno.test("shapeHint() knows pictures without a batch, and without channels", () => {
  assert.equal(
    hint([48, 64, 3], [16, 3, 5, 5]),
    "; they fit if they lie as H,W,C and K,C,R,S (--layout nhwc --filter-layout kcrs)",
  );
  const grey = (sizes: string, count: string) =>
    `; if it is ${count} of one channel, reshape it to [${sizes}]`;
  // As many groups as pictures would fit, too.
  assert.equal(hint([10, 28, 28], [10, 1, 3, 3]), grey("10, 1, 28, 28", "10 pictures"));
  assert.equal(hint([28, 28], [8, 1, 3, 3]), grey("1, 1, 28, 28", "1 picture"));
  const nhwc = { layout: "nhwc", filterLayout: "rsck" } as const;
  assert.equal(hint([10, 28, 28], [3, 3, 1, 8], nhwc), grey("10, 28, 28, 1", "10 pictures"));
});

Deno.test("shapeHint() says what a depthwise filter of TensorFlow becomes", () => {
  const nhwc = { layout: "nhwc", filterLayout: "rsck", groups: 32 } as const;
  const reshaped = "; if the filter is R,S,C,M of a depthwise convolution, reshape it to ";
  assert.equal(hint([1, 56, 56, 32], [3, 3, 32, 2], nhwc), `${reshaped}[3, 3, 1, 64]`);
  // Its channels would be summed.
  assert.equal(
    hint([1, 56, 56, 32], [3, 3, 32, 1]),
    "; they fit if they lie as N,H,W,C and R,S,C,K (--layout nhwc --filter-layout rsck)" +
      `${reshaped}[3, 3, 1, 32] and take --groups 32`,
  );
});

Deno.test("shapeHint() tells of groups and swapped files where no layout fits", () => {
  const groups = (count: number) =>
    `; they fit with --groups ${count}, if it is a grouped convolution`;
  assert.equal(hint([1, 32, 8, 8], [4, 16, 3, 3]), groups(2));
  assert.equal(hint([1, 32, 56, 56], [32, 1, 3, 3]), groups(32));
  assert.equal(hint([1, 32, 56], [32, 1, 3]), groups(32));
  assert.equal(
    hint([4, 3, 3, 3], [1, 3, 8, 8]),
    "; are --input and --filter swapped? So these files fit",
  );
  // Channels that no reading makes taps of.
  assert.equal(hint([1, 3, 224, 224], [64, 64, 3, 3]), "");
  assert.equal(hint([1, 5, 8, 8], [4, 3, 3, 3]), "");
});

Deno.test("shapeHint() knows gradients", () => {
  const backward = { layout: "nchw", filterLayout: "kcrs", groups: 1 } as const;
  const data = {
    ...backward,
    op: "bwd-data",
    shapes: { output: [1, 30, 30, 8], filter: [8, 16, 3, 3] },
  } as const;
  assert.equal(
    shapeHint(data, ["--grad-output", "--filter"]),
    "; they fit if they lie as N,P,Q,K and K,C,R,S (--layout nhwc --filter-layout kcrs)",
  );
  const filter = {
    ...backward,
    op: "bwd-filter",
    shapes: { input: [2, 8, 8, 16], output: [3, 9, 8, 4] },
  } as const;
  assert.equal(shapeHint(filter, ["--input", "--grad-output"]), "");
  const last = { ...filter, shapes: { input: [2, 8, 7, 16], output: [2, 6, 5, 24] } };
  assert.equal(
    shapeHint(last, ["--input", "--grad-output"]),
    "; they fit if they lie as N,H,W,C and N,P,Q,K (--layout nhwc)",
  );
});

Deno.test("problemOfLying() gives a single image a batch where its layout has one", () => {
  const shared = { op: "fwd", groups: 1, filterLayout: "kcrs" } as const;
  for (
    const [layout, image, whole] of [
      ["nchw", [3, 9, 8], [1, 3, 9, 8]],
      ["nhwc", [9, 8, 3], [1, 9, 8, 3]],
      ["chwn", [3, 9, 8], [3, 9, 8, 1]],
    ] as const
  ) {
    const shapes = { input: image, filter: [4, 3, 2, 2] };
    const { problem, batched } = problemOfLying({ ...shared, layout, shapes });
    assert.deepEqual(batched.input, whole);
    const { batch, inChannels, outputSize } = problem;
    assert.deepEqual([batch, inChannels, outputSize], [1, 3, [8, 7]]);
  }
  const sound = { input: [3, 9], filter: [4, 3, 2] };
  assert.deepEqual(
    problemOfLying({ ...shared, layout: "nchw", shapes: sound }).problem.outputSize,
    [8],
  );
  // A filter's gradient: by the other's batch, or by sizes of two axes.
  const shapes = { input: [3, 9, 8], output: [4, 8, 7] };
  const gradient = { ...shared, op: "bwd-filter", layout: "nchw" } as const;
  for (
    const asked of [
      { ...gradient, shapes: { ...shapes, output: [1, 4, 8, 7] } },
      { ...gradient, shapes, filterSize: [2, 2] },
      { ...gradient, shapes, stride: [1, 1] },
    ]
  ) assert.deepEqual(problemOfLying(asked).problem.filterSize, [2, 2]);
});

Deno.test("shapeHint() tells how files lie whenever they are taken for others, and of no groups", () => {
  const size = fc.integer({ min: 1, max: 9 });
  const drawn = fc.record({
    layout: fc.constantFrom("nchw" as const, "nhwc" as const),
    filterLayout: fc.constantFrom("kcrs" as const, "krsc" as const, "rsck" as const),
    single: fc.boolean(),
    channels: fc.tuple(size, size),
    taps: fc.integer({ min: 1, max: 7 }),
    more: fc.array(fc.integer({ min: 0, max: 20 }), { minLength: 1, maxLength: 3 }),
  });
  fc.assert(
    fc.property(drawn, ({ layout, filterLayout, single, channels: [C, K], taps, more }) => {
      const sizes = more.map((places) => taps + places);
      const batch = shapeInLayout([1, C, ...sizes], layout);
      const input = single ? batch.toSpliced(batchAxis(layout, more.length), 1) : batch;
      const filter = shapeInLayout([K, C, ...more.map(() => taps)], filterLayout);
      const asked = {
        ...{ op: "fwd", groups: 1, layout: "nchw", filterLayout: "kcrs" } as const,
        shapes: { input, filter },
      };
      try {
        problemOfLying(asked);
      } catch {
        const said = shapeHint(asked, FLAGS);
        assert.match(said, new RegExp(`--layout ${layout} --filter-layout ${filterLayout}\\)`));
        // Channels of a sum that may be a depthwise convolution's are said to be.
        assert.doesNotMatch(said, /they fit with --groups/);
      }
    }),
    { numRuns: 500, seed: 7 },
  );
});
