import type { MatrixUnits } from "../kernels/matrix_units.ts";
import {
  type AdapterSummary,
  LIMIT_NAMES,
  readMatrixUnits,
  requestAdapter,
  summarize,
} from "./adapter.ts";
import { chooseAdapter } from "./list_adapters.ts";
import { COMPUTE_FEATURES, grantedFeatures } from "./features.ts";
import { loadProvider } from "./load_provider.ts";
import type { Backend, GpuProvider } from "./provider.ts";

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
