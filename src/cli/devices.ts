import { Command, type CommandUnknownOpts } from "#cli-types";
import { UnsupportedError } from "../errors.ts";
import { calibrationPath, keptCalibration } from "./calibration.ts";
import { printer } from "./output.ts";
import { OPTION } from "./shared_options.ts";

/** Types only: the GPU's modules are loaded when the command runs. */
type Description = import("../gpu/list_adapters.ts").AdapterDescription;
type Driver = import("../gpu/drivers.ts").VulkanDriver;
type Gpu = import("../gpu/drivers.ts").NvidiaGpu;
type Listed = import("../gpu/list_adapters.ts").ListedAdapter;

/** What is known of an adapter's calibration; nothing where there is none. */
interface Calibrated {
  readonly calibration?: { readonly date: string; readonly path: string };
}

const EXAMPLES = `
Examples:
  wgconv devices                   GPUs that Deno's WebGPU finds
  wgconv devices --json            the same for programs
  wgconv devices --backend dawn    GPUs that Dawn finds (downloads Dawn at first use)
  wgconv devices --adapter 1       only the second GPU

Without a GPU, install a driver for the CPU: apt-get install mesa-vulkan-drivers libvulkan1`;

/** `wgconv devices`: adapters, their features and limits, and the drivers behind them. */
export function devicesCommand(): CommandUnknownOpts {
  return new Command("devices")
    .description("List GPUs, their features, limits, drivers and calibrations.")
    .option(...OPTION.backend)
    .option(...OPTION.adapter)
    .option(...OPTION.json)
    .addHelpText("after", EXAMPLES)
    .action(async ({ backend, adapter, json }) => {
      const { describeAdapters } = await import("../gpu/list_adapters.ts");
      const { listAdapters } = await import("../gpu/list_adapters.ts");
      const { nvidiaGpus, vulkanDrivers } = await import("../gpu/drivers.ts");
      const { noAdapterMessage } = await import("../gpu/provider.ts");
      const { COMPUTE_FEATURES } = await import("../gpu/features.ts");
      const drivers = vulkanDrivers();
      const isLinux = Deno.build.os === "linux";
      const listed = await listAdapters(backend);
      const adapters = (await describeAdapters(backend, adapter)).map((one) => ({
        ...one,
        ...calibrationOf(one),
      }));
      const host = nvidiaGpus();
      const out = printer("stdout");
      if (json) {
        const choices = listed.map(({ request: _, ...one }, index) => ({ index, ...one }));
        const found = { backend, choices, adapters, drivers, nvidia: host };
        out.line(JSON.stringify({ schema: 1, kind: "devices", ...found }));
      } else {
        const lines = [
          ...formatChoices(listed, host),
          ...formatDevices(adapters, isLinux ? drivers : undefined, COMPUTE_FEATURES),
        ];
        lines.forEach((line) => out.line(line));
      }
      if (adapters.length === 0) throw new UnsupportedError(noAdapterMessage(backend));
    });
}

/** What is kept of an adapter's calibration: when it was measured, and where it lies. */
function calibrationOf({ backend, adapter, driver = "" }: Description): Calibrated {
  if (backend === "browser") return {};
  const device = { backend, adapter, driver };
  const kept = keptCalibration(device);
  return kept === undefined
    ? {}
    : { calibration: { date: kept.date, path: calibrationPath(device)! } };
}

/** The adapters that `--adapter` chooses among, and why not among equal GPUs. */
export function formatChoices(
  listed: readonly Pick<Listed, "adapter" | "manifest">[],
  host: readonly Gpu[],
): string[] {
  if (listed.length === 0) return [];
  const equal = host.length > new Set(host.map(({ model }) => model)).size;
  return [
    "Adapters, for --adapter",
    ...listed.map(({ adapter, manifest }, index) =>
      `  ${index}  ${adapter}${manifest === undefined ? "" : `  ${manifest}`}`
    ),
    ...(host.length < 2 ? [] : [
      `NVIDIA GPUs of this host: ${
        host.map(({ address, model }) => `${model} (${address})`).join(", ")
      }`,
    ]),
    ...(equal
      ? [
        "  WebGPU cannot choose among equal GPUs: a process takes the first that it may open. Give each",
        "  process its own by the scheduler's device cgroups, a container or a mount namespace.",
      ]
      : []),
    "",
  ];
}

/** PCI's and Khronos' numbers of vendors, as wgpu writes them. */
const VENDORS: Readonly<Record<string, string>> = {
  4098: "AMD",
  4203: "Apple",
  4318: "NVIDIA",
  5045: "Arm",
  5140: "Microsoft",
  20803: "Qualcomm",
  32902: "Intel",
  65541: "Mesa",
};

/**
 * The lines people read.
 *
 * @param drivers Of Vulkan; absent where the system's own interface is used.
 * @param wanted The features worth missing.
 */
export function formatDevices(
  adapters: readonly (Description & Calibrated)[],
  drivers: readonly Driver[] | undefined,
  wanted: readonly string[],
): string[] {
  const lines: string[] = [];
  for (const adapter of adapters) {
    const { features, subgroupSize: [least, largest], matrixUnits, calibration } = adapter;
    const missing = wanted.filter((name) => !features.includes(name));
    lines.push(
      adapter.adapter,
      `  backend    ${adapter.backend}`,
      `  kind       ${adapter.software ? "software (runs on the CPU)" : "GPU"}`,
      `  vendor     ${VENDORS[adapter.vendor] ?? adapter.vendor}`,
      ...(adapter.driver ? [`  driver     ${adapter.driver}`] : []),
      ...(calibration === undefined
        ? []
        : [`  calibrated ${calibration.date.slice(0, 10)}, ${calibration.path}`]),
      `  subgroups  ${least === largest ? least : `${least} to ${largest}`} threads`,
      ...(matrixUnits === undefined
        ? []
        : [`  matrices   ${matrixUnits.units.map(unitText).join(", ")}`]),
      `  features   ${wanted.filter((name) => features.includes(name)).join(", ") || "none"}`,
      ...(missing.length > 0 ? [`  missing    ${missing.join(", ")}`] : []),
      "  limits",
      ...Object.entries(adapter.limits).map(([name, value]) =>
        `    ${name.padEnd(34)} ${formatLimit(name, value)}`
      ),
      "",
    );
  }
  if (drivers === undefined) return lines;
  lines.push(`Vulkan drivers${drivers.length === 0 ? ": none found" : ""}`);
  for (const { manifest, library, apiVersion } of drivers) {
    lines.push(`  ${library}  ${apiVersion}  ${manifest}`);
  }
  return lines;
}

/** `16x16x16 f16 to f32`. */
function unitText(
  { component, result, m, n, k }: NonNullable<Description["matrixUnits"]>["units"][number],
): string {
  return `${m}x${n}x${k} ${component} to ${result}`;
}

function formatLimit(name: string, value: number): string {
  if (!/(BufferSize|BindingSize|StorageSize)$/.test(name)) return String(value);
  const units = ["bytes", "KiB", "MiB", "GiB"];
  let amount = value;
  let unit = 0;
  while (amount >= 1024 && unit < units.length - 1) {
    amount /= 1024;
    unit++;
  }
  return unit === 0 ? `${value} bytes` : `${value} (${Number(amount.toFixed(1))} ${units[unit]})`;
}
