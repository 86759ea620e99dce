import { type Lines, lines, range } from "./lists.ts";
import { Eta } from "../deps/eta.ts";
import type { BindingKind, Kernel } from "./kernel.ts";
import type { Subgroups } from "./matrix_units.ts";
import {
  heldScalar,
  masked,
  type Scalar,
  scalarBytes,
  scalarFeature,
  type Stored,
  sumScalar,
  typeName,
  zeroOf,
} from "../elements/scalar.ts";

/** `constant` bakes sizes into the text, so that divisions fold; `uniform` lets problems share a pipeline. */
export type SizeMode = "constant" | "uniform";

/** How a kernel reaches one storage tensor. Indexes count `vector` elements. */
export interface TensorAccess {
  readonly vector: 1 | 4;
  /** What loads give and stores take. */
  readonly value: Scalar;
  /** Zero where a condition does not hold. */
  load(index: string, inside?: readonly string[]): string;
  /** A statement. */
  store(index: string, value: string): string;
}

/** How a kernel reaches words that threads change at the same time; all but `load` are statements. */
export interface AtomicWords {
  load(index: string): string;
  store(index: string, value: string): string;
  add(index: string, value: string): string;
  max(index: string, value: string): string;
  or(index: string, value: string): string;
}

/**
 * Collects what a WGSL module needs beside its body: bindings in order, and sizes that become literals
 * or fields of one uniform struct. Lives only inside the function that makes a kernel.
 */
export interface ModuleBuilder {
  readonly mode: SizeMode;
  /** WGSL expression (u32) of a size. The same name always stands for the same value. */
  size(name: string, value: number): string;
  /** WGSL expression (u32) of a size that passes of one kernel differ in: a uniform in both modes. */
  parameter(name: string, value: number): string;
  /**
   * Binds a tensor, in `parts` bindings of `partElements` vectors each where it exceeds one.
   *
   * @param value What the kernel computes with; of f16 it is f32, and of i8 i32, where absent, else the element itself. Of bf16 it is
   * always f32.
   * @throws {Error} where single i8 are to be written, which share words.
   */
  tensor(
    name: string,
    kind: "read" | "ordered" | "write",
    vector: 1 | 4,
    split: TensorSplit,
    element?: Stored,
    value?: Scalar,
  ): TensorAccess;
  /** The same of a tensor that lies as {@linkcode moduleBuilder} was told. */
  bind(
    name: string,
    kind: "read" | "write",
    vector: 1 | 4,
    element?: Stored,
    value?: Scalar,
  ): TensorAccess;
  /** Enters a kernel's name where tensors that were so bound take several bindings. */
  splitTrait(): string;
  /** Binds words that threads change at the same time. */
  atomics(name: string): AtomicWords;
  declarations(): string;
  /** What is bound, and what that takes. */
  bound(): BoundTensors;
}

/** What a kernel binds. */
export interface BoundTensors {
  /** Names of the tensors, in order. */
  readonly tensors: string[];
  readonly bindings: BindingKind[];
  /** WebGPU features that they need. */
  readonly features: string[];
  /** Contents of the uniform binding, or undefined if there is none. */
  readonly uniforms: Uint32Array<ArrayBuffer> | undefined;
  /** The first size that 32 bits do not hold. */
  readonly tooLarge: string | undefined;
}

/** How a tensor is spread over bindings: `bytes` each, the last one the rest. */
export interface TensorSplit {
  readonly parts: number;
  readonly partBytes: number;
}

export const WHOLE: TensorSplit = { parts: 1, partBytes: 0 };

/** Spreads `bytes` over as few bindings as the limit allows, at offsets that any device takes (256). */
export function splitTensor(bytes: number, maxBindingBytes: number): TensorSplit {
  if (bytes <= maxBindingBytes) return WHOLE;
  const partBytes = Math.floor(maxBindingBytes / 256) * 256;
  return { parts: Math.ceil(bytes / partBytes), partBytes };
}

/** @param named How tensors lie that a kernel binds by their names. */
export function moduleBuilder(
  mode: SizeMode,
  named: Readonly<Record<string, TensorSplit>> = {},
): ModuleBuilder {
  const kinds: BindingKind[] = [];
  const text: string[] = [];
  const tensors: string[] = [];
  const features = new Set<string>();
  const sizes = new Map<string, number>();
  const splits: TensorSplit[] = [];
  let tooLarge: string | undefined;
  const builder: ModuleBuilder = {
    mode,
    size(name, value) {
      const known = sizes.get(name);
      if (known !== undefined && known !== value) {
        throw new Error(`Cannot make a kernel: size ${name} is ${known} and ${value}`);
      }
      if (!Number.isInteger(value) || value < 0) {
        throw new RangeError(`Cannot make a kernel: size ${name} = ${value} is no index`);
      }
      if (value > 0xffffffff) tooLarge ??= `${name} is ${value}`;
      if (mode === "constant") return `${value}u`;
      sizes.set(name, value);
      return `sizes.${name}`;
    },
    parameter(name, value) {
      sizes.set(name, value);
      return `sizes.${name}`;
    },
    tensor(name, kind, vector, split, element = "f32", computed = sumScalar(element)) {
      tensors.push(name);
      const feature = scalarFeature(element);
      if (feature !== undefined) features.add(feature);
      const value = heldScalar(computed);
      const singles = vector === 1 && (element === "i8" || element === "bf16");
      if (singles && element === "i8" && kind === "write") {
        throw new Error(`Cannot write single ${element} to ${name}`);
      }
      if (element === "bf16" && !text.includes(BF16_TEXT)) text.push(BF16_TEXT);
      const { type, given, loaded, stored } = formOf(element, vector, value);
      // What threads share words of is changed a half at a time.
      const shared = singles && kind === "write";
      // An element of a part; single int8 and bf16 are taken out of their words.
      const at = (part: string, index: string) => {
        if (!singles) return `${part}[${index}]`;
        if (element === "i8") {
          return `extractBits(bitcast<i32>(${part}[(${index}) / 4u]), (${index}) % 4u * 8u, 8u)`;
        }
        const word = `${part}[(${index}) / 2u]`;
        return `from_bf16(${shared ? `atomicLoad(&${word})` : word}, ${index})`;
      };
      const put = (part: string, index: string) =>
        shared
          ? `let at = (${index}) / 2u; let low = ((${index}) << 4u) & 16u; ` +
            `atomicAnd(&${part}[at], 0xffff0000u >> low); ` +
            `atomicOr(&${part}[at], to_bf16(value) << low);`
          : `${part}[${index}] = value;`;
      const access = kind === "read" ? "read" : "read_write";
      // `filter` alone is a reserved word.
      const names = range(split.parts).map((part) =>
        split.parts === 1 ? `${name}_data` : `${name}_data${part}`
      );
      const zero = zeroOf(value, vector);
      for (const part of names) {
        text.push(
          `@group(0) @binding(${kinds.length}) var<storage, ${access}> ${part}: array<${
            shared ? "atomic<u32>" : type
          }>;`,
        );
        kinds.push(kind);
      }
      if (split.parts === 1 && !singles) {
        return {
          vector,
          value,
          load: (index, inside) => masked(loaded(`${name}_data[${index}]`), zero, inside),
          store: (index, text) => `${name}_data[${index}] = ${stored(text)};`,
        };
      }
      const partVectors = split.partBytes / (scalarBytes(element) * vector);
      const last = split.parts - 1;
      const choose = (line: (part: string, index: string) => string) =>
        names.map((part, place) => {
          const index = place === 0 ? "i" : `i - ${place * partVectors}u`;
          const body = line(part, index);
          return place === last
            ? `  ${body}`
            : `  if (i < ${(place + 1) * partVectors}u) { ${body} }`;
        }).join("\n");
      const loader = `fn load_${name}(i: u32) -> ${given} {\n${
        choose((p, i) => `return ${at(p, i)};`)
      }\n}`;
      text.push(
        kind !== "write"
          ? loader
          : `fn store_${name}(i: u32, value: ${given}) {\n${
            choose((p, i) => `${put(p, i)} return;`)
          }\n}`,
      );
      let loads = kind !== "write";
      return {
        vector,
        value,
        load(index, inside) {
          // Of what is written few kernels read.
          if (!loads) text.push(loader);
          loads = true;
          return masked(loaded(`load_${name}(${index})`), zero, inside);
        },
        store: (index, text) => `store_${name}(${index}, ${stored(text)});`,
      };
    },
    bind(name, kind, vector, element, value) {
      const split = named[name];
      if (split === undefined) throw new Error(`Cannot bind ${name}: nothing says how it lies`);
      splits.push(split);
      return builder.tensor(name, kind, vector, split, element, value);
    },
    splitTrait: () => splitTrait(...splits),
    atomics(name) {
      tensors.push(name);
      const place = `@group(0) @binding(${kinds.length})`;
      text.push(`${place} var<storage, read_write> ${name}_data: array<atomic<u32>>;`);
      kinds.push("write");
      const call = (what: string) => (index: string, value: string) =>
        `atomic${what}(&${name}_data[${index}], ${value});`;
      return {
        load: (index) => `atomicLoad(&${name}_data[${index}])`,
        store: call("Store"),
        add: call("Add"),
        max: call("Max"),
        or: call("Or"),
      };
    },
    declarations() {
      if (sizes.size === 0) return text.join("\n");
      const fields = [...sizes.keys()].map((name) => `  ${name}: u32,`).join("\n");
      return [
        ...text,
        `struct Sizes {\n${fields}\n}`,
        `@group(0) @binding(${kinds.length}) var<uniform> sizes: Sizes;`,
      ].join("\n");
    },
    bound: () => ({
      tensors: [...tensors],
      bindings: sizes.size === 0 ? [...kinds] : [...kinds, "uniform"],
      features: [...features],
      uniforms: sizes.size === 0 ? undefined : Uint32Array.from(sizes.values()),
      tooLarge,
    }),
  };
  return builder;
}

/** WGSL of bf16, of which words have two: the upper halves of f32's bits, to the nearest, of two the even one. */
const BF16_TEXT = `\
fn from_bf16(word: u32, i: u32) -> f32 {
  return bitcast<f32>((word << (~(i << 4u) & 16u)) & 0xffff0000u);
}
fn from_bf16x4(words: vec2u) -> vec4f {
  return bitcast<vec4f>(vec4u(words.x << 16u, words.x & 0xffff0000u, words.y << 16u, words.y & 0xffff0000u));
}
fn to_bf16(value: f32) -> u32 {
  let bits = bitcast<u32>(value);
  let is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return select(bits + 0x7fffu + ((bits >> 16u) & 1u), bits | 0x400000u, is_nan) >> 16u;
}
fn to_bf16x4(values: vec4f) -> vec2u {
  return vec2u(
    to_bf16(values.x) | (to_bf16(values.y) << 16u),
    to_bf16(values.z) | (to_bf16(values.w) << 16u),
  );
}`;

/**
 * What values are in memory, and how they get out of it and back; `given` is what functions give and take that find an element of
 * several bindings, or a part of a word.
 */
function formOf(element: Stored, vector: 1 | 4, value: Scalar) {
  const call = (name: string) => (text: string) => `${name}(${text})`;
  const same = (text: string) => text;
  if (element === "bf16") {
    return vector === 1
      ? { type: "u32", given: "f32", loaded: same, stored: same }
      : { type: "vec2u", given: "vec2u", loaded: call("from_bf16x4"), stored: call("to_bf16x4") };
  }
  if (element === "i8") {
    const whole = vector === 4 && value !== "i8";
    return {
      type: "u32",
      given: vector === 1 ? value : "u32",
      loaded: whole ? call("unpack4xI8") : same,
      stored: whole ? call("pack4xI8") : same,
    };
  }
  const type = vector === 4 ? `vec4<${element}>` : element;
  return element === value
    ? { type, given: type, loaded: same, stored: same }
    : { type, given: type, loaded: call(typeName(value, vector)), stored: call(type) };
}

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

/** Enters a kernel's name where tensors take several bindings. */
export function splitTrait(...splits: readonly TensorSplit[]): string {
  return splits.every((split) => split.parts === 1)
    ? ""
    : `_parts${splits.map((split) => `${split.parts}x${split.partBytes}`).join("_")}`;
}
