import assert from "#assert";
import { request } from "../../../tests/plan_request.ts";
import { scaledModel } from "../../../tests/support/scaled_model.ts";
import { type Operation, OPERATIONS } from "../../problem/conv_problem.ts";
import { parseDescriptor } from "../../problem/descriptor.ts";
import { NO_EPILOGUE } from "../../problem/epilogue.ts";
import { filterLayoutFor, LAYOUTS } from "../../tensor/layout.ts";
import { allowedAmplification } from "../algorithm.ts";
import { H200 } from "../device/h200.ts";
import type { DeviceModel } from "../device/model.ts";
import type { Rival } from "../plan.ts";
import { expectPlanned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { predictMs, predictPlanMs, rankRivals, requestFor, rivalName } from "./auto.ts";

const predicted = (...asked: Parameters<typeof predictMs>) => expectPlanned(predictMs(...asked)!);

const CONV4 = parseDescriptor("mb64ic256ih14oc256kh3ph1", "fwd");

// What was measured as fastest, or within 5 % of it, on an H200; tiles of 5 and 7 on an H100.
const LAYERS: readonly [string, string, string, readonly string[]][] = [
  ["Conv2N32", "mb32ic64ih56oc64kh3ph1", "fwd nchw", ["F(4x4,3x3)", "F(6x6,3x3)"]],
  ["Conv2N32", "mb32ic64ih56oc64kh3ph1", "fwd nhwc", ["F(4x4,3x3)", "F(6x6,3x3)"]],
  ["Conv3N32", "mb32ic128ih28oc128kh3ph1", "fwd nchw", ["F(4x4,3x3)"]],
  ["Conv3N64", "mb64ic128ih28oc128kh3ph1", "bwd-data nhwc", ["F(4x4,3x3)", "F(6x6,3x3)"]],
  ["Conv4N64", "mb64ic256ih14oc256kh3ph1", "fwd nchw", ["F(5x5,3x3)"]],
  ["Conv5N32", "mb32ic512ih7oc512kh3ph1", "fwd nchw", ["F(4x4,3x3)"]],
  ["Conv5N128", "mb128ic512ih7oc512kh3ph1", "bwd-data nhwc", ["F(4x4,3x3)"]],
  ["conv1_2", "mb32ic64ih224oc64kh3ph1", "fwd nhwc", ["F(6x6,3x3)"]],
  ["conv2_2", "mb32ic128ih112oc128kh3ph1", "fwd nchw", ["F(6x6,3x3)"]],
  ["conv3_1", "mb32ic128ih56oc256kh3ph1", "bwd-data nchw", ["F(4x4,3x3)", "F(6x6,3x3)"]],
  ["Conv5N32", "mb32ic512ih7oc512kh3ph1", "bwd-filter nchw", ["F(3x3,4x4)"]],
  ["conv4_1", "mb32ic256ih28oc512kh3ph1", "bwd-filter nchw", ["F(3x3,7x7)"]],
  ["F3c512", "mb32ic512ih28oc512kh3ph1", "bwd-filter nhwc", ["F(3x3,7x7)"]],
  ["F5c128", "mb32ic128ih56oc128kh5ph2", "bwd-filter nchw", ["F(5x5,5x5)"]],
];

for (const [name, descriptor, where, tiles] of LAYERS) {
  Deno.test(`rankRivals() puts first what was measured to be fastest on ${name} ${where}`, () => {
    const [op, layout] = where.split(" ");
    const problem = parseDescriptor(descriptor, OPERATIONS.find((one) => one === op)!);
    const [best] = rankRivals(
      request(problem, { layout: LAYOUTS.find((one) => one === layout)! }),
    );
    assert.equal(best!.algorithm, "winograd2d-nonfused");
    assert.ok(tiles.includes(best!.tile!), rivalName(best!));
  });
}

Deno.test("rankRivals() leaves a first layer of three channels to implicit GEMM", () => {
  const first = parseDescriptor("mb32ic3ih224oc64kh3ph1", "fwd");
  assert.equal(rankRivals(request(first))[0]!.algorithm, "implicit-gemm");
  assert.equal(rankRivals(request(first, { layout: "nhwc" }))[0]!.predictedMs! < 0.4, true);
});

Deno.test("rankRivals() is in the order of times, but for less error within 3 %, or none within 5 %", () => {
  const ranked = rankRivals(request(CONV4)).filter(({ reason }) => reason === undefined);
  assert.equal(ranked.pop()!.algorithm, "direct");
  const times = ranked.map(({ predictedMs }) => predictedMs!);
  assert.ok(ranked.length >= 6);
  assert.ok(times[0]! <= 1.03 * Math.min(...times));
  assert.deepEqual(times.slice(1), times.slice(1).toSorted((a, b) => a - b));
});

Deno.test("rankRivals() says why each of the others is none", () => {
  const strided = parseDescriptor("mb8ic64ih56oc64kh3sh2ph1", "fwd");
  const reasons = new Map(
    rankRivals(request(strided)).map((one) => [one.algorithm, one.reason ?? ""]),
  );
  assert.match(reasons.get("winograd2d-nonfused")!, /stride/);
  assert.match(reasons.get("winrs")!, /bwd-filter/);
  assert.equal(reasons.get("implicit-gemm"), "");
});

Deno.test("rankRivals() takes im2win for few channels whose images come in fours, as measured on an H200", () => {
  const layer = parseDescriptor("mb128ic3ih227oc64kh7sh2");
  for (const layout of ["nchw", "nhwc"] as const) {
    const four = rankRivals(request(layer, { layout, filterLayout: filterLayoutFor(layout) }));
    assert.equal(four[0]!.algorithm, "im2win-fused");
  }
  const ranked = rankRivals(request({ ...layer, batch: 127 }));
  assert.equal(ranked[0]!.algorithm, "implicit-gemm");
  const { reason } = ranked.find(({ algorithm }) => algorithm === "im2win-fused")!;
  assert.equal(reason, "it would take single images");
});

Deno.test("predictMs() is near what im2win and im2col took on an H200", () => {
  // Measured on an H200; cv4 is in chunks.
  const measured = [
    ["mb128ic3ih227oc96kh11sh4", "nchw", 0.807, 1.101],
    ["mb128ic64ih224oc64kh7sh2", "nhwc", 14.98, 20.61],
    ["mb128ic64ih56oc64kh3", "nhwc", 0.739, 0.978],
    ["mb128ic512ih7oc512kh3", "nchw", 0.392, 0.382],
  ] as const;
  for (const [layer, layout, win, col] of measured) {
    const filterLayout = filterLayoutFor(layout);
    const asked = request(parseDescriptor(layer), { layout, filterLayout });
    for (const [algorithm, ms] of [["im2win", win], ["im2col", col]] as const) {
      const share = predicted({ ...asked, algorithm }, algorithm) / ms;
      assert.ok(share > 0.8 && share < 1.2, `${layer} ${algorithm}: ${share}`);
    }
  }
});

// On an H200 129 µs after 147.
Deno.test("rankRivals() takes implicit GEMM, not im2win, where a load has four channels of one tap", () => {
  const layer = parseDescriptor("mb32ic4ih112oc32kh5ph2");
  const exact = { layout: "nhwc", filterLayout: "krsc", exact: true } as const;
  assert.equal(rankRivals(request(layer, exact))[0]!.algorithm, "implicit-gemm");
});

// On an H200 and an H100 1.15 to 1.56 times implicit GEMM.
Deno.test("rankRivals() takes Winograd along one axis for VGG's first layer and 5x5 of few channels, but not of four images innermost", () => {
  const taken = (layer: string, layout: "nhwc" | "chwn", op: Operation = "fwd") =>
    rankRivals(
      request({ ...parseDescriptor(layer), op }, { layout, filterLayout: filterLayoutFor(layout) }),
    )[0]!.algorithm;
  for (const layout of ["nhwc", "chwn"] as const) {
    assert.equal(taken("mb32ic3ih224oc64kh3ph1", layout), "winograd1d");
    assert.equal(taken("mb32ic3ih64oc64kh5ph2", layout), "winograd1d");
  }
  assert.equal(taken("mb4ic64ih512oc3kh3ph1", "chwn", "bwd-data"), "implicit-gemm");
});

Deno.test("rankRivals() takes no algorithm that enlarges errors where all is to be exact", () => {
  for (const op of OPERATIONS) {
    const ranked = rankRivals(request({ ...CONV4, op }, { exact: true }));
    const allowed = ranked.filter(({ reason }) => reason === undefined);
    const windows = op === "fwd" ? ["im2win-fused"] : [];
    assert.deepEqual(
      allowed.map(({ algorithm }) => algorithm),
      ["implicit-gemm", ...windows, "direct"],
    );
  }
});

Deno.test("rankRivals() keeps to the bound ratio that the user allows", () => {
  // L = 2304: the gate's limit is 2·48·A·(1 + 24/2304), 739 for F(4x4,3x3) and 4487 for F(6x6,3x3).
  const tiles = (maxBoundRatio: number) =>
    rankRivals(request(CONV4, { maxBoundRatio }))
      .filter(({ reason, algorithm }) => reason === undefined && /nonfused/.test(algorithm))
      .map(({ tile }) => tile).sort();
  assert.deepEqual(tiles(100), []);
  assert.deepEqual(tiles(738), ["F(2x2,3x3)"]);
  assert.deepEqual(tiles(740), ["F(2x2,3x3)", "F(4x4,3x3)"]);
  assert.deepEqual(tiles(4500), ["F(2x2,3x3)", "F(4x4,3x3)", "F(5x5,3x3)", "F(6x6,3x3)"]);
});

Deno.test("allowedAmplification() is large enough for α = 8 on two axes, not for α = 16", () => {
  assert.equal(allowedAmplification(request(CONV4, { exact: true })), 1);
  const [data, filter] = (["fwd", "bwd-filter"] as const)
    .map((op) => allowedAmplification(request({ ...CONV4, op })));
  assert.ok(data! > 65.8 && data! < 299);
  assert.ok(filter! > 514 && filter! < 299 ** 2);
});

Deno.test("rankRivals() asks WinRS for kernels within the error that is allowed", () => {
  const wide = parseDescriptor("mb8ic64ih56oc64kh7ph3", "bwd-filter");
  const of = (more: Partial<PlanRequest>) =>
    rankRivals(request(wide, { layout: "nhwc", ...more }))
      .find(({ algorithm }) => algorithm === "winrs")!;
  assert.equal(of({}).pair, undefined);
  const careful = of({ maxBoundRatio: 1e4 });
  assert.doesNotMatch(careful.pair!, /a16/);
  assert.ok(careful.amplification < 20);
});

Deno.test("predictMs() prices the chunks that a small workspace brings", () => {
  const named = requestFor(request(CONV4), {
    algorithm: "winograd2d-nonfused",
    tile: "F(4x4,3x3)",
    amplification: 1,
  });
  const whole = predicted(named, "winograd2d-nonfused");
  const chunked = predicted({ ...named, maxWorkspaceBytes: 20e6 }, "winograd2d-nonfused");
  assert.ok(chunked > 1.2 * whole);
  assert.ok(chunked < 10 * whole);
});

Deno.test("predictMs() follows the rates it is given", () => {
  const named = request(CONV4);
  const having = (rates: Partial<DeviceModel["rates"]>): DeviceModel => ({
    ...H200,
    rates: { ...H200.rates, ...rates },
  });
  const half = having({ gathered: H200.rates.gathered / 2 });
  const [one, two] = [H200, half].map((device) => predicted({ ...named, device }, "implicit-gemm"));
  assert.ok(two! > 1.9 * one! && two! < 2.1 * one!);
  const slow = rankRivals(request(CONV4, { device: having({ stream: 0.05 }) }));
  assert.notEqual(slow[0]!.algorithm, "winograd2d-nonfused");
});

Deno.test("predictMs() lies within a fifth of what was measured on an H200", () => {
  // Milliseconds of Conv4N64 fwd nchw on an H200.
  const measured = {
    "implicit-gemm": 0.334,
    "winograd2d-nonfused F(2x2,3x3)": 0.19,
    "winograd2d-nonfused F(4x4,3x3)": 0.151,
    "winograd2d-nonfused F(6x6,3x3)": 0.166,
    "winograd2d": 0.236,
  };
  const ranked = rankRivals(request(CONV4));
  for (const [name, ms] of Object.entries(measured)) {
    const { predictedMs } = ranked.find((rival) => rivalName(rival) === name)!;
    assert.ok(predictedMs! > 0.8 * ms && predictedMs! < 1.2 * ms, `${name}: ${predictedMs}`);
  }
});

Deno.test("predictPlanMs() predicts nothing where nothing runs", () => {
  const plan = {
    kernel: "",
    algorithm: "direct",
    buffers: [],
    passes: [],
    workspaceBytes: 0,
    multiplications: 0,
    arithmetic: {},
    notes: [],
  };
  assert.equal(predictPlanMs(request(CONV4), plan), undefined);
});

Deno.test("all rates times a constant scale every prediction by it, and keep the order of the rivals", () => {
  const layers = [
    ["mb32ic64ih56oc64kh3ph1", "fwd"],
    ["mb32ic64ih28oc64kh5ph2", "bwd-filter"],
    ["mb8ic3ih112oc64kh7sh2ph3", "fwd"],
    ["mb16ic96ih14oc80kh3ph1", "bwd-data"],
  ] as const;
  const int8 = { dtype: "i8", outDtype: "i8", epilogue: { ...NO_EPILOGUE, scale: 0.01 } } as const;
  for (const [descriptor, op] of layers) {
    for (const layout of LAYOUTS) {
      const problem = parseDescriptor(descriptor, op);
      const given = { layout, filterLayout: filterLayoutFor(layout) };
      for (const more of op === "fwd" && layout === "nhwc" ? [{}, int8] : [{}]) {
        const ranked = (device: DeviceModel) =>
          rankRivals(request(problem, { ...given, ...more, device }));
        const name = ({ algorithm, tile, pair }: Rival) => [algorithm, tile, pair].join(" ");
        for (const factor of [0.1, 7]) {
          const usual = ranked(H200), scaled = ranked(scaledModel(H200, factor));
          assert.deepEqual(scaled.map(name), usual.map(name), `${descriptor} ${op} ${layout}`);
          usual.forEach(({ predictedMs }, i) => {
            if (predictedMs === undefined) return;
            const share = scaled[i]!.predictedMs! * factor / predictedMs;
            assert.ok(Math.abs(share - 1) < 1e-9, `${name(usual[i]!)}: ${share}`);
          });
        }
      }
    }
  }
});

Deno.test("int8 costs by the words and bytes that it is, padding and passes of its own besides", () => {
  const time = (descriptor: string, more: Partial<PlanRequest> = {}) =>
    predicted(
      request(parseDescriptor(descriptor), { layout: "nhwc", dtype: "i8", ...more }),
      "implicit-gemm",
    );
  const large = "mb64ic256ih28oc256kh3ph1";
  const ratio = time(large, { dtype: "f32" }) / time(large);
  // 2.07 to 2.31 on an H200.
  assert.ok(ratio > 2 && ratio < 2.4, `${ratio}`);
  // Thirteen channels and sixteen are the same words: what is more is the passes.
  assert.ok(time("mb64ic13ih56oc64kh3ph1") > time("mb64ic16ih56oc64kh3ph1"));
  const scaled = { outDtype: "i8", epilogue: { ...NO_EPILOGUE, scale: 0.01 } } as const;
  assert.ok(time("mb64ic64ih56oc66kh1", scaled) > time("mb64ic64ih56oc68kh1", scaled));
});

Deno.test("rankRivals() takes an exact algorithm up to 5 % slower than the fastest, and no slower one", () => {
  /** With gathered products so slow that what is exact takes `over` times as long as the fastest. */
  const ranked = (over: number) => {
    const given = (gathered: number) => {
      const device = { ...H200, rates: { ...H200.rates, gathered } };
      const rivals = rankRivals(request(CONV4, { device }))
        .filter(({ algorithm, predictedMs }) =>
          algorithm !== "direct" && predictedMs !== undefined
        );
      const least = (enlarges: boolean) =>
        Math.min(
          ...rivals.filter(({ amplification }) => amplification > 1 === enlarges)
            .map(({ predictedMs }) => predictedMs!),
        );
      return { first: rivals[0]!, over: least(false) / least(true) };
    };
    let [slow, fast] = [1, 1000];
    for (let halved = 0; halved < 40; halved++) {
      const middle = (slow + fast) / 2;
      if (given(middle).over > over) slow = middle;
      else fast = middle;
    }
    const found = given(fast);
    assert.ok(Math.abs(found.over - over) < 1e-3, `${found.over}`);
    return found.first.amplification;
  };
  for (const over of [0.99, 1.02, 1.045]) assert.equal(ranked(over), 1, `${over}`);
  for (const over of [1.055, 1.08, 1.15, 1.3]) assert.ok(ranked(over) > 1, `${over}`);
});

Deno.test("predictMs() stores whole lines of nhwc at one rate, single elements of nchw at another", () => {
  // Few channels, so that stores take much of the time.
  const thin = parseDescriptor("mb32ic16ih112oc64kh3ph1");
  const ms = (layout: "nhwc" | "nchw", device = H200) =>
    predicted(
      request(thin, { layout, device, tile: "F(6,3)", schedule: { splits: 1 } }),
      "winograd1d",
    );
  const { lines, scattered } = H200.rates.slicedStore;
  const storing = (slicedStore: DeviceModel["rates"]["slicedStore"]): DeviceModel => ({
    ...H200,
    rates: { ...H200.rates, slicedStore },
  });
  const slowLines = storing({ lines: lines / 4, scattered });
  const slowElements = storing({ lines, scattered: scattered / 4 });
  assert.ok(ms("nhwc", slowLines) > 1.2 * ms("nhwc"));
  assert.equal(ms("nhwc", slowElements), ms("nhwc"));
  assert.ok(ms("nchw", slowElements) > 1.2 * ms("nchw"));
  assert.equal(ms("nchw", slowLines), ms("nchw"));
  // Single elements take several times as long as lines.
  assert.ok(ms("nchw") > 1.2 * ms("nhwc"), `${ms("nchw")} and ${ms("nhwc")}`);
});
