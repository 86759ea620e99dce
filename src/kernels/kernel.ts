/**
 * A kernel: an immutable record that pure functions make. Its name carries every trait and is the key of
 * the pipeline cache, of tuning records and of reports, so two different WGSL texts never share a name.
 */
export interface Kernel {
  /** Canonical name, e.g. `implicit_gemm_fwd_f32_128x128x16_8x8_nhwc`. */
  readonly name: string;
  /** WGSL without `enable` lines: the GPU provider writes those from `features`. */
  readonly wgsl: string;
  /** The user's file that the WGSL is of; absent of ours. */
  readonly file?: string;
  /** `main` where absent. */
  readonly entry?: string;
  /** Values of the WGSL's overrides; none where absent. */
  readonly constants?: Readonly<Record<string, number>>;
  /** Threads per workgroup along x, y, z. */
  readonly workgroupSize: readonly [number, number, number];
  /** Bytes of `var<workgroup>`, which Deno does not check against the limit. */
  readonly workgroupBytes: number;
  /** How group 0's bindings are used; the place in the array is the binding number. */
  readonly bindings: readonly BindingKind[];
  /** WebGPU features the WGSL needs, e.g. `shader-f16`. */
  readonly features: readonly string[];
}

/**
 * `read`, `ordered` and `write` are storage buffers, `uniform` a uniform buffer. What is read of an `ordered` one is `read_write` in WGSL
 * like what is written: compilers may move no load of it past a barrier.
 */
export type BindingKind = "read" | "ordered" | "write" | "uniform";

/** A kernel's canonical name, without the hash of the sizes that are baked into its text. */
export function canonicalName({ name }: Pick<Kernel, "name">): string {
  return name.replace(/\.[0-9a-f]{8}$/, "");
}

/** Bytes of workgroup memory that every WebGPU device has: kernels that keep to them run everywhere as they are. */
export const WORKGROUP_BYTES = 16_384;
