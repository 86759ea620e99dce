import template from "../../shaders/split_maxima.wgsl" with { type: "text" };
import { SPLIT_ROUNDING } from "../problem/split_rounding.ts";
import {
  eachElement,
  loopIterations,
  type ModuleBuilder,
  moduleBuilder,
  render,
  type SizedKernel,
  sizedKernel,
  type SizeMode,
  splitTrait,
  type TensorSplit,
} from "./module.ts";

/**
 * Transformed f32 in two halves each (docs/accuracy.md): patches are multiplied by the power of two that brings the largest value of
 * their key, an image, a tile or a channel, to between 2^14 and 2^15. Transforms whose rows have an L1 norm of 1 at most enlarge nothing, so
 * f16 holds what they make of it. A patch is dark where its own largest value is below 2^-16 of that: halves then hold less of it than
 * f32 does. How many of a row of the products are so is counted, and what they may make of a result is weighed by the output's transform.
 */
const { top: TOP, smallBits, lightBits, lightest, enough: ENOUGH, least, most } = SPLIT_ROUNDING;
/** Exponents of an f32's bits between which the largest value of a key is. */
const [LEAST, BEYOND] = [least + 127, most + 128];
/** What a dark patch counts as; one that is rounded to nothing counts as 1. */
const WEIGHT = 1 / lightest;

/** Words that are kept of an operand: the largest value of each key, then the number of dark patches of each row of the products. */
export interface SplitMarks {
  /** What has a largest value: an image, of which each tile is a row, a tile by itself, or a row that is a channel. */
  readonly by: "image" | "tile" | "row";
  /** Words before the largest values. */
  readonly firstKey: number;
  /** Words before the numbers of dark patches. */
  readonly firstRow: number;
  /** Rows of a group. */
  readonly rows: number;
  /** Images, and tiles of a group, in chunks before this one. */
  readonly before: { readonly images: number; readonly tiles: number };
}

/**
 * WGSL of where a thread's patch has its marks, by `group`, and `image` and `tile` where that is what they are by.
 *
 * @param row WGSL of the row of the group, where marks are by rows.
 */
export function markPlaces(
  module: ModuleBuilder,
  name: string,
  { by, firstKey, firstRow, rows, before }: SplitMarks,
  row: string,
): { key: string; row: string } {
  const key = module.size(`${name}_first_key`, firstKey);
  const first = `${module.size(`${name}_first_row`, firstRow)} + group * ${
    module.size(`${name}_rows`, rows)
  }`;
  if (by === "row") {
    return {
      key: `${key} + group * ${module.size(`${name}_rows`, rows)} + ${row}`,
      row: `${first} + ${row}`,
    };
  }
  const said = (what: "images" | "tiles") =>
    module.parameter(`${name}_${what}_before`, before[what]);
  const tile = `tile + ${said("tiles")}`;
  return {
    key: by === "image"
      ? `${key} + image + ${said("images")}`
      : `${key} + group * ${module.size(`${name}_rows`, rows)} + ${tile}`,
    row: `${first} + ${tile}`,
  };
}

/** Clears marks. Binds `marks`. */
export function clearMarksKernel(words: number, mode: SizeMode): SizedKernel {
  const module = moduleBuilder(mode);
  const marks = module.atomics("marks");
  const body = eachElement(module.size("words", words));
  const wgsl = `${module.declarations()}\n\n${body}\n  ${marks.store("i", "0u")}\n}\n`;
  return sizedKernel("split_clear", mode, wgsl, module, [256, 1, 1], 0);
}

/** Workgroups of a {@linkcode clearMarksKernel}. */
export function clearMarksWorkgroups(words: number): number {
  return Math.ceil(words / 256);
}

/** A side of a tensor. */
export interface Extent {
  readonly count: number;
  readonly stride: number;
}

/** A tensor whose largest values are wanted, one of each combination of `keys`, outermost first, among all of `rest`. */
export interface SplitMaxima {
  readonly keys: readonly Extent[];
  readonly rest: readonly Extent[];
  readonly firstKey: number;
}

/** Loads of a thread. */
const LOADS = 16;
/** Keys that lie beside each other and have a workgroup in common. */
const NEAR = 32;

/** How a kernel goes over a tensor, in vectors of four where all that it steps over is whole ones. */
function maximaWalk({ keys, rest }: SplitMaxima) {
  const merged = mergedExtents(rest);
  const innermost = merged.at(-1)!;
  const last = keys.at(-1)!;
  const near = last.stride < innermost.stride;
  const along = near ? last : innermost;
  const others = [...keys, ...merged].filter((side) => side !== along && side.count > 1);
  const whole = along.stride === 1 && along.count % 4 === 0 &&
    others.every(({ stride }) => stride % 4 === 0);
  const vector = whole ? 4 : 1;
  const inVectors = (side: Extent) =>
    side === along
      ? { ...side, count: side.count / vector }
      : { ...side, stride: side.count > 1 ? side.stride / vector : 0 };
  const count = (sides: readonly Extent[]) => sides.reduce((all, one) => all * one.count, 1);
  const slots = near ? NEAR : 1;
  const lanes = 256 * (near ? vector : 1) / slots;
  const portion = lanes * LOADS;
  const sides = merged.map(inVectors);
  const blocks = Math.ceil(last.count / slots);
  const portions = Math.ceil(count(sides) / portion);
  return {
    ...{ vector, near, slots, lanes, portion, sides, blocks, portions } as const,
    keys: keys.map(inVectors),
    values: count(sides),
    workgroups: count(keys.slice(0, -1)) * blocks * portions,
  };
}

/** Sides in the order in which they lie, the innermost last, those that follow each other as one. */
function mergedExtents(sides: readonly Extent[]): readonly Extent[] {
  const sorted = sides.filter(({ count }) => count > 1).toSorted((a, b) => b.stride - a.stride);
  return sorted.reduce<Extent[]>((merged, side) => {
    const outer = merged.at(-1);
    if (outer === undefined || outer.stride !== side.stride * side.count) return [...merged, side];
    return [...merged.slice(0, -1), { count: outer.count * side.count, stride: side.stride }];
  }, sorted.length === 0 ? [{ count: 1, stride: 1 }] : []);
}

/** Workgroups of a {@linkcode splitMaximaKernel}; none where there are no values. */
export function splitMaximaWorkgroups(shape: SplitMaxima): number {
  return [...shape.keys, ...shape.rest].some(({ count }) => count === 0)
    ? 0
    : maximaWalk(shape).workgroups;
}

/** Finds the largest value of each key of a tensor. Binds `tensor` and `marks`, which are cleared. */
export function splitMaximaKernel(
  shape: SplitMaxima,
  mode: SizeMode,
  tensor: TensorSplit,
): SizedKernel {
  const { firstKey, keys: [...named] } = shape;
  const { vector, near, slots, lanes, portion, sides, keys, ...walk } = maximaWalk(shape);
  const module = moduleBuilder(mode);
  const from = module.tensor("tensor", "read", vector, tensor);
  const marks = module.atomics("marks");
  const place = sides.map(({ stride, count }, d) => {
    const within = sides.slice(d + 1).reduce((all, side) => all * side.count, 1);
    const index = `e / ${module.size(`rest_within${d}`, within)}`;
    const digit = d === 0 ? index : `(${index}) % ${module.size(`rest_count${d}`, count)}`;
    return `(${digit}) * ${module.size(`rest_stride${d}`, stride)}`;
  });
  const outer = keys.length > 1 ? keys[0]! : { count: 1, stride: 0 };
  const last = keys.at(-1)!;
  const count = module.size("keys", named.at(-1)!.count);
  const name = `split_maxima_${near ? "near" : "runs"}_${sides.length}d${
    vector === 4 ? "_x4" : ""
  }${splitTrait(tensor)}`;
  const of = (value: string) => [..."xyzw"].map((one) => `${value}.${one}`);
  const found = vector === 1
    ? ["atomicMax(&most[near], top);"]
    : near
    ? of("top").map((value, k) => `atomicMax(&most[4u * near + ${k}u], ${value});`)
    : [
      `atomicMax(&most[0], max(max(${of("top").slice(0, 2).join(", ")}), max(${
        of("top").slice(2).join(", ")
      })));`,
    ];
  const wgsl = render(template, {
    name,
    slots,
    lanes,
    portion,
    bits: vector === 4 ? "vec4<u32>" : "u32",
    place: place.join(" + "),
    workgroups: module.size("workgroups", walk.workgroups),
    portions: module.size("portions", walk.portions),
    rest: module.size("rest", walk.values),
    blocks: module.size("blocks", walk.blocks),
    near: 256 / lanes,
    keys: count,
    base: `outer * ${module.size("outer_stride", outer.stride)} + min(block % ${
      module.size("blocks", walk.blocks)
    } * ${256 / lanes}u + near, ${module.size("key_vectors", last.count)} - 1u) * ${
      module.size("key_stride", last.stride)
    }`,
    load: from.load,
    found: found.join(" "),
    most: marks.max(
      `${module.size("first_key", firstKey)} + outer * ${count} + key`,
      "atomicLoad(&most[t])",
    ),
    declarations: module.declarations(),
  });
  return sizedKernel(name, mode, wgsl, module, [256, 1, 1], 4 * slots, loopIterations(LOADS / 4));
}

/** WGSL of what patches of a key are multiplied by, given the bits of its largest value. */
export const SPLIT_FACTOR = `
// The power of two that brings the largest value to between 2^${TOP} and 2^${
  TOP + 1
}; 1 where that is none, or beyond what is split.
fn split_factor(bits: u32) -> f32 {
  let exponent = bits >> 23u;
  let scaled = bitcast<f32>((${254 + TOP}u - exponent) << 23u);
  return select(1.0f, scaled, exponent >= ${LEAST}u && exponent < ${BEYOND}u);
}
`;

/**
 * WGSL of what a patch is counted as in its row, 0 but where it is dark, given the bits of its largest value and of its key's: what it
 * is multiplied to may be nothing.
 */
export function darkText(largest: string, bits: string): string {
  const below = (count: number) => `(${largest} >> 23u) + ${count}u < (${bits} >> 23u)`;
  return `select(select(0u, ${WEIGHT}u, ${below(smallBits)}), 1u, ${below(lightBits)}) * ` +
    `u32(${largest} != 0u)`;
}

/** WGSL of the bits of a value's size, of which those of infinities and NaN are largest. */
export function sizeBits(value: string): string {
  return `(bitcast<u32>(${value}) & 0x7fffffffu)`;
}

/** WGSL of an f32 as a high half, in the low bits of a word, and the low one. */
export const SPLIT_HALVES = `
// 11 bits, rounded, by whole numbers, since compilers take x - f32(f16(x)) for 0. What they leave has 13 bits and a sign, of which the
// low half keeps 11.
fn halves_of(x: f32) -> u32 {
  let high = bitcast<f32>((bitcast<u32>(x) + 0x1000u) & 0xffffe000u);
  return bitcast<u32>(vec2<f16>(f16(high), f16(x - high)));
}
// A word of two neighbours' high halves, or of their low ones.
fn halves_pair(first: u32, second: u32, low: bool) -> u32 {
  return select((first & 0xffffu) | (second << 16u), (first >> 16u) | (second & 0xffff0000u), low);
}
`;

/** WGSL that takes results back to their size, and says which halves do not hold. */
export const SPLIT_RESULTS = `
fn beyond_halves(bits: u32) -> bool {
  let exponent = bits >> 23u;
  return exponent >= ${BEYOND}u || (bits != 0u && exponent < ${LEAST}u);
}
fn split_exponent(bits: u32) -> i32 {
  return select(i32(bits >> 23u) - ${127 + TOP}, 0, bits == 0u || beyond_halves(bits));
}
fn power_of_two(exponent: i32) -> f32 {
  return bitcast<f32>(u32(exponent + 127) << 23u);
}
`;

/**
 * WGSL of whether results may be off by more than 6 u of what sums of the products that they are made of come to, which is about what
 * rounding these sums to f32 makes of them: n dark patches, each value rounded by 1.5·2^-25 at most and multiplied by up to 2^15,
 * change a result by up to 1.5·n·2^-10 times what a row of the output's transform enlarges.
 *
 * @param dark What its patches are counted as, an f32.
 * @param spread The largest sum of products, times the largest factor that a result has it with.
 * @param enlarged The largest L1 norm of a row of the output's transform.
 */
export function doubtText(dark: string, spread: string, enlarged: number): string {
  return `${dark} > 0.0f && ${spread} < ${dark} * ${Math.fround(ENOUGH / 2 * enlarged / WEIGHT)}f`;
}
