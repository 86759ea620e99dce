import template from "../../shaders/split_maxima.wgsl" with { type: "text" };
import {
  loopIterations,
  moduleBuilder,
  render,
  type SizedKernel,
  sizedKernel,
  type SizeMode,
  splitTrait,
  type TensorSplit,
} from "./module.ts";

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
  /** Words that say how fine the values of each key are, where that is wanted: see {@linkcode FINE_BASE}. */
  readonly firstFine?: number | undefined;
}

/** How fine a value is: this less its exponent, as f32 has it biased, and less the zeros behind its last bit that is set; 0 of zero. */
export const FINE_BASE = 300;

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
  const { firstKey, firstFine, keys: [...named] } = shape;
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
  }${firstFine === undefined ? "" : "_fine"}${splitTrait(tensor)}`;
  const of = (value: string) => [..."xyzw"].map((one) => `${value}.${one}`);
  const found = (all: string, own: string) =>
    vector === 1
      ? [`atomicMax(&${all}[near], ${own});`]
      : near
      ? of(own).map((value, k) => `atomicMax(&${all}[4u * near + ${k}u], ${value});`)
      : [
        `atomicMax(&${all}[0], max(max(${of(own).slice(0, 2).join(", ")}), max(${
          of(own).slice(2).join(", ")
        })));`,
      ];
  const most = (first: string, word: number, all: string) =>
    marks.max(
      `${module.size(first, word)} + outer * ${count} + key`,
      `atomicLoad(&${all}[t])`,
    );
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
    found: [
      ...found("most", "top"),
      ...(firstFine === undefined ? [] : found("finest", "fine")),
    ],
    most: most("first_key", firstKey, "most"),
    finest: firstFine === undefined ? "" : most("first_fine", firstFine, "finest"),
    fineBase: FINE_BASE,
    declarations: module.declarations(),
  });
  const bytes = (firstFine === undefined ? 4 : 8) * slots;
  return sizedKernel(name, mode, wgsl, module, [256, 1, 1], bytes, loopIterations(LOADS / 4));
}
