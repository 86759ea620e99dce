import { range } from "./lists.ts";
import type { BindingKind } from "./kernel.ts";
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

/** Enters a kernel's name where tensors take several bindings. */
export function splitTrait(...splits: readonly TensorSplit[]): string {
  return splits.every((split) => split.parts === 1)
    ? ""
    : `_parts${splits.map((split) => `${split.parts}x${split.partBytes}`).join("_")}`;
}
