import assert from "#assert";
import { fileURLToPath } from "node:url";
import { dirname } from "node:path";
import { deno, temporaryDirectory } from "../../tests/cli.ts";
import { addonBeside, mergeFlags } from "./dawn.ts";

const SWIFTSHADER = "/usr/lib/chromium/vk_swiftshader_icd.json";

/** Opens Dawn's device in a process of its own, runs saxpy twice, and tells what it got. */
const PROGRAM = `
const { download } = await import("${import.meta.resolve("./buffers.ts")}");
const { openDevice } = await import("${import.meta.resolve("./device.ts")}");
const { execute, preparePlan } = await import("${import.meta.resolve("./execute.ts")}");
const { saxpyBuffers, saxpyPlan } = await import("${
  import.meta.resolve("../../tests/support/test_plans.ts")
}");
try {
  using gpu = await openDevice({ backend: "dawn", optionalFeatures: ["subgroups"] });
  const plan = saxpyPlan();
  using buffers = saxpyBuffers(gpu, plan);
  using prepared = await preparePlan(gpu, plan, buffers);
  const { clock, samplesNs } = await execute(gpu, prepared, { samples: 2, repeats: 8 });
  const z = new Float32Array(1000);
  await download(gpu, buffers.get("output"), 0, 4000, new Uint8Array(z.buffer));
  const wrong = z.findIndex((value, i) => value !== 12 * i + 0.5);
  const broken = saxpyPlan({}, { name: "test_broken", wgsl: "fn main( {" });
  const message = await preparePlan(gpu, broken, buffers).catch((error) => error.message);
  console.log(JSON.stringify({ info: gpu.info, clock, samplesNs, wrong, message }));
} catch (error) {
  console.log(JSON.stringify({ error: error.name, message: error.message }));
}`;

async function runDawn(env: Record<string, string>) {
  const { code, stdout, stderr } = await deno(["eval", PROGRAM], { env });
  assert.equal(code, 0, `the process ended with ${code}: ${stderr}`);
  return JSON.parse(stdout);
}

function exists(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}

Deno.test("Dawn says what to install where it finds no driver it accepts", async () => {
  const { error, message } = await runDawn({ VK_DRIVER_FILES: "/nonexistent.json" });
  assert.equal(error, "UnsupportedError");
  assert.match(message, /^Cannot open a GPU through Dawn: .*SwiftShader/);
});

Deno.test("loadProvider() says how to name Dawn's package where it does not load", async () => {
  const { error, message } = await runDawn({ WGCONV_DAWN: "no/such/index.js" });
  assert.equal(error, "UnsupportedError");
  assert.match(
    message,
    /^Cannot load Dawn from .*dawn\.node: .*WGCONV_DAWN can name the index\.js/s,
  );
});

Deno.test("programs that may not load Dawn are told what each kind of them needs", async () => {
  const how = "; run it, or install it, with -A; of a compiled file set WGCONV_DAWN to the " +
    "index\\.js that `npm install webgpu@[\\d.]+` makes";
  const kinds: [flags: string[], why: string][] = [
    [[], ": this program may not start Deno, which downloads it"],
    [["--allow-env"], ": this program may not start Deno, which downloads it"],
    [["--allow-env", "--allow-run"], " from .*dawn\\.node: this program may not load native code"],
  ];
  const main = fileURLToPath(new URL("../../main.ts", import.meta.url));
  using folder = temporaryDirectory();
  const addon = `${folder.path}/dawn.node`;
  await Deno.writeTextFile(addon, "not Dawn");
  for (const [flags, why] of kinds) {
    const line = [
      "run",
      "--no-prompt",
      "--allow-read",
      ...flags,
      main,
      "devices",
      "--backend",
      "dawn",
    ];
    const { code, stderr } = await deno(line, {
      env: { WGCONV_DAWN: why.includes("from") ? addon : "" },
    });
    assert.equal(code, 3, stderr);
    assert.match(stderr, new RegExp(`^wgconv: Cannot load Dawn${why}${how}`));
  }
});

Deno.test("an addon in the cache that is not the pinned one is never loaded", async () => {
  using cache = temporaryDirectory();
  const folder = `${cache.path}/npm/registry.npmjs.org/webgpu/0.6.2`;
  const addon = addonBeside(`${folder}/index.js`);
  await Deno.mkdir(dirname(addon), { recursive: true });
  await Deno.writeTextFile(`${folder}/index.js`, "");
  await Deno.writeTextFile(addon, "not Dawn");
  const { error, message } = await runDawn({ DENO_DIR: cache.path });
  assert.equal(error, "UnsupportedError");
  assert.match(message, /^Cannot load Dawn: SHA-256 of .*dawn\.node is [0-9a-f]{64}, webgpu /);
});

// Registered only where Debian's chromium has brought the driver: Dawn refuses old lavapipe.
if (exists(SWIFTSHADER)) {
  Deno.test("Dawn runs a plan on SwiftShader and its process ends well", async () => {
    const result = await runDawn({ VK_DRIVER_FILES: SWIFTSHADER });
    assert.equal(result.error, undefined, result.message);
    assert.equal(result.info.backend, "dawn");
    assert.equal(result.info.software, true);
    assert.equal(result.wrong, -1);
    assert.equal(result.clock, "timestamp");
    assert.ok(result.samplesNs.every((ns: number) => ns > 0), result.samplesNs.join());
    assert.match(result.message, /^Cannot compile test_broken: .*\(line 1, column \d+\)/s);
  });
}

Deno.test("mergeFlags() joins the values of flags of one name", () => {
  assert.deepEqual(
    mergeFlags(["enable-dawn-features=a,b", "backend=null", "enable-dawn-features=c", "verbose"]),
    ["enable-dawn-features=a,b,c", "backend=null", "verbose"],
  );
});
