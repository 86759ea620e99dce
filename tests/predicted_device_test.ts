import assert from "#assert";
import { H200 } from "../src/algorithms/device/h200.ts";
import { temporaryDirectory } from "./cli.ts";
import { refuses, succeeds } from "./support/in_process.ts";

const PLAN = "plan --problem mb1ic32ih8oc32kh3ph1";
const UNASKED =
  /on an NVIDIA H200 \(the default; --device gpu plans for this machine, --device-model for another\)/;

async function said(line: string): Promise<string> {
  const { stdout } = await succeeds(line.split(" "));
  return stdout;
}

Deno.test("each time that plan predicts names its device, and how to ask for another where nobody did", async () => {
  const text = await said(PLAN);
  assert.match(text, new RegExp(`^predicted +0\\.\\d+ ms ${UNASKED.source}`, "m"));
  assert.match(text, /^note +auto: .* is predicted to take 0\.\d+ ms on an NVIDIA H200, /m);
  assert.match(await said(`${PLAN} --all`), new RegExp(`^predicted ${UNASKED.source}`, "m"));
  const winrs = await said(`${PLAN} --op bwd-filter --algorithm winrs`);
  assert.match(winrs, /^note +predicted 0\.\d+ ms on an NVIDIA H200$/m);
  const { predicted_device, rivals } = JSON.parse(await said(`${PLAN} --json`));
  assert.equal(predicted_device, "NVIDIA H200");
  for (const rival of [...rivals, ...JSON.parse(await said(`${PLAN} --all --json`))]) {
    const named = rival.predicted_ms === undefined ? undefined : "NVIDIA H200";
    assert.equal(rival.predicted_device, named, rival.algorithm);
  }
});

Deno.test("plan names a device that was asked for, by its own name or its file's", async () => {
  assert.match(await said(`${PLAN} --device-model h200`), /^predicted .* on an NVIDIA H200$/m);
  using temporary = temporaryDirectory();
  const path = `${temporary.path}/model.json`;
  Deno.writeTextFileSync(path, JSON.stringify({ ...H200, name: "Radeon 890M, calibrated" }));
  const text = await said(`${PLAN} --device-model ${path}`);
  assert.match(text, /^predicted .* ms on Radeon 890M, calibrated$/m);
  Deno.writeTextFileSync(path, JSON.stringify({ multiprocessors: 8 }));
  assert.match(await said(`${PLAN} --device-model ${path}`), /^predicted .* ms on .*model\.json$/m);
});

Deno.test("a model of a GPU does not go with a CPU, nor the reverse: their kernels differ", async () => {
  const { stdout } = await succeeds(["devices", "--json"]);
  const { software } = JSON.parse(stdout).adapters[0];
  using temporary = temporaryDirectory();
  const path = `${temporary.path}/model.json`;
  Deno.writeTextFileSync(path, JSON.stringify({ software: true, multiprocessors: 2, name: "CPU" }));
  const [same, other] = software ? [path, "m3"] : ["m3", path];
  for (const command of [`${PLAN} --device gpu`, "conv --problem mb1ic3ih8oc4kh3"]) {
    await refuses(
      `${command} --device-model ${other}`.split(" "),
      /^wgconv: Cannot plan: --device-model is of a [CG]PU \(.*\n$/,
    );
    await succeeds(`${command} --device-model ${same}`.split(" "));
  }
});
