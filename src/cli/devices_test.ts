import assert from "#assert";
import { type CliResult, wgconv } from "../../tests/cli.ts";
import { noAdapterMessage } from "../gpu/provider.ts";
import { formatChoices, formatDevices } from "./devices.ts";

/** Runs `wgconv devices` in a process of its own. */
function runDevices(args: string[], env: Record<string, string> = {}): Promise<CliResult> {
  return wgconv(["devices", ...args], { env });
}

Deno.test("wgconv devices --json lists adapters with hidden features, limits and drivers", async () => {
  const { code, stdout, stderr } = await runDevices(["--json"]);
  assert.equal(code, 0, stderr);
  const { schema, kind, backend, adapters, drivers } = JSON.parse(stdout);
  assert.deepEqual([schema, kind, backend], [1, "devices", "wgpu"]);
  assert.ok(adapters.length >= 1);
  assert.notEqual(adapters[0].adapter, "");
  assert.ok(adapters[0].features.includes("subgroups"));
  assert.ok(adapters[0].limits.maxComputeWorkgroupStorageSize >= 16384);
  assert.equal(drivers.length > 0, Deno.build.os === "linux");
});

Deno.test("wgconv devices prints a page for people", async () => {
  const { code, stdout, stderr } = await runDevices([]);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^ {2}features .*timestamp-query/m);
  assert.match(stdout, /^ {4}maxBufferSize +\d+ \([\d.]+ GiB\)$/m);
});

Deno.test("wgconv devices ends with 3 and says what to install where there is no driver", async () => {
  const { code, stdout, stderr } = await runDevices([], { VK_DRIVER_FILES: "/nonexistent.json" });
  assert.equal(code, 3);
  assert.match(stdout, /^Vulkan drivers: none found$/m);
  assert.match(stderr, /Cannot open a GPU: no Vulkan driver.*mesa-vulkan-drivers libvulkan1/);
});

Deno.test("formatDevices() tells what an adapter has and lacks", () => {
  const lines = formatDevices(
    [{
      adapter: "Some GPU",
      vendor: "1",
      backend: "wgpu",
      software: false,
      driver: "9.8",
      features: ["b", "c"],
      limits: { maxBufferSize: 3 * 2 ** 29, maxComputeWorkgroupsPerDimension: 65535 },
      subgroupSize: [32, 64],
      matrixUnits: {
        lanes: 32,
        units: [
          { component: "f16", result: "f32", m: 16, n: 8, k: 16 },
          { component: "i8", result: "i32", m: 16, n: 16, k: 32 },
        ],
      },
    }],
    [{ manifest: "m.json", library: "lib.so", apiVersion: "1.3.0" }],
    ["a", "b"],
  );
  assert.deepEqual(lines, [
    "Some GPU",
    "  backend    wgpu",
    "  kind       GPU",
    "  vendor     1",
    "  driver     9.8",
    "  subgroups  32 to 64 threads",
    "  matrices   16x8x16 f16 to f32, 16x16x32 i8 to i32",
    "  features   b",
    "  missing    a",
    "  limits",
    "    maxBufferSize                      1610612736 (1.5 GiB)",
    "    maxComputeWorkgroupsPerDimension   65535",
    "",
    "Vulkan drivers",
    "  lib.so  1.3.0  m.json",
  ]);
});

Deno.test("formatDevices() names vendors, and Vulkan's drivers only where they are used", () => {
  const gpu = { adapter: "G", backend: "wgpu", software: false, features: [], limits: {} } as const;
  const lines = formatDevices([{ ...gpu, vendor: "4203", subgroupSize: [32, 32] }], undefined, []);
  assert.ok(lines.includes("  vendor     Apple"), lines.join("\n"));
  assert.ok(!lines.some((line) => line.startsWith("Vulkan")), lines.join("\n"));
  assert.match(noAdapterMessage("dawn", "windows"), /^Cannot open a GPU through Dawn: the system /);
});

Deno.test("formatChoices() lists what --adapter chooses among, and says where it cannot", () => {
  const listed = [{ adapter: "NVIDIA H200", manifest: "nvidia.json" }, { adapter: "llvmpipe" }];
  const first = [
    "Adapters, for --adapter",
    "  0  NVIDIA H200  nvidia.json",
    "  1  llvmpipe",
  ];
  assert.deepEqual(formatChoices(listed, []), [...first, ""]);
  const gpu = (address: string, model = "NVIDIA H200") => ({ address, model });
  const hosts = [[gpu("0000:18:00.0"), gpu("0000:2a:00.0")], [gpu("1"), gpu("2", "NVIDIA A2")]];
  const [equal, unlike] = hosts.map((host) => formatChoices(listed, host));
  assert.equal(
    equal![3],
    "NVIDIA GPUs of this host: NVIDIA H200 (0000:18:00.0), NVIDIA H200 (0000:2a:00.0)",
  );
  assert.match(equal!.slice(4).join(" "), /cannot choose among equal GPUs: .* device cgroups/);
  assert.deepEqual(unlike!.slice(3), [
    "NVIDIA GPUs of this host: NVIDIA H200 (1), NVIDIA A2 (2)",
    "",
  ]);
  assert.deepEqual(formatChoices([], []), []);
});
