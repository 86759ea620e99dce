import { UnsupportedError } from "../errors.ts";
import type { MatrixUnits } from "../kernels/matrix_units.ts";
import {
  type AdapterSummary,
  isSoftwareName,
  LIMIT_NAMES,
  readMatrixUnits,
  requestAdapter,
  summarize,
} from "./adapter.ts";
import { vulkanDrivers } from "./drivers.ts";
import { COMPUTE_FEATURES, grantedFeatures } from "./features.ts";
import { loadProvider, prepareEnvironment, type ProviderOptions } from "./load_provider.ts";
import type { Backend, GpuProvider } from "./provider.ts";

/** An adapter that is asked for, by its index or a part of its name. */
interface AdapterChoice extends ProviderOptions {
  readonly backend: Backend;
  readonly adapter: string;
}

/**
 * Loads a provider so that it opens the adapter that is asked for: Dawn by its name, Deno's by the Vulkan driver that has it
 * and the request that finds it. A process of Deno's reads the driver once, so it cannot change to another.
 *
 * @throws {UnsupportedError} where there is no such adapter, or it cannot be told from others.
 */
export async function chooseAdapter(
  { backend, adapter: wanted, dawnFlags = [], ...options }: AdapterChoice,
): Promise<{ provider: GpuProvider; request?: GPURequestAdapterOptions }> {
  const { adapter, manifest, request } = findListed(await listAdapters(backend), wanted);
  if (backend === "dawn") {
    return {
      provider: await loadProvider(backend, {
        ...options,
        dawnFlags: [...dawnFlags, `adapter=${adapter}`],
      }),
    };
  }
  if (manifest !== undefined) Deno.env.set("VK_DRIVER_FILES", manifest);
  const provider = await loadProvider(backend);
  const found = await requestAdapter(provider, request);
  if (found === null || summarize(found, provider).adapter !== adapter) {
    throw new UnsupportedError(
      `Cannot open ${adapter}: this process has opened another adapter before`,
    );
  }
  return { provider, ...(request === undefined ? {} : { request }) };
}

/** An adapter that a backend can be told to take. Its place in the list is its index. */
export interface ListedAdapter {
  /** Its name, e.g. `NVIDIA H200`. */
  readonly adapter: string;
  /** Whether it computes on the CPU. */
  readonly software: boolean;
  /** Manifest of the Vulkan driver that has it, where drivers tell adapters apart. */
  readonly manifest?: string;
  /** What wgpu is asked for. */
  readonly request?: GPURequestAdapterOptions;
}

/** What wgpu can be asked for; each may give another adapter. */
const REQUESTS: readonly GPURequestAdapterOptions[] = [
  { powerPreference: "high-performance" },
  { powerPreference: "low-power" },
  { forceFallbackAdapter: true },
];

/** The name of no adapter. */
const NOBODY = "wgconv lists adapters";

const known = new Map<Backend, Promise<ListedAdapter[]>>();

/**
 * The adapters that can be chosen, GPUs first. Of equal GPUs wgpu shows one; Dawn shows all, and can take the first. They are
 * looked for once: what is chosen narrows the environment.
 *
 * @throws {UnsupportedError} where the backend cannot be loaded.
 */
export function listAdapters(backend: Backend): Promise<readonly ListedAdapter[]> {
  const listed = known.get(backend) ?? lookFor(backend);
  known.set(backend, listed);
  return listed;
}

async function lookFor(backend: Backend): Promise<ListedAdapter[]> {
  const all = backend === "dawn" ? await dawnAdapters() : await wgpuAdapters();
  return [...all.filter(({ software }) => !software), ...all.filter(({ software }) => software)];
}

/**
 * The adapter that an index or a part of a name means.
 *
 * @throws {UnsupportedError} where there is none, or names alone do not tell it from others.
 */
export function findListed(listed: readonly ListedAdapter[], wanted: string): ListedAdapter {
  const names = listed.map(({ adapter }, index) => `${index}: ${adapter}`).join(", ");
  const lower = wanted.toLowerCase();
  const exact = listed.filter(({ adapter }) => adapter.toLowerCase() === lower);
  const found = /^\d+$/.test(wanted)
    ? listed.slice(Number(wanted), Number(wanted) + 1)
    : exact.length > 0
    ? exact
    : lower.trim() === ""
    ? []
    : listed.filter(({ adapter }) => adapter.toLowerCase().includes(lower));
  const [first] = found;
  if (first === undefined) {
    throw new UnsupportedError(
      `Cannot choose adapter ${wanted || '""'}: ` +
        (names === "" ? "there is none" : `expected an index or a part of a name of ${names}`),
    );
  }
  if (found.some(({ adapter }) => adapter !== first.adapter)) {
    throw new UnsupportedError(`Cannot choose adapter ${wanted}: it may be any of ${names}`);
  }
  const twin = listed.find((one) =>
    one.adapter === first.adapter && one.manifest === first.manifest
  );
  if (twin !== first) {
    throw new UnsupportedError(
      `Cannot choose adapter ${wanted}: WebGPU takes the first of equal GPUs; give each process one of ` +
        "its own, by the scheduler's device cgroups, a container or a mount namespace",
    );
  }
  return first;
}

/** Adapters of Deno's WebGPU: those of each Vulkan driver by itself on Linux, elsewhere what the system offers. */
async function wgpuAdapters(): Promise<ListedAdapter[]> {
  prepareEnvironment();
  const drivers = vulkanDrivers();
  if (drivers.length === 0) return await adaptersOf(undefined);
  const before = Deno.env.get("VK_DRIVER_FILES");
  const found: ListedAdapter[] = [];
  try {
    for (const { manifest, library } of drivers) {
      // Alone it would find nothing, and complain.
      if (isIdle(library)) continue;
      Deno.env.set("VK_DRIVER_FILES", manifest);
      found.push(...await adaptersOf(manifest));
    }
  } finally {
    if (before === undefined) Deno.env.delete("VK_DRIVER_FILES");
    else Deno.env.set("VK_DRIVER_FILES", before);
  }
  return found;
}

/** Whether a driver of Mesa's for GPUs has none, since the kernel knows of none. */
function isIdle(library: string): boolean {
  if (!/(^|\/)libvulkan_(?!lvp|dzn)\w+\.so/.test(library)) return false;
  try {
    return !Deno.statSync("/dev/dri").isDirectory;
  } catch {
    return true;
  }
}

/** What a Worker says of each request: an adapter's name and whether it is one of the CPU's; null for none. */
type Answer = readonly ({ readonly adapter: string; readonly fallback: boolean } | null)[];

/** Deno reads the environment once in a Worker's life, so that each driver takes one of its own. */
const ASK = `
const answer = [];
for (const request of ${JSON.stringify(REQUESTS)}) {
  const found = await navigator.gpu?.requestAdapter(request).catch(() => null) ?? null;
  answer.push(found && { adapter: found.info.description, fallback: found.info.isFallbackAdapter });
}
postMessage(answer);
close();`;

/** The adapters of a driver, or of all that the environment names. */
async function adaptersOf(manifest: string | undefined): Promise<ListedAdapter[]> {
  const url = URL.createObjectURL(new Blob([ASK], { type: "text/javascript" }));
  const worker = new Worker(url, { type: "module" });
  try {
    const answer = await new Promise<Answer>((resolve, reject) => {
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = (event) => {
        event.preventDefault();
        reject(new UnsupportedError(`Cannot list adapters: ${event.message}`));
      };
    });
    return answer.flatMap((one, place) =>
      one === null || answer.findIndex((other) => other?.adapter === one.adapter) < place ? [] : [{
        adapter: one.adapter,
        software: one.fallback || isSoftwareName(one.adapter),
        request: REQUESTS[place]!,
        ...(manifest === undefined ? {} : { manifest }),
      }]
    );
  } finally {
    worker.terminate();
    URL.revokeObjectURL(url);
  }
}

/** Adapters of Dawn, as it lists them where it is asked for one that it does not have. */
async function dawnAdapters(): Promise<ListedAdapter[]> {
  const { loadProvider } = await import("./load_provider.ts");
  const provider = await loadProvider("dawn", { dawnFlags: [`adapter=${NOBODY}`] });
  try {
    await provider.gpu.requestAdapter();
    return [];
  } catch (error) {
    return parseDawnAdapters(error instanceof Error ? error.message : String(error));
  } finally {
    provider.close();
  }
}

/** The names in Dawn's ` * backend: 'vulkan', name: 'NVIDIA H200'`. */
export function parseDawnAdapters(message: string): ListedAdapter[] {
  return [...message.matchAll(/^ \* backend: '(?!null)[^']*', name: '(.*)'$/gm)]
    .map(([, adapter]) => ({ adapter: adapter!, software: isSoftwareName(adapter!) }));
}

/** An adapter with all that planning and people ask about. */
export interface AdapterDescription extends AdapterSummary {
  /** Names that `openDevice` takes, those that `adapter.features` hides included. */
  readonly features: readonly string[];
  /** By WebGPU's names; bytes or counts. */
  readonly limits: Readonly<Record<string, number>>;
  /** Least and largest number of threads in a subgroup. */
  readonly subgroupSize: readonly [number, number];
  /** What kernels multiply on matrix units; absent where there are none. */
  readonly matrixUnits?: MatrixUnits;
}

/**
 * The adapter that a backend takes by itself, and where there is another one the CPU's; or the one that is asked for. Empty where
 * there is none.
 *
 * @param wanted As {@linkcode chooseAdapter} has it.
 * @throws {UnsupportedError} where the backend cannot be loaded, or has not the adapter that is wanted.
 */
export async function describeAdapters(
  backend: Backend,
  wanted?: string,
): Promise<AdapterDescription[]> {
  const { provider, requests } = wanted === undefined
    ? {
      provider: await loadProvider(backend),
      requests: [undefined, { forceFallbackAdapter: true }],
    }
    : await chooseAdapter({ backend, adapter: wanted })
      .then(({ provider, request }) => ({ provider, requests: [request] }));
  const found: AdapterDescription[] = [];
  for (const request of requests) {
    const adapter = await requestAdapter(provider, request);
    if (adapter === null) continue;
    const summary = summarize(adapter, provider);
    const known = found.some(({ adapter, driver }) =>
      adapter === summary.adapter && driver === summary.driver
    );
    if (!known) found.push(await describe(adapter, summary, provider));
  }
  provider.close();
  return found;
}

async function describe(
  adapter: GPUAdapter,
  summary: AdapterSummary,
  provider: GpuProvider,
): Promise<AdapterDescription> {
  const granted = await grantedFeatures(adapter, COMPUTE_FEATURES, provider.listsFeatures);
  const listed: string[] = [...adapter.features];
  const { subgroupMinSize, subgroupMaxSize } = adapter.info;
  const matrixUnits = readMatrixUnits(adapter, provider, listed);
  return {
    ...summary,
    features: [...new Set([...granted, ...listed])],
    limits: Object.fromEntries(LIMIT_NAMES.map((name) => [name, adapter.limits[name]])),
    subgroupSize: [subgroupMinSize, subgroupMaxSize],
    ...(matrixUnits && { matrixUnits }),
  };
}
