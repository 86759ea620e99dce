/**
 * `deno task test:shims [--every N] [--update] [--ready] [NAME...]`: the compilers of GPUs that are not there. Mesa's drm-shims stand in for
 * the kernel's driver; Mesa's own drivers then compile, and nothing executes. SPIR-V of an M1's kernels is held against spirv-val and
 * spirv-cross, which translates it to Metal's language. Runs tests/shims/compile.ts on each device in a Debian of its own
 * (`WGCONV_MESA26`, else `~/.cache/wgconv/mesa26`). Exits with 1 where a kernel fails or ends the driver's process. `--ready` leaves
 * all out where that Debian has not been set up. `--update` writes bench/tables/gpus_compiled.jsonl, of which `deno task tables`
 * makes docs/gpus_compiled.md.
 */
import { parseArgs } from "node:util";
import { parsePipelines } from "../bench/machine_code/pipelines.ts";
import { fetchAddon } from "../src/gpu/dawn.ts";
import { compiledFamilies, type CompiledFamily } from "../bench/tables/gpus_compiled.ts";

const LIB = "/usr/lib/x86_64-linux-gnu";
const INTEL = "/usr/local/lib/libintel_noop_drm_shim.so";
/** The shim's library, the driver's manifest, and the variable that chooses a device of it. */
const DRIVERS = {
  amd: [`${LIB}/libamdgpu_noop_drm_shim.so`, "radeon", "AMDGPU_GPU_ID"],
  apple: [`${LIB}/libasahi_noop_drm_shim.so`, "asahi", "UNUSED"],
  qualcomm: [`${LIB}/libfreedreno_noop_drm_shim.so`, "freedreno", "FD_GPU_ID"],
  nvidia: [`${LIB}/libnouveau_noop_drm_shim.so`, "nouveau", "NOUVEAU_CHIPSET"],
  intel: [INTEL, "intel", "INTEL_STUB_GPU_PLATFORM"],
} as const;
/** Names, drivers, what these call the devices, and whether Dawn finds matrix units there. */
const DEVICES = [
  ["navi31", "amd", "navi31", true],
  ["vega10", "amd", "vega10", false],
  ["m1", "apple", "m1", false],
  ["a740", "qualcomm", "740", false],
  ["nvk", "nvidia", "164", true],
  ["dg2", "intel", "dg2", true],
  ["bmg", "intel", "bmg", true],
] as const;
/** The device whose kernels are checked as SPIR-V, too, and translated to Metal's language. */
const TRANSLATED = "m1";
const BACKENDS = ["wgpu", "dawn"] as const;
/** What a script ends with that may not do what it would have to. */
const NOT_ALLOWED = 75;
/** Crashes after which a device is given up. */
const CRASHES = 5;
const FOLDER = "dist/shims";
const RESULTS = "bench/tables/gpus_compiled.jsonl";

const { values: { every, update, ready }, positionals } = parseArgs({
  options: {
    every: { type: "string", default: "16" },
    update: { type: "boolean", default: false },
    ready: { type: "boolean", default: false },
  },
  allowPositionals: true,
});
const root = Deno.env.get("WGCONV_MESA26") ?? `${Deno.env.get("HOME")}/.cache/wgconv/mesa26`;

/** Runs a command in the Debian; gives its exit status. */
async function inside(args: readonly string[], env: Record<string, string> = {}): Promise<number> {
  const words = Object.entries(env).map(([name, value]) => `${name}=${value}`).join(" ");
  const { code } = await new Deno.Command("sh", {
    args: ["tasks/mesa26.sh", root, ...args],
    env: { MESA26_ENV: words },
  }).spawn().status;
  return code;
}

/** A line of compile.ts. */
interface Line {
  readonly begin?: string;
  readonly end?: string;
  readonly auto?: boolean;
  readonly error?: string;
}

const read = (path: string) => {
  try {
    return Deno.readTextFileSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return "";
    throw error;
  }
};

/** Checks the SPIR-V of a folder's kernels, and translates it to Metal's language; gives how many failed. */
async function translate(folder: string): Promise<number> {
  const { stdout } = await new Deno.Command("sh", {
    args: ["tasks/mesa26.sh", root, "sh", "tests/shims/translate.sh", folder],
    stderr: "inherit",
  }).output();
  const lines = new TextDecoder().decode(stdout).trim().split("\n");
  const failed = lines.filter((line) => line.startsWith("failed "));
  const modules = Number(/^modules (\d+)$/.exec(lines.at(-1) ?? "")?.[1] ?? 0);
  console.log(`SPIR-V to Metal: ${modules} modules, ${failed.length} failed`);
  for (const line of failed) console.log(`  ${line}`);
  return modules === 0 ? 1 : failed.length;
}

/** Compiles on one device; gives its rows and how many kernels failed. */
async function compile(
  [name, driver, id]: (typeof DEVICES)[number],
  backend: string,
): Promise<{ rows: CompiledFamily[]; failed: number }> {
  const [shim, icd, variable] = DRIVERS[driver];
  const folder = `${FOLDER}/${name}-${backend}`;
  await Deno.mkdir(folder, { recursive: true });
  const env = {
    LD_PRELOAD: shim,
    [variable]: id,
    VK_DRIVER_FILES: `/usr/share/vulkan/icd.d/${icd}_icd.json`,
    MESA_SHADER_CACHE_DISABLE: "true",
    VK_LAYER_PATH: "/usr/local/lib/machine_code",
    VK_INSTANCE_LAYERS: "VK_LAYER_wgconv_machine_code",
    WGCONV_MACHINE_CODE: folder,
    ...(name === TRANSLATED && { WGCONV_MACHINE_CODE_SPIRV: "1" }),
  };
  let code = 1;
  for (let crashes = 0; code !== 0 && crashes < CRASHES; crashes++) {
    code = await inside(
      ["deno", "run", "-A", "--no-check", "tests/shims/compile.ts", folder, backend, every],
      env,
    );
  }
  const lines: Line[] = read(`${folder}/compiled.jsonl`).split("\n").filter((line) => line !== "")
    .map((line) => JSON.parse(line));
  const ended = lines.filter(({ end }) => end !== undefined);
  const crashed = lines.filter(({ begin }) =>
    begin !== undefined && !ended.some(({ end }) => end === begin)
  );
  const wrong = [
    ...ended.flatMap(({ end, error }) => error === undefined ? [] : [`${end}: ${error}`]),
    ...crashed.map(({ begin }) => `${begin}: ends the driver's process`),
    ...(code === 0 ? [] : [`exit status ${code}`]),
  ];
  console.log(`${name} (${backend}): ${ended.length} kernels, ${wrong.length} failed`);
  for (const text of wrong) console.log(`  ${text}`);
  const kernels = ended.map(({ end = "", auto = false }) => ({ name: end, auto }));
  const rows = compiledFamilies(
    name,
    backend,
    kernels,
    parsePipelines(read(`${folder}/pipelines.jsonl`)),
  );
  return { rows, failed: wrong.length };
}

if (ready && read(root + INTEL) === "") {
  console.log(
    `shims: left out, since there is no Debian in ${root}: deno task test:shims makes it`,
  );
  Deno.exit(0);
}
// Dawn is fetched here: its Debian may not trust a proxy's certificate.
await fetchAddon();
const built = await inside(["sh", "tests/shims/build.sh"]);
if (built === NOT_ALLOWED) {
  console.log("shims: left out, since chroot is not allowed here");
  Deno.exit(0);
}
await Deno.remove(FOLDER, { recursive: true }).catch(() => {});
const rows: CompiledFamily[] = [];
let failures = 0;
for (
  const device of DEVICES.filter(([name]) => positionals.length === 0 || positionals.includes(name))
) {
  const [name, driver, , units] = device;
  if (driver === "intel" && read(root + INTEL) === "") {
    console.log(`${name}: left out, since Intel's shim cannot be built here`);
    continue;
  }
  for (const backend of units ? BACKENDS : ["wgpu"]) {
    const { rows: own, failed } = await compile(device, backend);
    rows.push(...own);
    failures += failed;
    if (name === TRANSLATED) failures += await translate(`${FOLDER}/${name}-${backend}`);
  }
}
if (update) {
  const others = read(RESULTS).trim().split("\n").map((line) => JSON.parse(line) as CompiledFamily)
    .filter(({ device }) => rows.every((row) => row.device !== device));
  const place = (row: CompiledFamily) => DEVICES.findIndex(([name]) => name === row.device);
  const all = [...others, ...rows].sort((a, b) => place(a) - place(b));
  await Deno.writeTextFile(RESULTS, all.map((row) => JSON.stringify(row) + "\n").join(""));
}
Deno.exit(failures > 0 ? 1 : 0);
