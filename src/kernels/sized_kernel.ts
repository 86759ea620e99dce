/** Finished kernels: a template or text with its module's declarations, and the sizes of a problem. */
import { Eta } from "../deps/eta.ts";
import type { Kernel } from "./kernel.ts";
import { type Lines, lines } from "./lists.ts";
import type { Subgroups } from "./matrix_units.ts";
import type { ModuleBuilder } from "./module.ts";

const eta = new Eta({ autoEscape: false, autoTrim: false, useWith: false });

/** Renders a template of `shaders/`; `it` holds its values. */
export function render(template: string, it: object): string {
  return eta.renderString(template, it);
}

/** The beginning of a kernel of so many threads a workgroup; with `subgroups` it knows a thread's place in them. */
export function mainText(threads: number, subgroups?: Subgroups): string {
  const size = subgroups?.size;
  return [
    `@compute @workgroup_size(${threads})${size === undefined ? "" : ` @subgroup_size(${size})`}`,
    "fn main(",
    "  @builtin(workgroup_id) workgroup: vec3u,",
    "  @builtin(num_workgroups) grid: vec3u,",
    "  @builtin(local_invocation_index) t: u32,",
    ...(subgroups
      ? [
        "  @builtin(subgroup_id) subgroup: u32,",
        "  @builtin(subgroup_invocation_id) lane: u32,",
      ]
      : []),
    ") {",
  ].join("\n");
}

/** The same of 256 threads, each of which has an element `i` of `count`; both are WGSL. */
export function eachElement(count: string): string {
  return [
    mainText(256),
    "  let i = (workgroup.x + workgroup.y * grid.x) * 256u + t;",
    `  if (i >= ${count}) { return; }`,
  ].join("\n");
}

/** A kernel and, in `uniform` mode, the sizes of this problem for it. */
export interface SizedKernel {
  readonly kernel: Kernel;
  /** Names of the tensors it binds, in order. */
  readonly tensors: readonly string[];
  readonly workgroups: number;
  /** The first size that 32 bits do not hold: the kernel is none. */
  readonly tooLarge?: string;
  readonly uniforms?: Uint32Array<ArrayBuffer>;
  /** Most iterations of its loops, all of them together, that a thread runs; 0 where it has none. */
  readonly iterations: number;
}

/** Iterations of a loop of `count` rounds, each with `inner` iterations of loops inside: the check that ends it is one more. */
export function loopIterations(count: number, inner = 0): number {
  return count * (1 + inner) + 1;
}

/** What a kernel takes of a device; without workgroup memory, loops and features but its tensors' where absent. */
export interface KernelCost {
  readonly workgroups: number;
  /** 256 where absent. */
  readonly threads?: number;
  /** Of workgroup memory. */
  readonly bytes?: number;
  readonly iterations?: number;
  readonly features?: readonly string[];
}

/** Finishes a kernel. Baked sizes enter the name as a hash, since another problem has another text. */
export function sizedKernel(
  module: ModuleBuilder,
  name: string,
  wgsl: string,
  { workgroups, threads = 256, bytes = 0, iterations = 0, features = [] }: KernelCost,
): SizedKernel {
  const { tensors, bindings, features: needed, uniforms, tooLarge } = module.bound();
  return {
    kernel: {
      name: module.mode === "constant" ? `${name}.${wgslHash(wgsl)}` : name,
      wgsl,
      workgroupSize: [threads, 1, 1],
      workgroupBytes: bytes,
      bindings,
      features: [...new Set([...needed, ...features])],
    },
    tensors,
    workgroups,
    iterations,
    ...(uniforms === undefined ? {} : { uniforms }),
    ...(tooLarge === undefined ? {} : { tooLarge }),
  };
}

/** A kernel of a template, which has its `name`, `declarations` and `main` beside the values. */
export function templateKernel(
  module: ModuleBuilder,
  name: string,
  template: string,
  values: object,
  cost: KernelCost,
): SizedKernel {
  const own = { name, main: mainText(cost.threads ?? 256), declarations: module.declarations() };
  return sizedKernel(module, name, render(template, { ...own, ...values }), cost);
}

/**
 * A kernel of a text, which follows its bindings.
 *
 * @param about What it does, for the head of the text.
 */
export function textKernel(
  module: ModuleBuilder,
  name: string,
  about: string,
  text: Lines,
  cost: KernelCost,
): SizedKernel {
  return sizedKernel(
    module,
    name,
    lines(`// ${name}: ${about}`, module.declarations(), text),
    cost,
  );
}

/** The hash of a text without its comments and white space, which no compiler sees. */
function wgslHash(wgsl: string): string {
  return textHash(wgsl.replaceAll(/\/\/.*|\s+/g, ""));
}

/** 32-bit FNV-1a in hexadecimal. */
export function textHash(text: string): string {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) {
    value = Math.imul(value ^ text.charCodeAt(i), 0x01000193) >>> 0;
  }
  return value.toString(16).padStart(8, "0");
}

/**
 * A grid of at least `count` workgroups, undefined where there is none; the kernel rebuilds the index as x + y·grid.x and
 * drops the tail.
 */
export function foldGrid(
  count: number,
  maxPerDimension: number,
): [number, number, number] | undefined {
  if (count <= maxPerDimension) return [count, 1, 1];
  const y = Math.ceil(count / maxPerDimension);
  return y > maxPerDimension ? undefined : [Math.ceil(count / y), y, 1];
}
