import { Command, type CommandUnknownOpts, Option } from "#cli-types";
import { UnsupportedError } from "../errors.ts";
import { printer } from "./output.ts";

/** Types only: the GPU's modules are loaded when the command runs. */
type Description = import("../gpu/describe.ts").AdapterDescription;
type Driver = import("../gpu/drivers.ts").VulkanDriver;

const EXAMPLES = `
Examples:
  wgconv devices                   adapters of Deno's WebGPU
  wgconv devices --json            the same for programs
  wgconv devices --backend dawn    what Dawn sees (downloads it at first use)

Without a GPU, the CPU can stand in: apt-get install mesa-vulkan-drivers libvulkan1`;

/** `wgconv devices`: adapters, their features and limits, and the drivers behind them. */
export function devicesCommand(): CommandUnknownOpts {
  return new Command("devices")
    .description("List adapters, their features, limits and drivers.")
    .addOption(
      new Option("--backend <name>", "WebGPU implementation").choices(["wgpu", "dawn"] as const)
        .default("wgpu" as const),
    )
    .option("--json", "print one JSON document")
    .addHelpText("after", EXAMPLES)
    .action(async ({ backend, json }) => {
      const { describeAdapters } = await import("../gpu/describe.ts");
      const { vulkanDrivers } = await import("../gpu/drivers.ts");
      const { noAdapterMessage } = await import("../gpu/no_adapter.ts");
      const { COMPUTE_FEATURES } = await import("../gpu/features.ts");
      const adapters = await describeAdapters(backend);
      const drivers = vulkanDrivers();
      const out = printer("stdout");
      if (json) {
        out.line(JSON.stringify({ schema: 1, kind: "devices", backend, adapters, drivers }));
      } else {
        for (const line of formatDevices(adapters, drivers, COMPUTE_FEATURES)) out.line(line);
      }
      if (adapters.length === 0) throw new UnsupportedError(noAdapterMessage(backend));
    });
}

/** The lines people read. `wanted` are the features worth missing. */
export function formatDevices(
  adapters: readonly Description[],
  drivers: readonly Driver[],
  wanted: readonly string[],
): string[] {
  const lines: string[] = [];
  for (const adapter of adapters) {
    const { features, subgroupSize: [least, largest], matrixUnits } = adapter;
    const missing = wanted.filter((name) => !features.includes(name));
    lines.push(
      adapter.adapter,
      `  backend    ${adapter.backend}`,
      `  kind       ${adapter.software ? "software (runs on the CPU)" : "GPU"}`,
      `  vendor     ${adapter.vendor}`,
      ...(adapter.driver ? [`  driver     ${adapter.driver}`] : []),
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
