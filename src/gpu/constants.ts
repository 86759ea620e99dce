/**
 * WebGPU's numeric flags. Deno's globals and Dawn's objects are two implementations in one process, so
 * nothing here relies on whose `GPUBufferUsage` is in scope.
 */
export const BUFFER_USAGE = {
  mapRead: 0x0001,
  copySource: 0x0004,
  copyDestination: 0x0008,
  uniform: 0x0040,
  storage: 0x0080,
  queryResolve: 0x0200,
} as const;

/** `GPUMapMode.READ`. */
export const MAP_READ = 0x0001;

/** `GPUShaderStage.COMPUTE`. */
export const STAGE_COMPUTE = 0x4;

/** Buffer offsets of bindings are multiples of this on every device. */
export const BINDING_ALIGNMENT = 256;
