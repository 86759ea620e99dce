import assert from "#assert";
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

Deno.test("figures that calibrations wrote and models have no more are passed over, of other files refused", () => {
  const former = { ...MODEL, shares: { ...MODEL.shares, unpacking: 0.72 } };
  const text = JSON.stringify({ ...JSON.parse(TEXT), model: former });
  assert.deepEqual(parseCalibration(text, "x.json", DEVICE).model, MODEL);
  assert.throws(
    () => parseDeviceModel(former, "x.json"),
    /a device model has no shares\.unpacking/,
  );
});

Deno.test("a share of a policy may be 0, which is never taken, and no other of that name", () => {
  const shares = (shares: object) => parseDeviceModel({ shares }, "x.json").shares;
  assert.equal(shares({ policies: { small: 0 } }).policies.small, 0);
  assert.throws(
    () => shares({ sliced: { thin: 0 } }),
    /shares\.sliced\.thin is 0, expected at least/,
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
  refused(changed({ model: undefined }), /x\.json: it has no model of a device$/);
});
