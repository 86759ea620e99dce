import type { DeviceLimits, Pass, Plan } from "../algorithms/plan.ts";
import { UnsupportedError } from "../errors.ts";
import { BINDING_ALIGNMENT } from "./constants.ts";

/** What a plan's passes are checked against. */
interface Capabilities {
  readonly limits: DeviceLimits;
  readonly features: ReadonlySet<string>;
}

/**
 * Checks every pass of a plan before the device sees it: Deno does not check workgroup memory, and its
 * messages name no kernel.
 *
 * @throws {UnsupportedError} where the device is too small or lacks a feature
 * @throws {RangeError} where the plan contradicts itself
 */
export function checkPlan(plan: Plan, device: Capabilities): void {
  for (const pass of plan.passes) {
    checkDevice(pass, device);
    checkBindings(pass, plan, device.limits);
  }
}

function checkDevice({ kernel, grid }: Pass, { limits, features }: Capabilities): void {
  const cannot = `Cannot run ${kernel.name}`;
  const missing = kernel.features.filter((feature) => !features.has(feature));
  if (missing.length > 0) {
    throw new UnsupportedError(`${cannot}: the device was opened without ${missing.join(", ")}`);
  }
  const threads = kernel.workgroupSize.reduce((product, size) => product * size, 1);
  const storageBindings = kernel.bindings.filter((kind) => kind !== "uniform").length;
  const demands: readonly (readonly [string, number, keyof DeviceLimits])[] = [
    ["bytes of workgroup memory", kernel.workgroupBytes, "maxComputeWorkgroupStorageSize"],
    ["threads in a workgroup", threads, "maxComputeInvocationsPerWorkgroup"],
    ["workgroups along one axis", Math.max(...grid), "maxComputeWorkgroupsPerDimension"],
    ["storage bindings", storageBindings, "maxStorageBuffersPerShaderStage"],
  ];
  for (const [what, needed, limit] of demands) {
    if (needed > limits[limit]) {
      throw new UnsupportedError(
        `${cannot}: needs ${needed} ${what}, the device's ${limit} is ${limits[limit]}`,
      );
    }
  }
  if (!grid.every((count) => Number.isSafeInteger(count) && count >= 0)) {
    throw new RangeError(`${cannot}: the grid is ${grid.join(" x ")}`);
  }
}

function checkBindings(pass: Pass, plan: Plan, limits: DeviceLimits): void {
  const { kernel, bindings, uniforms } = pass;
  const cannot = `Cannot run ${kernel.name}`;
  const kinds = kernel.bindings.filter((kind) => kind !== "uniform");
  if (kinds.length !== bindings.length) {
    throw new RangeError(
      `${cannot}: it has ${kinds.length} storage bindings, the pass gives ${bindings.length}`,
    );
  }
  const uniformAt = kernel.bindings.indexOf("uniform");
  if (uniformAt >= 0 && uniformAt !== kernel.bindings.length - 1) {
    throw new RangeError(`${cannot}: a uniform binding must be the last and the only one`);
  }
  if ((uniformAt >= 0) !== (uniforms !== undefined && uniforms.length > 0)) {
    throw new RangeError(
      `${cannot}: ${uniformAt >= 0 ? "its uniforms are missing" : "it has no uniform binding"}`,
    );
  }
  const written = new Set(bindings.filter((_, i) => kinds[i] === "write").map((b) => b.buffer));
  bindings.forEach((binding, index) => {
    const buffer = plan.buffers[binding.buffer];
    if (buffer === undefined) {
      throw new RangeError(`${cannot}: binding ${index} names buffer ${binding.buffer}`);
    }
    const where = `${cannot}: binding ${index} (${buffer.name})`;
    const { offset, size } = binding;
    if (kinds[index] !== "write" && written.has(binding.buffer)) {
      throw new RangeError(`${where} reads a buffer that the same pass writes`);
    }
    if (offset % BINDING_ALIGNMENT !== 0 || offset < 0) {
      throw new RangeError(`${where} starts at byte ${offset}, no multiple of 256`);
    }
    if (!(size > 0) || size % 4 !== 0 || offset + size > buffer.bytes) {
      throw new RangeError(
        `${where} covers ${size} bytes from ${offset} on of a buffer of ${buffer.bytes}`,
      );
    }
    if (size > limits.maxStorageBufferBindingSize) {
      throw new UnsupportedError(
        `${where} needs ${size} bytes, the device's maxStorageBufferBindingSize is ` +
          `${limits.maxStorageBufferBindingSize}`,
      );
    }
  });
}
