import { DEFAULT_LIMITS, type DeviceLimits } from "../../src/algorithms/plan.ts";
import { UnsupportedError } from "../../src/errors.ts";
import type { Kernel } from "../../src/kernels/kernel.ts";
import { findAdapter, LIMIT_NAMES, readLimits } from "../../src/gpu/adapter.ts";
import { grantedFeatures, tryDevice } from "../../src/gpu/features.ts";
import { loadProvider, type ProviderOptions } from "../../src/gpu/load_provider.ts";
import { bindGroupLayout, createPipeline, describeMessage } from "../../src/gpu/prepare.ts";
import type { Backend, GpuProvider } from "../../src/gpu/provider.ts";

/** What a compiler says of a kernel. */
interface ValidationMessage {
  readonly type: "error" | "warning" | "info";
  /** With place and line of WGSL where they are known. */
  readonly message: string;
}

/** A compiler that is kept open for many kernels. */
interface Validator extends Disposable {
  /** Messages about the kernel; it is valid when none of them is an error. */
  validate(kernel: Kernel): Promise<ValidationMessage[]>;
}

/**
 * Opens a backend's WGSL compiler. Dawn's works without any driver (`backend=null`); Deno's needs one.
 *
 * @param options.robust Whether Dawn holds indices itself; else kernels' texts are compiled as commands have them.
 * @throws {UnsupportedError} where the backend cannot be opened
 */
export async function openValidator(
  backend: Backend,
  { robust = true }: Pick<ProviderOptions, "robust"> = {},
): Promise<Validator> {
  const provider = await loadProvider(backend, { dawnFlags: ["backend=null"], robust });
  const { adapter } = await findAdapter(provider);
  return backend === "dawn" ? await dawnValidator(provider, adapter) : wgpuValidator(provider);
}

/** Checks one kernel with a backend's compiler. */
export async function validateWgsl(kernel: Kernel, backend: Backend): Promise<ValidationMessage[]> {
  using validator = await openValidator(backend);
  return await validator.validate(kernel);
}

/** One device with all the null adapter's features serves every kernel. */
async function dawnValidator(provider: GpuProvider, adapter: GPUAdapter): Promise<Validator> {
  const features = [...adapter.features] as string[];
  const device = await tryDevice(adapter, features);
  if (device === undefined) {
    throw new UnsupportedError("Cannot validate WGSL: Dawn opens no null device");
  }
  return {
    async validate(kernel) {
      const missing = kernel.features.filter((name) => !features.includes(name));
      if (missing.length > 0) return [unknownFeatures("Dawn", missing)];
      // The null device has WebGPU's least limits; larger kernels are parsed and checked, not built.
      return await compile(device, provider, kernel, fits(kernel, DEFAULT_LIMITS));
    },
    [Symbol.dispose]() {
      device.destroy();
      provider.close();
    },
  };
}

/** A device for each set of features, since naga accepts what the device was opened with. */
function wgpuValidator(provider: GpuProvider): Validator {
  const devices = new Map<string, GPUDevice>();
  const open = async (features: readonly string[]): Promise<GPUDevice | string[]> => {
    const { adapter } = await findAdapter(provider);
    const limits = Object.fromEntries(LIMIT_NAMES.map((name) => [name, adapter.limits[name]]));
    const device = await tryDevice(adapter, features, limits);
    if (device !== undefined) return device;
    const granted = await grantedFeatures(adapter, features, false);
    return features.filter((name) => !granted.includes(name));
  };
  return {
    async validate(kernel) {
      const key = [...kernel.features].sort().join();
      const device = devices.get(key) ?? await open(kernel.features);
      if (Array.isArray(device)) return [unknownFeatures("the adapter", device)];
      devices.set(key, device);
      return await compile(device, provider, kernel, fits(kernel, readLimits(device.limits)));
    },
    [Symbol.dispose]() {
      for (const device of devices.values()) device.destroy();
      provider.close();
    },
  };
}

/** Compiles the WGSL; also builds the pipeline where asked, which checks it against its bindings. */
async function compile(
  device: GPUDevice,
  provider: GpuProvider,
  kernel: Kernel,
  build: boolean,
): Promise<ValidationMessage[]> {
  const code = provider.textOf(kernel);
  device.pushErrorScope("validation");
  const module = device.createShaderModule({ label: kernel.name, code });
  const outcome = build
    ? createPipeline(device, module, bindGroupLayout(device, kernel.bindings), kernel)
    : undefined;
  const scoped = await device.popErrorScope();
  const pipeline = await outcome;
  const { messages } = await module.getCompilationInfo();
  const found = messages.map((message): ValidationMessage => ({
    type: message.type,
    message: describeMessage(message, code),
  }));
  if (found.some(({ type }) => type === "error")) return found;
  const error = pipeline instanceof Error ? pipeline : scoped;
  if (error) found.push({ type: "error", message: error.message.trim() });
  return found;
}

function fits(kernel: Kernel, limits: DeviceLimits): boolean {
  const threads = kernel.workgroupSize.reduce((product, size) => product * size, 1);
  const bindings = kernel.bindings.filter((kind) => kind !== "uniform").length;
  return kernel.workgroupBytes <= limits.maxComputeWorkgroupStorageSize &&
    threads <= limits.maxComputeInvocationsPerWorkgroup &&
    bindings <= limits.maxStorageBuffersPerShaderStage;
}

function unknownFeatures(who: string, names: readonly string[]): ValidationMessage {
  return { type: "error", message: `${who} has no ${names.join(", ")}` };
}
