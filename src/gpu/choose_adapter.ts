import { UnsupportedError } from "../errors.ts";
import { requestAdapter, summarize } from "./adapter.ts";
import { findListed, listAdapters } from "./list_adapters.ts";
import { loadProvider, type ProviderOptions } from "./load_provider.ts";
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
