import assert from "#assert";
import { H200 } from "../algorithms/device/h200.ts";
import { scaledModel } from "../algorithms/device/model.ts";
import { deviceOption, readDeviceModel } from "./device_model.ts";

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
  assert.deepEqual(deviceOption(undefined), {});
});

Deno.test("readDeviceModel() refuses what is no model, and says where", () => {
  const refused = (text: string, pattern: RegExp) =>
    assert.throws(() => withFile(text, readDeviceModel), pattern, text);
  refused("", /^SyntaxError: Cannot read .*\.json: expected a JSON object of a device model$/);
  refused("[1]", /expected a JSON object of a device model$/);
  refused('{"rates":{"packed":0}}', /rates\.packed is 0, expected >=/);
  refused('{"rates":{"packed":"52"}}', /rates\.packed is "52", expected number/);
  refused('{"rates":{"speed":52}}', /rates\.speed is "speed", expected never/);
  refused('{"software":1}', /software is 1, expected boolean/);
});
