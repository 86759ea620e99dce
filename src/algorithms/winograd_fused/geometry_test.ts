import assert from "#assert";
import { request as planRequest } from "../../../tests/plan_request.ts";
import { type ConvProblem, convProblem } from "../../problem/conv_problem.ts";
import type { Layout } from "../../tensor/layout.ts";
import { filterShape, sliceGeometry, unsupportedReason } from "./geometry.ts";

const forward = convProblem({
  batch: 2,
  inChannels: 6,
  outChannels: 8,
  groups: 2,
  inputSize: [9, 14],
  filterSize: [3, 3],
  paddingBegin: [4, 1],
});
const runs = [{ n: 6, r: 3, first: 0, count: 2 }];

const request = (problem: ConvProblem, layout: Layout = "nchw") =>
  planRequest(problem, { layout, algorithm: "winograd1d" });

Deno.test("sliceGeometry() of fwd reads the input and writes the output", () => {
  const { outer, tiled, ...rest } = sliceGeometry(request(forward), runs);
  assert.deepEqual(rest, {
    batch: 2,
    sourceBatchStride: 6 * 9 * 14,
    targetBatchStride: 8 * 15 * 14,
    batchInner: false,
    channelsInner: false,
    channels: 3,
    sourceChannelStride: 9 * 14,
    targets: 4,
    targetChannelStride: 15 * 14,
  });
  assert.deepEqual(outer, [{
    size: 9,
    sourceStride: 14,
    padding: 4,
    places: 15,
    targetStride: 14,
    taps: 3,
    stride: 1,
    dilation: 1,
  }]);
  assert.deepEqual(tiled, [{
    size: 14,
    sourceStride: 1,
    padding: 1,
    places: 14,
    targetStride: 1,
    n: 6,
    r: 3,
    first: 0,
    tiles: 2,
    chunks: 1,
  }]);
});

Deno.test("sliceGeometry() of bwd-data has negative padding where fwd's is wider than the filter", () => {
  const backward = sliceGeometry(request({ ...forward, op: "bwd-data" }), runs);
  assert.equal(backward.outer[0]!.padding, -2);
  assert.equal(backward.tiled[0]!.padding, 1);
  assert.deepEqual([backward.channels, backward.targets], [4, 3]);
  assert.deepEqual([backward.outer[0]!.size, backward.outer[0]!.places], [15, 9]);
});

Deno.test("sliceGeometry() says which axis is innermost", () => {
  const inner = (layout: Layout) => {
    const { batchInner, channelsInner } = sliceGeometry(request(forward, layout), runs);
    return [batchInner, channelsInner];
  };
  assert.deepEqual(inner("nhwc"), [false, true]);
  assert.deepEqual(inner("chwn"), [true, false]);
});

Deno.test("filterShape() pads places and channels, and turns the filter around for bwd-data", () => {
  const shape = filterShape(request(forward), runs, 16, 8);
  assert.deepEqual(shape, {
    groups: 2,
    places: 4,
    paddedPlaces: 16,
    channels: 3,
    paddedChannels: 8,
    strides: { group: 4 * 27, place: 27, channel: 9 },
    outer: [{ taps: 3, r: 1, chunks: 3, stride: 3 }],
    tiled: [{ taps: 3, r: 3, chunks: 1, stride: 1 }],
    rotated: false,
    outermost: "group",
  });
  const backward = filterShape(request({ ...forward, op: "bwd-data" }), runs, 16, 8);
  assert.deepEqual([backward.places, backward.channels, backward.rotated], [3, 4, true]);
  assert.deepEqual([backward.strides.place, backward.strides.channel], [9, 27]);
});

Deno.test("unsupportedReason() refuses bwd-filter, and steps along tiled axes", () => {
  const reason = (more: Partial<ConvProblem>, tiled: number) =>
    unsupportedReason(request({ ...forward, ...more }), tiled);
  assert.equal(reason({}, 1), undefined);
  assert.equal(reason({}, 2), undefined);
  assert.match(reason({ op: "bwd-filter" }, 1)!, /it computes fwd and bwd-data/);
  assert.equal(reason({ stride: [2, 1] }, 1), undefined);
  assert.match(reason({ stride: [2, 1] }, 2)!, /stride 2 is not 1/);
  assert.match(reason({ stride: [1, 3] }, 1)!, /stride 3 is not 1/);
  assert.match(reason({ stride: [2, 1], op: "bwd-data" }, 1)!, /stride 2 is not 1/);
  assert.equal(reason({ dilation: [2, 1], op: "bwd-data" }, 1), undefined);
  assert.match(reason({ dilation: [2, 1] }, 2)!, /dilation 2 is not 1/);
  const line = convProblem({
    batch: 1,
    inChannels: 1,
    outChannels: 1,
    inputSize: [9],
    filterSize: [3],
  });
  assert.equal(unsupportedReason(request(line), 1), undefined);
  assert.match(unsupportedReason(request(line), 2)!, /1 spatial axis, it tiles 2/);
});
