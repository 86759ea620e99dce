import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { UnsupportedError } from "../errors.ts";
import { boundedIndices } from "../kernels/bounded.ts";
import { MATRIX_FEATURES, SUBGROUP_SIZE_FEATURE } from "../kernels/matrix_units.ts";
import {
  cachedPackage,
  environmentValue,
  fetchPackage,
  type NativePackage,
  verifyFile,
} from "../npm_package.ts";
import { enabledText, type GpuProvider, noAdapterMessage } from "./provider.ts";

/** What the addon of the npm package `webgpu` exports, as far as it is used. */
interface DawnAddon {
  create(flags: string[]): GPU;
  readonly globals: Readonly<Record<string, { prototype?: Record<string, unknown> } | undefined>>;
}

const NAME = "webgpu";
const VERSION = "0.6.2";

/** SHA-256 of the package's addons. */
const ADDONS: Readonly<Record<string, string>> = {
  "darwin-universal": "f5b278f3dc65276bf1f8a667f91650d32585431d5b2d148ca729f67924c574a3",
  "linux-arm64": "474a272ac9be570b04fa3791576d32e56f574818e60190c6788a83be90233980",
  "linux-x64": "ab18a659f8325e874ea45c80347b64336d7f748601102753d2bc669fdecfd710",
  "win32-arm64": "d0ef6fe1551cd08fb0fee2a8281d38008434697e5d9a6f3bfdcbb9ab00755672",
  "win32-x64": "75fff5db8a7541ad7a2d22c468e6f8bc3614b87c3b649c8ce712f7f5148ef338",
};

/** What is fetched. */
export const DAWN: NativePackage = {
  name: NAME,
  version: VERSION,
  title: "Dawn",
  megabytes: 51,
  doing: "Cannot load Dawn",
  how: `run it, or install it, with -A; of a compiled file set WGCONV_DAWN to the index.js that ` +
    `\`npm install ${NAME}@${VERSION}\` makes`,
  offline: `without a network set WGCONV_DAWN to the index.js of the npm package ${NAME}`,
};

/**
 * Loads Dawn's addon: the one `WGCONV_DAWN` names as it is, else the one in Deno's npm cache, else from npm.
 *
 * @throws {UnsupportedError} where it cannot be had
 */
export async function loadAddon(): Promise<DawnAddon> {
  const named = environmentValue("WGCONV_DAWN");
  const path = named ? addonBeside(resolve(named)) : await fetchAddon();
  try {
    return createRequire(import.meta.url)(path);
  } catch (cause) {
    if (cause instanceof Deno.errors.NotCapable) {
      throw new UnsupportedError(
        `Cannot load Dawn from ${path}: this program may not load native code; ${DAWN.how}`,
        { cause },
      );
    }
    // Without the modules that asked for it, and without the path again.
    const [said = ""] = (cause instanceof Error ? cause.message : String(cause)).split("\n");
    const reason = said.replace(` '${path}'`, "");
    throw new UnsupportedError(
      `Cannot load Dawn from ${path}: ${reason}; WGCONV_DAWN can name the index.js of ` +
        `the npm package ${NAME}`,
      { cause },
    );
  }
}

/** Whether Dawn can be loaded without a download. */
export async function isDawnHere(): Promise<boolean> {
  return environmentValue("WGCONV_DAWN") !== undefined || await cachedPackage(DAWN) !== undefined;
}

/** The addon for this machine beside the package's `index.js`; a path to an addon stays as it is. */
export function addonBeside(path: string): string {
  return path.endsWith(".node") ? path : join(dirname(path), "dist", platform(), "dawn.node");
}

/** The package's name for this machine. */
function platform(): string {
  const { os, arch } = Deno.build;
  if (os === "darwin") return "darwin-universal";
  return `${os === "windows" ? "win32" : os}-${arch === "aarch64" ? "arm64" : "x64"}`;
}

/**
 * Finds the addon in Deno's npm cache, downloading the package first where it is not there.
 *
 * @throws {UnsupportedError} where it cannot be had, or is not the one whose hash stands here
 */
export async function fetchAddon(): Promise<string> {
  const path = addonBeside(join(await fetchPackage(DAWN), "index.js"));
  const expected = ADDONS[platform()];
  if (expected === undefined) {
    throw new UnsupportedError(`Cannot load Dawn: ${NAME} has no addon for ${platform()}`);
  }
  await verifyFile(path, expected, DAWN);
  return path;
}

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
