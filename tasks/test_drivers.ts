/**
 * `deno task test:drivers`: the golden cases' full matrix on every driver this machine has: lavapipe, SwiftShader
 * (Debian's chromium brings it) and SwiftShader through Dawn; and kernels on matrix units (`matrix`), which the CPU has with
 * Mesa 26 in a Debian of its own, in `~/.cache/wgconv/mesa26` or where `WGCONV_MESA26` says. Slow: minutes a driver.
 */
import { taskEnvironment } from "./environment.ts";
import { aptInstall, findAdapterName, LAVAPIPE_PACKAGES } from "./vulkan.ts";

const MANIFESTS = "/usr/share/vulkan/icd.d";
const SWIFTSHADER = "/usr/lib/chromium/vk_swiftshader_icd.json";

interface Driver {
  readonly name: string;
  readonly packages: readonly string[];
  /** What makes the Vulkan loader take this driver. */
  readonly env: () => Record<string, string>;
}

const DRIVERS: readonly Driver[] = [
  { name: "lavapipe", packages: LAVAPIPE_PACKAGES, env: lavapipe },
  {
    name: "swiftshader",
    packages: ["chromium"],
    env: () => ({ VK_DRIVER_FILES: SWIFTSHADER }),
  },
  {
    name: "dawn",
    packages: ["chromium"],
    env: () => ({ VK_DRIVER_FILES: SWIFTSHADER, WGCONV_TEST_BACKEND: "dawn" }),
  },
];

/** Lavapipe's own manifest, lest a GPU's driver is taken. */
function lavapipe(): Record<string, string> {
  try {
    const manifests = [...Deno.readDirSync(MANIFESTS)].map(({ name }) => name);
    const own = manifests.find((name) => name.startsWith("lvp_icd"));
    return own === undefined ? {} : { VK_DRIVER_FILES: `${MANIFESTS}/${own}` };
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return {};
    throw error;
  }
}

/** Runs the driver tests on one driver; false where they fail or the driver cannot be had. */
async function testDriver({ name, packages, env }: Driver): Promise<boolean> {
  let adapter = await findAdapterName(env());
  if (adapter === undefined && await aptInstall(packages)) adapter = await findAdapterName(env());
  if (adapter === undefined) {
    console.error(`${name}: no such driver, install ${packages.join(" ")}`);
    return false;
  }
  console.log(`${name}: ${adapter}`);
  let passed = true;
  for (const file of testFiles()) {
    const { success } = await new Deno.Command(Deno.execPath(), {
      args: ["test", "-A", file],
      env: { ...taskEnvironment(), ...env(), WGCONV_TEST_MATRIX: "full" },
    }).spawn().status;
    passed &&= success;
  }
  return passed;
}

/** What a script ends with that may not do what it would have to. */
const NOT_ALLOWED = 75;

/** What needs matrix units: all tests of files of their own, all that they have. */
const WHOLE = [
  "matrix_units",
  "matrix_conv",
  "matrix_taps",
  "f16x3",
  "f16x3_conv",
  "f16x3_implicit",
];
/**
 * Tests of files that others run too, and the golden cases, whose kernels take minutes to compile: samples, some 2 minutes. All with
 * WGCONV_TEST_MATRIX=full.
 */
const SAMPLED = ["winrs_half", "channels_last", "matrix_golden"];

/** Runs what needs matrix units on a driver that has them; undefined where that may not be set up. */
async function testMatrixUnits(): Promise<boolean | undefined> {
  const root = Deno.env.get("WGCONV_MESA26") ?? `${Deno.env.get("HOME")}/.cache/wgconv/mesa26`;
  const run = async (names: readonly string[], matrix: string, ...options: readonly string[]) => {
    const files = names.map((name) => `tests/drivers/${name}_test.ts`);
    const { code } = await new Deno.Command("sh", {
      args: ["tasks/mesa26.sh", root, "deno", "test", "-A", ...options, ...files],
      env: { WGCONV_TEST_MATRIX: matrix },
    }).spawn().status;
    return code;
  };
  const whole = await run(WHOLE, "full");
  if (whole === NOT_ALLOWED) return undefined;
  const matrix = Deno.env.get("WGCONV_TEST_MATRIX") ?? "";
  const sampled = await run(SAMPLED, matrix, "--filter", "matrix units");
  return whole === 0 && sampled === 0;
}

/** The driver tests, each for a process of its own: SwiftShader keeps what it compiled until the process ends. */
function testFiles(): string[] {
  return [...Deno.readDirSync("tests/drivers")]
    .map(({ name }) => `tests/drivers/${name}`)
    .filter((name) => name.endsWith("_test.ts"))
    .sort();
}

const runs: ReadonlyMap<string, () => Promise<boolean | undefined>> = new Map([
  ...DRIVERS.map((driver) => [driver.name, () => testDriver(driver)] as const),
  ["matrix", testMatrixUnits] as const,
]);
const wanted = Deno.args.length > 0 ? Deno.args : [...runs.keys()];
const unknown = wanted.filter((name) => !runs.has(name));
if (unknown.length > 0) {
  console.error(`Unknown driver ${unknown}, expected ${[...runs.keys()].join(", ")}`);
  Deno.exit(2);
}
const results: string[] = [];
let failures = 0;
for (const [name, run] of runs) {
  if (!wanted.includes(name)) continue;
  const start = performance.now();
  const passed = await run();
  if (passed === false) failures++;
  const seconds = ((performance.now() - start) / 1000).toFixed(0);
  const verdict = passed === undefined ? "left out" : passed ? "passed" : "FAILED";
  results.push(`${name}: ${verdict} in ${seconds} s`);
}
console.log(results.join("\n"));
Deno.exit(failures > 0 ? 1 : 0);
