import { MATRIX_FEATURES, SUBGROUP_SIZE_FEATURE } from "../kernels/matrix_units.ts";
import { loadAddon } from "./dawn_addon.ts";
import { enabledText, type GpuProvider, noAdapterMessage } from "./provider.ts";
import { boundedIndices } from "../kernels/bounded.ts";

type AsyncMethod = (this: unknown, ...values: unknown[]) => Promise<unknown>;

const DIRECTIVES = {
  "shader-f16": "f16",
  "subgroups": "subgroups",
  [SUBGROUP_SIZE_FEATURE]: "subgroup_size_control",
  "chromium-experimental-subgroup-matrix": "chromium_experimental_subgroup_matrix",
};

/** Subgroup matrices and NVIDIA's f16 are behind toggles, and timestamps come in steps of 65 µs without. */
const DEFAULT_FLAGS = [
  "enable-dawn-features=allow_unsafe_apis,vulkan_enable_f16_on_nvidia",
  "disable-dawn-features=timestamp_quantization",
];

/** Methods that give promises, by class. */
const ASYNC_METHODS: readonly (readonly [string, string])[] = [
  ["GPU", "requestAdapter"],
  ["GPUAdapter", "requestDevice"],
  ["GPUBuffer", "mapAsync"],
  ["GPUDevice", "createComputePipelineAsync"],
  ["GPUDevice", "popErrorScope"],
  ["GPUQueue", "onSubmittedWorkDone"],
  ["GPUShaderModule", "getCompilationInfo"],
];

/**
 * Dawn's own checks of indices, without which kernels' texts hold theirs within arrays ({@linkcode boundedIndices}): Dawn's
 * would also wrap where matrix units load from, which a policy's sizes settle, and take two fifths of their speed.
 */
const UNCHECKED = "enable-dawn-features=disable_robustness";

/**
 * Dawn as a Node-API addon, from npm or from the file `WGCONV_DAWN` names (the package's `index.js`).
 *
 * @param robust Whether Dawn checks indices.
 * @throws {UnsupportedError} where the addon cannot be loaded
 */
export async function loadDawn(flags: readonly string[], robust: boolean): Promise<GpuProvider> {
  const dawn = await loadAddon();
  for (const [type, method] of ASYNC_METHODS) keepTurning(dawn.globals[type]?.prototype, method);
  return {
    name: "dawn",
    gpu: dawn.create(mergeFlags([...DEFAULT_FLAGS, ...(robust ? [] : [UNCHECKED]), ...flags])),
    listsFeatures: true,
    matrixFeatures: MATRIX_FEATURES,
    noAdapterMessage: noAdapterMessage("dawn"),
    // Its description is the driver's and its device the name.
    identify: ({ device, description }) => ({
      adapter: device || description,
      driver: description,
    }),
    textOf: ({ wgsl, features }) =>
      enabledText({ features, wgsl: robust ? wgsl : boundedIndices(wgsl) }, DIRECTIVES),
    close() {},
  };
}

/** Joins the values of flags of the same name, since Dawn keeps only the last of each. */
export function mergeFlags(flags: readonly string[]): string[] {
  const values = new Map<string, string[]>();
  for (const flag of flags) {
    const split = flag.indexOf("=");
    const name = split < 0 ? flag : flag.slice(0, split);
    const list = values.get(name) ?? [];
    if (split >= 0) list.push(flag.slice(split + 1));
    values.set(name, list);
  }
  return [...values].map(([name, list]) => list.length === 0 ? name : `${name}=${list.join(",")}`);
}

let waiting = 0;
/** Deno's own, while Dawn is given {@linkcode later} in its place. */
let setImmediate: unknown;
const patched = new WeakSet<AsyncMethod>();

/**
 * Dawn looks for what has ended in a callback that it gives to `setImmediate` again and again. Each is an object
 * with a finalizer, and Deno runs finalizers one a turn of the event loop: without a pause between the
 * callbacks, thousands of them pile up and hold Dawn's promises back for seconds. A timer is that pause, and keeps
 * the event loop turning.
 */
function later(callback: (...values: unknown[]) => void, ...values: unknown[]): void {
  setTimeout(callback, 1, ...values);
}

/** Gives Dawn {@linkcode later} while it is waited for. */
function keepTurning(prototype: Record<string, unknown> | undefined, method: string): void {
  const original = prototype?.[method] as AsyncMethod | undefined;
  if (prototype === undefined || original === undefined || patched.has(original)) return;
  const global = globalThis as Record<string, unknown>;
  const wrapped: AsyncMethod = async function (...values) {
    if (waiting++ === 0) {
      setImmediate = global.setImmediate;
      global.setImmediate = later;
    }
    try {
      return await original.apply(this, values);
    } finally {
      if (--waiting === 0) global.setImmediate = setImmediate;
    }
  };
  patched.add(wrapped);
  prototype[method] = wrapped;
}
