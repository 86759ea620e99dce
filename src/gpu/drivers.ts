import { readText } from "../read_text.ts";

/** A Vulkan driver that the loader finds on this machine. */
export interface VulkanDriver {
  /** Path of the manifest. */
  readonly manifest: string;
  /** Library the manifest names. */
  readonly library: string;
  /** Vulkan version the driver implements, e.g. `1.3.230`. */
  readonly apiVersion: string;
}

const SYSTEM_FOLDERS = [
  "/usr/share/vulkan/icd.d",
  "/usr/local/share/vulkan/icd.d",
  "/etc/vulkan/icd.d",
];

/** Manifests of Vulkan drivers on Linux: those the environment names, else those of the usual folders. */
export function vulkanDrivers(): VulkanDriver[] {
  if (Deno.build.os !== "linux") return [];
  const named = readVariable("VK_DRIVER_FILES") ?? readVariable("VK_ICD_FILENAMES");
  const paths = named ? named.split(":") : SYSTEM_FOLDERS.flatMap(manifestsIn);
  return paths.map(readManifest).filter((driver) => driver !== undefined);
}

/** Reads a manifest's text; nothing where it is not one. */
export function parseManifest(manifest: string, text: string): VulkanDriver | undefined {
  try {
    const { ICD } = JSON.parse(text);
    if (typeof ICD?.library_path !== "string") return undefined;
    return { manifest, library: ICD.library_path, apiVersion: String(ICD.api_version ?? "") };
  } catch {
    return undefined;
  }
}

/**
 * The NVIDIA kernel driver's version, e.g. `580.95.05`; nothing without that driver. The standalone program may not
 * read `/proc`, and is given the text.
 */
export function nvidiaDriverVersion(): string | undefined {
  const text = readOptional("/proc/driver/nvidia/version") ?? readVariable("WGCONV_NVIDIA_DRIVER");
  return text === undefined ? undefined : parseNvidiaVersion(text);
}

/** An NVIDIA GPU of this host, as its kernel driver lists them. */
export interface NvidiaGpu {
  /** PCI address, e.g. `0000:18:00.0`. */
  readonly address: string;
  readonly model: string;
}

/** The NVIDIA GPUs of this host, whether or not this process may open them; none without that driver. */
export function nvidiaGpus(folder = "/proc/driver/nvidia/gpus"): NvidiaGpu[] {
  try {
    return [...Deno.readDirSync(folder)].map(({ name }) => name).sort().map((address) => {
      const text = readOptional(`${folder}/${address}/information`) ?? "";
      return { address, model: /^Model:\s*(.*?)\s*$/m.exec(text)?.[1] ?? "NVIDIA GPU" };
    });
  } catch {
    return [];
  }
}

/** Finds the version in the text of `/proc/driver/nvidia/version`. */
export function parseNvidiaVersion(text: string): string | undefined {
  return /^NVRM version:.*?\s(\d+\.\d+(?:\.\d+)?)\s/m.exec(text)?.[1];
}

function manifestsIn(folder: string): string[] {
  try {
    return [...Deno.readDirSync(folder)]
      .filter((entry) => entry.name.endsWith(".json"))
      .map((entry) => `${folder}/${entry.name}`)
      .sort();
  } catch {
    return [];
  }
}

function readManifest(path: string): VulkanDriver | undefined {
  const text = readOptional(path);
  return text === undefined ? undefined : parseManifest(path, text);
}

/** A text, or nothing where it cannot be read. */
function readOptional(path: string): string | undefined {
  try {
    return readText(path);
  } catch {
    return undefined;
  }
}

function readVariable(name: string): string | undefined {
  const permission = Deno.permissions.querySync({ name: "env", variable: name });
  return permission.state === "granted" ? Deno.env.get(name) : undefined;
}
