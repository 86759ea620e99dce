import assert from "#assert";
import { H200_LIMITS } from "../../bench/h200_limits.ts";
import { rankRivals, rivalName } from "../../src/algorithms/cost/auto.ts";
import { H200 } from "../../src/algorithms/device/h200.ts";
import { unknownModel } from "../../src/algorithms/device/known.ts";
import type { DeviceModel } from "../../src/algorithms/device/model.ts";
import {
  calibrate,
  countMultiprocessors,
  measureSize,
  type Measuring,
} from "../../src/bench/calibrate/calibrate.ts";
import { figure, figurePaths, withFigure } from "../../bench/figures.ts";
import { calibrationProbes, type Probe } from "../../src/bench/calibrate/probes.ts";
import { OPERATIONS } from "../../src/problem/conv_problem.ts";
import { parseDescriptor } from "../../src/problem/descriptor.ts";
import type { PlanTime } from "../../src/run/time_plans.ts";
import { timeRecord } from "../../src/run/timing.ts";
import { RandomWords } from "../../src/tensor/random.ts";
import { request } from "../plan_request.ts";

/** A device that takes as long as a model predicts, and on each sample a share of `noise` more. */
function fakeDevice(model: DeviceModel, noise = 0, seed = 1): Measuring {
  const random = new RandomWords(seed);
  const probes = new Map<string, Probe>();
  const start = { ...H200, multiprocessors: model.multiprocessors };
  for (const probe of calibrationProbes({ limits: H200_LIMITS, model: start })) {
    probes.set(probe.name, probe);
  }
  return {
    limits: H200_LIMITS,
    time: (plans) =>
      Promise.resolve(plans.map(({ name }): PlanTime => {
        const grid = /^busy (\d+)$/.exec(name)?.[1];
        const ms = grid === undefined
          ? probes.get(name)!.predict(model)!
          : 0.2 * Math.ceil(Number(grid) / model.multiprocessors);
        const words = new Uint32Array(9);
        random.fill(words);
        const samples = [...words].map((word) => ms * 1e6 * (1 + noise * word / 2 ** 32));
        return timeRecord(samples, 1, "timestamp");
      })),
  };
}

/** An H200's figures times factors, by the beginnings of their paths. */
function modelWith(
  multiprocessors: number,
  factors: Readonly<Record<string, number>>,
): DeviceModel {
  return figurePaths(H200).reduce(
    (model, path) => {
      const factor = Object.entries(factors)
        .filter(([name]) => `${path.join(".")}.`.startsWith(`${name}.`))
        .reduce((all, [, one]) => all * one, 1);
      return withFigure(model, path, factor * figure(H200, path));
    },
    { ...H200, multiprocessors } as DeviceModel,
  );
}

/** A small GPU that is strong in some things. */
const SMALL = modelWith(20, {
  rates: 0.05,
  times: 3,
  "rates.stream": 2,
  "rates.filterStream": 2,
  "rates.slicedStore": 2,
  "rates.winrsBuckets": 2,
  "rates.winrs": 1.4,
  "rates.winrsOverall": 1.4,
  "rates.sliced": 0.6,
  "rates.direct": 3,
  "rates.depthwise": 0.7,
  "costs.element": 0.5,
  "costs.store": 0.5,
  "costs.storeAgain": 0.5,
  "costs.unitStore": 0.5,
  "costs.dispatch": 0.15,
});

/** What `auto` would take of these problems, in all operations and two layouts. */
function choices(device: DeviceModel): string[] {
  return [
    "mb8ic64ih56oc64kh3ph1",
    "mb8ic128ih28oc128kh3ph1",
    "mb8ic512ih7oc512kh3ph1",
    "mb8ic3ih224oc64kh7sh2ph3",
    "mb8ic256ih56oc64kh1",
    "mb8ic64ih56oc128kh3sh2ph1",
    "mb8ic32ih28oc32kh5ph2",
  ].flatMap((text) =>
    OPERATIONS.flatMap((op) =>
      (["nchw", "nhwc"] as const).map((layout) => {
        const asked = request(parseDescriptor(text, op), { layout, limits: H200_LIMITS, device });
        return rivalName(rankRivals(asked)[0]!);
      })
    )
  );
}

/** How many of these agree. */
function agreement(a: readonly string[], b: readonly string[]): number {
  return a.filter((one, index) => one === b[index]).length / a.length;
}

/** The figures that differ by more than a share. */
function different(a: DeviceModel, b: DeviceModel, share: number): string[] {
  return figurePaths(a)
    .filter((path) => Math.abs(Math.log(figure(a, path) / figure(b, path))) > share)
    .map((path) => path.join("."));
}

Deno.test("calibrate() finds a model again by the times that it predicts", async () => {
  const { model, measured, notes } = await calibrate("small H200", fakeDevice(SMALL));
  assert.equal(model.multiprocessors, 20);
  assert.deepEqual(different(model, SMALL, 0.08), []);
  assert.deepEqual(notes, []);
  assert.ok(measured.includes("winrs"), measured.join());
  assert.ok(agreement(choices(model), choices(SMALL)) >= 0.95);
  assert.ok(agreement(choices(H200), choices(SMALL)) < 0.9, "another device chooses otherwise");
});

Deno.test("calibrate() finds a device that is a thousand times as slow", async () => {
  const slow = modelWith(8, {
    rates: 1e-3,
    times: 20,
    "rates.stream": 0.5,
    "rates.filterStream": 0.5,
    "rates.slicedStore": 0.5,
    "rates.winrsBuckets": 0.5,
    "costs.element": 2,
    "costs.store": 2,
    "costs.storeAgain": 2,
    "costs.unitStore": 2,
    "costs.dispatch": 0.02,
  });
  const { model } = await calibrate("slow H200", fakeDevice(slow));
  assert.deepEqual(different(model, slow, 0.08), []);
});

Deno.test("calibrate() leaves an H200's figures as they are, whatever the noise of its samples", async () => {
  const { model } = await calibrate("h200", fakeDevice(H200, 0.03));
  assert.deepEqual(different(model, H200, 0), []);
  assert.equal(model.multiprocessors, 132);
});

Deno.test("calibrate() finds alike when it is done twice", async () => {
  const [first, second] = await Promise.all(
    [1, 2].map((seed) => calibrate("small H200", fakeDevice(SMALL, 0.03, seed))),
  );
  assert.deepEqual(different(first!.model, second!.model, 0.03), []);
  assert.ok(agreement(choices(first!.model), choices(second!.model)) >= 0.9);
});

Deno.test("calibrate() leaves out what did not run, took no time or did not settle, and says so", async () => {
  const healthy = fakeDevice(SMALL);
  const notes = async (wrong: (time: PlanTime & object, name: string) => PlanTime) => {
    const time: Measuring["time"] = async (plans) =>
      (await healthy.time(plans)).map((one, index) => {
        const { name } = plans[index]!;
        return /^winrs .* a16n8r9$/.test(name) ? wrong(one as PlanTime & object, name) : one;
      });
    const { notes, model } = await calibrate("small H200", { ...healthy, time });
    // Its family says what it should reach.
    assert.deepEqual(different(model, SMALL, 0.08), []);
    return notes.join();
  };
  assert.match(await notes(() => "Cannot execute: no"), /^winrs .* a16n8r9: Cannot execute: no$/);
  assert.match(await notes((one) => ({ ...one, median: 0 })), /took 0 ms, which is no time$/);
  assert.match(await notes((one) => ({ ...one, median: Infinity })), /took Infinity ms/);
  assert.match(
    await notes((one) => ({ ...one, mad: 0.2 * one.median })),
    /did not settle, its samples spread by 20 %$/,
  );
  let times = 0;
  const settles = (one: PlanTime & object) => times++ === 0 ? { ...one, mad: one.median } : one;
  assert.equal(await notes(settles), "");
});

Deno.test("calibrate() refuses a device of which nothing can be measured", async () => {
  const healthy = fakeDevice(SMALL);
  const broken = (matching: RegExp): Measuring => ({
    ...healthy,
    time: async (plans) =>
      (await healthy.time(plans)).map((one, index) =>
        matching.test(plans[index]!.name) ? { ...(one as PlanTime & object), median: NaN } : one
      ),
  });
  await assert.rejects(
    calibrate("broken H200", broken(/./)),
    /^UnsupportedError: Cannot calibrate: 1 workgroups cannot be timed: it took NaN ms$/,
  );
  await assert.rejects(
    calibrate("broken H200", broken(/^[^b]/)),
    /^UnsupportedError: Cannot calibrate: 0 of \d+ measurements can be used; /,
  );
  // What others scale by.
  await assert.rejects(
    calibrate("broken H200", broken(/^(direct fwd nchw mbic32|copy )/)),
    /^UnsupportedError: Cannot calibrate: no measurement of memory can be used; copy \d+: took NaN ms/,
  );
});

Deno.test("countMultiprocessors() finds where a second wave begins", async () => {
  for (const count of [1, 2, 3, 7, 8, 20, 64, 131, 132, 304]) {
    assert.equal(
      await countMultiprocessors(fakeDevice({ ...H200, multiprocessors: count })),
      count,
    );
  }
});

Deno.test("calibrate() refuses a GPU that does something else, too", async () => {
  await assert.rejects(calibrate("busy H200", fakeDevice(H200, 2)), {
    name: "UnsupportedError",
    message: /^Cannot calibrate: the GPU is busy, \d+ of \d+ measurements did not settle; /,
  });
});

Deno.test("measureSize() finds a device's multiprocessors, arithmetic and memory, and keeps what else is known of it", async () => {
  const device = modelWith(40, { rates: 0.3, "rates.stream": 2, times: 3 });
  const known = unknownModel("NVIDIA GeForce RTX 9999");
  const model = await measureSize(known, fakeDevice(device, 0.02));
  const { multiprocessors, threadResults, registers, rates, times, shares } = model;
  assert.deepEqual({ multiprocessors, threadResults, registers, shares }, {
    multiprocessors: 40,
    threadResults: known.threadResults,
    registers: known.registers,
    shares: known.shares,
  });
  const near = (found: number, real: number) =>
    assert.ok(Math.abs(Math.log(found / real)) < 0.15, `${found} for ${real}`);
  near(rates.gathered, device.rates.gathered);
  near(rates.winrs["a8n3r6"]!, device.rates.winrs["a8n3r6"]!);
  near(rates.stream, device.rates.stream);
  near(times.dispatch, device.times.dispatch);
  const endless = { ...fakeDevice(device), time: () => Promise.resolve(["it is lost"]) };
  await assert.rejects(measureSize(known, endless), { name: "UnsupportedError" });
});
