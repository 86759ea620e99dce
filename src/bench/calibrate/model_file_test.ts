import assert from "#assert";
import { fileURLToPath } from "node:url";
import { H200 } from "../../algorithms/device/h200.ts";
import { VERSION } from "../../version.ts";
import {
  parseCalibration,
  parseDeviceModel,
  printCalibration,
  readDeviceModel,
} from "./model_file.ts";

const DEVICE = {
  backend: "wgpu",
  adapter: "Some GPU",
  driver: "1.2",
  limits: { maxBufferSize: 4 },
};
const MODEL = { ...H200, name: "Some GPU, calibrated", multiprocessors: 20 };
const TIMES = { "copy 134217728": 0.06 };
const BEFORE = Date.now();
const TEXT = printCalibration(DEVICE, {
  model: MODEL,
  measured: ["times.dispatch"],
  times: TIMES,
  notes: ["a note"],
});

Deno.test("parseCalibration() reads what printCalibration() wrote, and so does --device-model", () => {
  const { model, date } = parseCalibration(TEXT, "x.json", DEVICE);
  assert.deepEqual(model, MODEL);
  assert.deepEqual(JSON.parse(TEXT).times, TIMES);
  // Dates are of whole seconds.
  assert.ok(Date.parse(date) > BEFORE - 1000 && Date.parse(date) <= Date.now(), date);
  const path = Deno.makeTempFileSync({ suffix: ".json" });
  try {
    Deno.writeTextFileSync(path, TEXT);
    assert.deepEqual(readDeviceModel(path), MODEL);
  } finally {
    Deno.removeSync(path);
  }
});

Deno.test("readDeviceModel() reads calibrations of GPUs from before policies of CPUs had shares, not of CPUs", () => {
  const path = Deno.makeTempFileSync({ suffix: ".json" });
  const read = (software: boolean) => {
    const before = { ...JSON.parse(TEXT), schema: 2, model: { ...MODEL, software } };
    Deno.writeTextFileSync(path, JSON.stringify(before));
    return readDeviceModel(path);
  };
  try {
    assert.deepEqual(read(false), MODEL);
    assert.throws(() => read(true), /^TypeError: .*another version of wgconv wrote it/);
    const real = "../../../bench/results/h100/calibration.json";
    const { name, shares, warps } = readDeviceModel(fileURLToPath(new URL(real, import.meta.url)));
    assert.equal(name, "NVIDIA H100 80GB HBM3, calibrated");
    assert.equal(shares.policies.short, H200.shares.policies.short, "what it lacks");
    const { busy, power } = warps;
    assert.deepEqual(warps.loop, { busy, power }, "what its policies were measured by");
  } finally {
    Deno.removeSync(path);
  }
});

Deno.test("figures that calibrations wrote and models have no more are passed over", () => {
  const { halves: _, ...flushed } = MODEL.shares.flushed;
  const { halves: __, ...shares } = MODEL.shares;
  const { policies } = shares.sliced;
  const images = {
    ...policies.images,
    "F(4,3)": { ...policies.images["F(4,3)"], "64x64x8_8x8d": 1.1 },
  };
  const sliced = {
    ...shares.sliced,
    ...{ joined: 0.97, flushed: 0.75, policies: { ...policies, images } },
  };
  const former = {
    ...shares,
    ...{ unpacking: 0.72, flushed: { ...flushed, transformed: 0.84 }, sliced },
  };
  assert.deepEqual(parseDeviceModel({ ...MODEL, shares: former }, "x.json"), MODEL);
  assert.throws(
    () => parseDeviceModel({ shares: { flushed: { transformd: 1 } } }, "x.json"),
    /a device model has no shares\.flushed\.transformd/,
  );
});

Deno.test("of few warps a model says one figure for all, or one of threads with many results beside it", () => {
  const warps = (fields: object) => parseDeviceModel(fields, "x.json").warps;
  assert.deepEqual(warps({}), H200.warps);
  assert.deepEqual(warps({ warps: { power: 2 } }).loop, { busy: H200.warps.busy, power: 2 });
  const loop = { busy: 7, power: 3 };
  assert.deepEqual(warps({ warps: { loop } }), { ...H200.warps, loop });
});

Deno.test("kernels of WinRS that a model does not know are as fast beside the others as an H200's", () => {
  const { winrs, winrsOverall } = H200.rates;
  const rates = (rates: object) => parseDeviceModel({ rates }, "x.json").rates;
  const half = rates({ winrs: { a8n3r6: 30 }, winrsOverall: winrsOverall / 2 }).winrs;
  assert.deepEqual([half.a8n3r6, half.a4n3r2xa4n3r2], [30, winrs.a4n3r2xa4n3r2! / 2]);
  assert.deepEqual(rates({ winrs: { a8n3r6: 30 } }).winrs, { ...winrs, a8n3r6: 30 });
});

Deno.test("a share of a policy may be 0, which is never taken, and no other of that name", () => {
  const shares = (shares: object) => parseDeviceModel({ shares }, "x.json").shares;
  assert.equal(shares({ policies: { small: 0 } }).policies.small, 0);
  assert.throws(
    () => shares({ sliced: { small: 0 } }),
    /shares\.sliced\.small is 0, expected at least/,
  );
});

Deno.test("parseCalibration() refuses what is damaged, older or of another device, by the file's name", () => {
  const refused = (text: string, pattern: RegExp, device = DEVICE) =>
    assert.throws(() => parseCalibration(text, "x.json", device), pattern, text.slice(0, 60));
  const changed = (fields: object) => JSON.stringify({ ...JSON.parse(TEXT), ...fields });
  refused("", /^SyntaxError: Cannot read x\.json: it is no calibration$/);
  refused(TEXT.slice(0, 200), /it is no calibration$/);
  refused("[]", /it is no calibration$/);
  refused(changed({ kind: "tuning" }), /it is no calibration$/);
  refused(changed({ schema: 1 }), /^TypeError: .*another version of wgconv wrote it$/);
  refused(changed({ version: `${VERSION}-old` }), /another version of wgconv wrote it$/);
  refused(TEXT, /it is of another device or driver$/, { ...DEVICE, driver: "1.3" });
  refused(changed({ date: "yesterday" }), /it has no date$/);
  refused(changed({ model: { rates: { packed: -1 } } }), /rates\.packed is -1, expected at least/);
  refused(changed({ model: { rates: { speed: 1 } } }), /a device model has no rates\.speed$/);
  refused(changed({ model: undefined }), /x\.json: it has no model of a device$/);
});
