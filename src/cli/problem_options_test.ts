import assert from "#assert";
import { H200 } from "../algorithms/device/h200.ts";
import { softwareDevice } from "../algorithms/device/software.ts";
import { modelOf } from "../algorithms/device/known.ts";
import { scaledModel } from "../../tests/support/scaled_model.ts";
import { readDeviceModel } from "../bench/calibrate/model_file.ts";
import { TILE_POLICIES } from "../kernels/policy.ts";
import { givenModel } from "./problem_options.ts";

function withFile<T>(text: string, body: (path: string) => T): T {
  const path = Deno.makeTempFileSync({ suffix: ".json" });
  try {
    Deno.writeTextFileSync(path, text);
    return body(path);
  } finally {
    Deno.removeSync(path);
  }
}

Deno.test("readDeviceModel() takes what a file says, at any depth, and an H200's figures for the rest", () => {
  const half = scaledModel(H200, 0.5);
  assert.deepEqual(withFile(JSON.stringify(half), readDeviceModel), half);
  const { multiprocessors, rates } = withFile(
    JSON.stringify({ multiprocessors: 40, rates: { sliced: { two: 3 } } }),
    readDeviceModel,
  );
  assert.equal(multiprocessors, 40);
  assert.deepEqual(rates, { ...H200.rates, sliced: { ...H200.rates.sliced, two: 3 } });
  assert.equal(givenModel(undefined), undefined);
});

Deno.test("readDeviceModel() takes the model that docs/architecture.md shows", async () => {
  const page = new URL("../../docs/architecture.md", import.meta.url);
  const [, example] = /```json\n([^`]*)```/.exec(await Deno.readTextFile(page)) ?? [];
  const { name, rates } = withFile(example!, readDeviceModel);
  assert.equal(name, "half a device");
  assert.equal(rates.packed, H200.rates.packed / 2);
});

Deno.test("readDeviceModel() refuses what is no model, and says where", () => {
  const refused = (text: string, pattern: RegExp) =>
    assert.throws(() => withFile(text, readDeviceModel), pattern, text);
  refused("", /^SyntaxError: Cannot read .*: line 1 ends in the middle, expected a JSON object of/);
  refused(
    '{"rates":\n{"packed":NaN}}',
    /: line 2 has NaN, which JSON lacks, expected a JSON object/,
  );
  refused("[1]", /expected a JSON object of a device model$/);
  refused('{"rates":{"packed":0}}', /rates\.packed is 0, expected at least/);
  refused('{"rates":{"packed":"52"}}', /rates\.packed is "52", expected a number/);
  refused('{"schema":1,"kind":"tuning"}', /: it is no device model, wgconv calibrate --output /);
  refused('{"rates":{"speed":52}}', /a device model has no rates\.speed$/);
  refused('{"multiprocessors":0.4}', /multiprocessors is 0\.4, expected a whole number/);
  refused('{"rates":{"packed":1e300}}', /rates\.packed is 1e\+300, expected at most/);
  refused('{"kind":"calibration","schema":1}', /another version of wgconv wrote it, /);
  refused('{"kind":"calibration","schema":3}', /: it has no model of a device$/);
  const zeros = Object.fromEntries(TILE_POLICIES.map(({ name }) => [name, 0]));
  refused(JSON.stringify({ shares: { policies: zeros } }), /expected one that is not$/);
  refused('{"software":true}', /it is of a software device, and has no multiprocessors$/);
  refused('{"software":1}', /software is 1, expected true or false/);
});

Deno.test("readDeviceModel() takes a CPU's figures for what a file of a CPU lacks", () => {
  const { times, shares, rates } = withFile(
    '{"software":true,"multiprocessors":4}',
    readDeviceModel,
  );
  const cpu = softwareDevice(8);
  assert.deepEqual([times, shares, rates], [cpu.times, cpu.shares, cpu.rates]);
});

Deno.test("modelOf() leaves a software device one, whatever figures are given", () => {
  const given = scaledModel(H200, 2);
  assert.equal(modelOf(undefined, given), given);
  const { software, multiprocessors, rates } = modelOf(8, given);
  assert.deepEqual([software, multiprocessors, rates.stream], [true, 4, given.rates.stream]);
  const other = { ...given, software: true, multiprocessors: 3 };
  assert.equal(modelOf(8, other), other);
});
