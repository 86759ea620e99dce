import assert from "#assert";
import fc from "fast-check";
import { request } from "../../../tests/plan_request.ts";
import {
  configure,
  configureAs,
  deviceWith,
  measured,
  nominal,
  paperBlock,
  parsePair,
} from "../../../tests/support/winrs_figures.ts";
import { parseSuite } from "../../bench/suite.ts";
import { type ConvProblem, convProblem } from "../../problem/conv_problem.ts";
import { parseDescriptor } from "../../problem/descriptor.ts";
import { H200 } from "../device/h200.ts";
import { expectPlanned } from "../refusal.ts";
import { type CacheBlock, dataElements, filterElements, mostSegments } from "./baseline.ts";
import { coveringRates, type Figures, longestPart, pairOptions, rivalPairs } from "./configure.ts";
import { type Omega, omegaName, parseOmega, reduceAxes } from "./omega.ts";
import { configured } from "./plan.ts";
import { gridSegments } from "./segments.ts";

const SUITE = parseSuite(
  Deno.readTextFileSync(new URL("../../../bench/suites/winrs_bfc.txt", import.meta.url)),
  "winrs_bfc.txt",
  "bwd-filter",
);

/** One workgroup of 512 threads a multiprocessor for α = 8. */
function wideBlock(omega: Omega): CacheBlock {
  return omega.alpha === 8 ? { outChannels: 64, inChannels: 64 } : paperBlock(omega);
}

Deno.test("a share in two sets of slices is priced with another launch, and twice the sums that are stored", () => {
  const problem = parseDescriptor("mb16ic64ih128oc64kh8ph4", "bwd-filter");
  const pair = parsePair("a16n8r9", 8, 129);
  const predicted = (sets: number, storeRate: number) =>
    configure(problem, { pair, sets: () => sets, storeRate, segments: 33 }).predictedMs;
  const launch = H200.times.winrsKernel / 1e3;
  assert.ok(Math.abs(predicted(2, Infinity) - predicted(1, Infinity) - launch) < 1e-9);
  // Of each segment another read and another store.
  const { segmentation } = configure(problem, { pair, segments: 33 });
  const bytes = 2 * segmentation.count * 4 * 64 * 64 * 64;
  assert.ok(Math.abs(predicted(2, 1) - predicted(1, 1) - launch - bytes / 1e9) < 1e-9);
});

/** Elements of buckets but the first, which is the gradient itself. */
function workspaceOf(problem: ConvProblem, options: Partial<Figures>): number {
  return (configure(problem, options).segmentation.count - 1) * filterElements(problem);
}

const DEVICES: readonly [string, Partial<Figures>][] = [
  ["64x32 twice", { throughput: nominal }],
  ["64x64 once", { throughput: nominal, block: wideBlock }],
];

for (const [what, options] of DEVICES) {
  Deno.test(`configure() keeps the suite's workspace within Table 2: ${what} a multiprocessor`, () => {
    const shares = SUITE.map((problem) => workspaceOf(problem, options) / dataElements(problem));
    assert.ok(shares.length >= 25);
    assert.ok(shares.reduce((sum, share) => sum + share, 0) / shares.length <= 0.18);
    assert.ok(Math.max(...shares) <= 1.67);
  });

  Deno.test(`configure() needs no workspace for F3c1024: ${what} a multiprocessor`, () => {
    const problem = SUITE.find(({ name }) => name === "F3c1024")!;
    const { segmentation } = configure(problem, options);
    assert.equal(segmentation.count, 1);
    assert.equal(segmentation.count, 1);
  });
}

Deno.test("configure() has the fastest pair for a count that is forced, and not the one of the highest rate", () => {
  const problem = parseDescriptor("mb32ic64ih56oc64kh3ph1", "bwd-filter");
  const wanted = request(problem, { layout: "nhwc", schedule: { splits: 70 } });
  const chosen = expectPlanned(configured(wanted));
  assert.notEqual(omegaName(chosen.pair.first), "a4n3r2xa8n3r6");
  const highest = expectPlanned(configured({ ...wanted, pair: "a4n3r2xa8n3r6" }));
  assert.ok(chosen.predictedMs < highest.predictedMs);
});

Deno.test("configure() takes the pair and the count that are forced", () => {
  const problem = parseDescriptor("mb32ic64ih28oc64kh3ph1", "bwd-filter");
  const pair = parsePair("a8n3r6,a4n3r2", 3, 28);
  const forced = configure(problem, { pair, segments: 4 });
  assert.equal(forced.pair, pair);
  assert.equal(forced.baseline, 4);
  assert.deepEqual([forced.segmentation.firstColumns, forced.segmentation.count], [4, 5]);
  assert.equal(forced.blocks, 6);
  assert.equal(forced.segmentation.count, 5);
});

Deno.test("configure() swaps the axes of a 10x1 filter", () => {
  const { axes, pair } = configure(
    parseDescriptor("mb2ic8ih20iw12oc8oh11ow12kh10kw1", "bwd-filter"),
  );
  assert.equal(axes.swapped, true);
  assert.equal(axes.outputWidth, 11);
  assert.equal(10 % pair.first.n, 0);
});

Deno.test("configure() predicts less than the products alone would take, on a suite case", () => {
  const problem = SUITE.find(({ name }) => name === "F3c512")!;
  const flops = 2 * 32 * 28 * 28 * 9 * 512 * 512;
  const { predictedMs } = configure(problem, { throughput: nominal });
  const teraflops = flops / predictedMs / 1e9;
  assert.ok(teraflops > 68 && teraflops < 30 * 3.375, `${teraflops}`);
});

Deno.test("configure() covers any problem of one to three axes within Z_max", () => {
  const cases = fc.record({
    batch: fc.integer({ min: 1, max: 9 }),
    channels: fc.integer({ min: 1, max: 70 }),
    groups: fc.integer({ min: 1, max: 3 }),
    sizes: fc.array(fc.integer({ min: 14, max: 40 }), { minLength: 1, maxLength: 3 }),
    filters: fc.array(fc.integer({ min: 1, max: 14 }), { minLength: 3, maxLength: 3 }),
    begin: fc.integer({ min: 0, max: 4 }),
    end: fc.integer({ min: 0, max: 4 }),
    stride: fc.integer({ min: 1, max: 2 }),
  });
  fc.assert(
    fc.property(cases, ({ batch, channels, groups, sizes, filters, begin, end, stride }) => {
      const problem = convProblem({
        op: "bwd-filter",
        batch,
        inChannels: channels * groups,
        outChannels: channels * groups,
        groups,
        inputSize: sizes,
        filterSize: sizes.map((_, axis) => filters[axis]!),
        paddingBegin: sizes.map(() => begin),
        paddingEnd: sizes.map(() => end),
        stride: sizes.map((_, axis) => axis === 0 && sizes.length > 1 ? stride : 1),
      });
      const { axes, pair, segmentation, predictedMs } = configure(problem);
      assert.ok(pair.width >= axes.outputWidth, omegaName(pair.first));
      assert.equal(segmentation.rowStarts.at(-1), axes.outputRows);
      assert.equal(segmentation.columnStarts.at(-1), axes.outputWidth);
      assert.ok(segmentation.count <= mostSegments(problem, 0.5));
      assert.ok(Number.isFinite(predictedMs) && predictedMs > 0);
    }),
    { numRuns: 60 },
  );
});

Deno.test("rivalPairs() names pairs that can be planned, and none where there is no choice", () => {
  const problem = parseDescriptor("mb2ic8ih28oc8kh3ph1", "bwd-filter");
  const names = rivalPairs(problem, measured);
  assert.ok(names.includes("a8n3r6") && names.includes("a8n3r6,a4n3r2"), names.join(" "));
  assert.equal(new Set(names).size, names.length);
  for (const name of names) parsePair(name, 3, 28, undefined, 3);
  assert.ok(names.includes("a4n3r2xa4n3r2"), names.join(" "));
  assert.deepEqual(
    rivalPairs(parseDescriptor("mb2ic8ih28oc8kh3sh2ph1", "bwd-filter"), measured),
    [],
  );
});

Deno.test("a last round of one workgroup takes as long as a full one", () => {
  const problem = parseDescriptor("mb32ic256ih28oc256kh3ph1", "bwd-filter");
  const pair = parsePair("a4n3r2", 3, 28);
  const block = { outChannels: 64, inChannels: 64, perMultiprocessor: 1 };
  const predicted = (multiprocessors: number, unevenness = 0) =>
    configure(problem, {
      pair,
      segments: 1,
      block: () => block,
      device: deviceWith({ multiprocessors, unevenness }),
    });
  const { blocks } = predicted(1);
  assert.equal(blocks, 3 * 4 * 4);
  // A round's time is that of as many multiplications as workgroups in flight make.
  const full = predicted(blocks).predictedMs;
  const near = (ms: number, share: number) =>
    assert.ok(Math.abs(ms / full - share) < 1e-9, `${ms / full}, not ${share}`);
  near(predicted(blocks / 2).predictedMs, 1);
  near(predicted(blocks - 1).predictedMs, 2 * (blocks - 1) / blocks);
  near(predicted(blocks / 2 - 1).predictedMs, 3 * (blocks / 2 - 1) / blocks);
  near(predicted(2 * blocks).predictedMs, 2);
  // Uneven workgroups lengthen the last round.
  near(predicted(blocks, 0.1).predictedMs, 1.1);
});

Deno.test("the only round takes as long as its largest segment; tiles apart take longer where channels do not lie innermost", () => {
  const problem = parseDescriptor("mb64ic64ih56oc64kh3ph1", "bwd-filter");
  const pair = parsePair("a8n3r6", 3, 56);
  const predicted = (rows: number, columns: number, options: Partial<Figures> = {}) =>
    configureAs(problem, pair, gridSegments(56, 56, pair, rows, columns), {
      block: () => ({ outChannels: 64, inChannels: 64, perMultiprocessor: 1 }),
      device: deviceWith({ multiprocessors: 1000, bandwidth: Infinity }),
      ...options,
    }).predictedMs;
  const near = (a: number, b: number) => assert.ok(Math.abs(a / b - 1) < 1e-9, `${a}, not ${b}`);
  // 56 rows in 44 parts are one or two each, in 28 two.
  near(predicted(44, 2), predicted(28, 2));
  near(predicted(28, 2), 2 * predicted(56, 2));
  const across = (_: Omega, wide: number) => wide;
  near(predicted(28, 10, { across }), predicted(28, 10));
  near(predicted(28, 2, { across }), 5 * predicted(28, 2));
  // 64 images of 10 tiles: 2,560 products a sum of four rows, which is stored in two parts, and 1,920 of three.
  near(predicted(14, 1, { parts: 0.5 }), 2 * predicted(14, 1));
  near(predicted(56, 1, { parts: 0.5 }), predicted(56, 1));
  // Each segment leaves a bucket.
  const stored = (rows: number) => predicted(rows, 2, { storeRate: 1 }) - predicted(rows, 2);
  near(stored(56), 2 * stored(28));
});

Deno.test("a lower last row of segments fills what the others leave of a round, and is as high as the padding", () => {
  const problem = SUITE.find(({ name }) => name === "F7c256")!;
  const { rowStarts } = configure(problem, { workspaceShare: 0.3 }).segmentation;
  // 224 workgroups a segment, of which 132 run at once, and room for two buckets.
  assert.deepEqual(rowStarts, [0, 21, 28]);
  // Rows of ∇Y are 28 for each of its 8 planes, of which one is padding on either side.
  const planes = parseDescriptor("mb8ic128id8ih28oc128kd3kh3pd1ph1", "bwd-filter");
  const { segmentation, axes } = configure(planes);
  assert.equal(axes.paddingRows, 28);
  const ends = segmentation.rowStarts;
  assert.ok(ends.slice(1).every((end, row) => end - ends[row]! >= 28), ends.join());
});

Deno.test("configure() has a choice for an empty batch, however slowly the device stores", () => {
  const problem = parseDescriptor("mb0ic32ih13oc64kh3ph1", "bwd-filter");
  for (const storeRate of [Infinity, 1e-4]) {
    const { predictedMs, segmentation } = configure(problem, { storeRate });
    assert.ok(predictedMs > 0, `${predictedMs}`);
    assert.equal(segmentation.count, 1);
  }
});

Deno.test("coveringRates() counts zeros beyond the rows against nested kernels, and pairOptions() leaves out those whose tiles are not full", () => {
  const axesOf = (sizes: string) =>
    reduceAxes(parseDescriptor(`mb8ic8${sizes}oc8kh3ph1`, "bwd-filter"));
  const relative = (sizes: string, name: string) =>
    coveringRates(axesOf(sizes), () => 1)(parseOmega(name));
  const admits = (sizes: string, pair: string) => {
    const axes = axesOf(sizes);
    const { filterWidth, outputWidth, tiledRows } = axes;
    return pairOptions(axes).admits!(
      parsePair(pair, filterWidth, outputWidth, undefined, tiledRows),
    );
  };
  const near = (a: number, b: number) => assert.ok(Math.abs(a / b - 1) < 1e-9, `${a}, not ${b}`);
  const nested = "a4n3r2xa4n3r2";
  near(relative("ih56", nested), 1);
  near(relative("ih35iw36", nested), 35 / 36);
  assert.deepEqual([admits("ih13", nested), admits("ih14", nested)], [false, true]);
  // Columns that one kernel alone would fill with zeros to a ninth.
  assert.equal(admits("ih32", "a4n3r2xa8n3r6"), false);
  assert.equal(admits("ih32", `a4n3r2xa8n3r6,${nested}`), true);
  assert.equal(admits("ih13", "a8n3r6"), true);
  // Of 3 x 13 pairs of filter row and row two meet none of X.
  near(relative("ih13", "a8n3r6"), 39 / 37);
});

Deno.test("kernels of sets of slices cost so many launches each", () => {
  const problem = parseDescriptor("mb32ic64ih56oc64kh3ph1", "bwd-filter");
  const pair = parsePair("a4n3r2xa8n3r6", 3, 56, undefined, 3);
  const ms = (sets: number, setLaunches: number) =>
    configure(problem, { pair, segments: 1, sets: () => sets, setLaunches }).predictedMs;
  const launch = H200.times.winrsKernel / 1e3;
  const near = (a: number, b: number) => assert.ok(Math.abs(a - b) < 1e-9, `${a}, not ${b}`);
  near(ms(1, 8), ms(1, 1));
  near(ms(2, 8) - ms(2, 1), 2 * 7 * launch);
});

Deno.test("sums of kernels of many slices are no longer than 1536 products, of others 2048", () => {
  const longest = (name: string) => longestPart(parseOmega(name));
  assert.deepEqual(["a2n1r1", "a16n9r8", "a4n3r2xa4n3r2"].map(longest), [2048, 2048, 2048]);
  assert.deepEqual(["a4n3r2xa8n3r6", "a4n2r3xa8n4r5"].map(longest), [1536, 1536]);
  // 14 rows of 4 tiles of 32 images are 1792.
  const problem = SUITE.find(({ name }) => name === "F3c512")!;
  const { pair, segmentation } = expectPlanned(configured(request(problem, { layout: "nhwc" })));
  assert.equal(omegaName(pair.first), "a4n3r2xa8n3r6");
  assert.equal(segmentation.rows, 2);
});
