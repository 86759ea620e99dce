/** Bytes of workgroup memory that every WebGPU device has: kernels that keep to them run everywhere as they are. */
export const WORKGROUP_BYTES = 16_384;
