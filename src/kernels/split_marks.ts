import { type HighRounding, SPLIT_ROUNDING } from "../problem/split_rounding.ts";
import { type ModuleBuilder, WHOLE } from "./module.ts";
import { eachElement, type SizedKernel, textKernel } from "./sized_kernel.ts";
import type { MatrixStack } from "./winograd_tiles.ts";

/**
 * Transformed f32 in two halves each (`SPLIT_ROUNDING`): patches are multiplied by the power of two that brings the largest value of
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
export function clearMarksKernel(module: ModuleBuilder, words: number): SizedKernel {
  const marks = module.atomics("marks");
  const wgsl = [eachElement(module.size("words", words)), `  ${marks.store("i", "0u")}`, "}"];
  return textKernel(module, "split_clear", "clears marks.", wgsl, {
    workgroups: Math.ceil(words / 256),
  });
}

/** WGSL of what is added to an f32's bits before those behind the first 11 are cut off. */
export const HIGH_ROUNDING: Readonly<Record<HighRounding, string>> = {
  nearest: "0x1000u",
  away: "0x1fffu",
};

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
export function splitHalvesText(rounding: HighRounding): string {
  return `
// 11 bits, rounded, by whole numbers, since compilers take x - f32(f16(x)) for 0. What they leave has 13 bits and a sign, of which the
// low half keeps 11.
fn halves_of(x: f32) -> u32 {
  let high = bitcast<f32>((bitcast<u32>(x) + ${HIGH_ROUNDING[rounding]}) & 0xffffe000u);
  return bitcast<u32>(vec2<f16>(f16(high), f16(x - high)));
}
// A word of two neighbours' high halves, or of their low ones.
fn halves_pair(first: u32, second: u32, low: bool) -> u32 {
  return select((first & 0xffffu) | (second << 16u), (first >> 16u) | (second & 0xffff0000u), low);
}
`;
}

/** WGSL that takes results back to their size, and says which halves do not hold. */
export const SPLIT_RESULTS = `
fn beyond_halves(bits: u32) -> bool {
  let exponent = bits >> 23u;
  return exponent >= ${BEYOND}u || (bits != 0u && exponent < ${LEAST}u);
}
fn split_exponent(bits: u32) -> i32 {
  return select(i32(bits >> 23u) - ${127 + TOP}, 0, bits == 0u || beyond_halves(bits));
}
// A normal number.
fn power_of_two(exponent: i32) -> f32 {
  return bitcast<f32>(u32(exponent + 127) << 23u);
}
`;

/** WGSL of what results are multiplied by, given `drift`, which `splitDrift()` says. */
export const DRIFT_FACTOR = "(1.0f + f32(drift) * 0x1p-23f)";

/**
 * WGSL of whether results may be off by more than 6 u of what sums of the products that they are made of come to, which is about what
 * rounding these sums to f32 makes of them: n dark patches, each value rounded by 1.5·2^-25 at most and multiplied by up to 2^15,
 * change a result by up to 1.5·n·2^-10 times what a row of the output's transform enlarges.
 *
 * @param dark What its patches are counted as, an f32.
 * @param spread The largest sum of products, times the largest factor that a result has it with.
 * @param enlarged The largest L1 norm of a row of the output's transform.
 */
export function needsFp32Recompute(dark: string, spread: string, enlarged: number): string {
  return `${dark} > 0.0f && ${spread} < ${dark} * ${Math.fround(ENOUGH / 2 * enlarged / WEIGHT)}f`;
}

/** How transforms are stored as two halves each: along the depth so many high ones are followed by as many low ones. */
export interface SplitStore {
  /** By tile, the kernel finds them itself; else they are there. */
  readonly marks: SplitMarks;
  /** The side of the matrices that is the depth of the products. */
  readonly depth: MatrixStack["along"];
  /** Values along the depth of a matrix unit. */
  readonly unitDepth: number;
  readonly rounding: HighRounding;
}

/** What a kernel of one thread a patch says where it stores halves. */
export interface SplitPatches {
  readonly trait: string;
  readonly declarations: string;
  readonly bytes: number;
  /** Before the patch is loaded, given that `live` says whether the thread has one. */
  readonly begin: readonly string[];
  /** After some of the patch's values are loaded. */
  sized(values: readonly string[]): string[];
  /** After all are: declares the \`factor\` that they, partly transformed, are multiplied by. */
  readonly scale: readonly string[];
  /** Of a transformed value, `word{which}`. */
  word(which: number, value: string): string;
  readonly end: readonly string[];
}

/** WGSL of what the first of two neighbours stores, their high halves, and the second, their low ones. */
const PAIRED = `
fn paired(halves: u32, odd: bool) -> u32 {
  let other = subgroupShuffleXor(halves, 1u);
  return select(halves_pair(halves, other, false), halves_pair(other, halves, true), odd);
}
`;

/** What the kernel of a stack's patches says. Binds `marks`. */
export function splitPatches(
  module: ModuleBuilder,
  stack: MatrixStack,
  { marks, depth, unitDepth, rounding }: SplitStore,
  tileThreads: { readonly channels: number; readonly workgroup: number },
): SplitPatches {
  const place = splitPlace(module, stack, depth, unitDepth);
  const { key, row } = markPlaces(module, "split", marks, "channel");
  const common = {
    sized: (values: readonly string[]) =>
      values.map((value) => `largest = max(largest, ${sizeBits(value)});`),
    word: (which: number, value: string) => `let word${which} = paired(halves_of(${value}), odd);`,
    trait: `halves${unitDepth}_${depth}_${rounding}_${marks.by}`,
    declarations: SPLIT_FACTOR + splitHalvesText(rounding) + PAIRED,
  };
  if (marks.by !== "tile") {
    const words = module.atomics("marks");
    return {
      ...common,
      bytes: 0,
      // Threads beyond the last read some key.
      begin: [...place, `let bits = ${words.load(key)};`, "var largest = 0u;"],
      scale: FACTOR,
      end: [
        `let dark = ${darkText("largest", "bits")};`,
        `if (live && dark > 0u) { ${words.add(row, "dark")} }`,
      ],
    };
  }
  const { channels, workgroup } = tileThreads;
  const tiles = workgroup / channels;
  const words = module.tensor("marks", "write", 1, WHOLE, "u32");
  return {
    ...common,
    trait: `${common.trait}${channels}`,
    declarations: [
      common.declarations,
      `var<workgroup> most: array<atomic<u32>, ${tiles}>;`,
      `var<workgroup> dark: array<atomic<u32>, ${tiles}>;`,
    ].join("\n"),
    bytes: 8 * tiles,
    begin: [
      ...place,
      `let slot = t / ${channels}u;`,
      `if (t < ${tiles}u) { atomicStore(&most[t], 0u); atomicStore(&dark[t], 0u); }`,
      "workgroupBarrier();",
      "var largest = 0u;",
    ],
    scale: [
      "atomicMax(&most[slot], largest);",
      "workgroupBarrier();",
      "let bits = atomicLoad(&most[slot]);",
      ...FACTOR,
      `let weight = ${darkText("largest", "bits")};`,
      "if (weight > 0u) { atomicAdd(&dark[slot], weight); }",
    ],
    end: [
      "workgroupBarrier();",
      `if (live && t % ${channels}u == 0u) {`,
      `  ${words.store(key, "bits")}`,
      `  ${words.store(row, "atomicLoad(&dark[slot])")}`,
      "}",
    ],
  };
}

const FACTOR = ["let factor = split_factor(bits);"];

/** Declares where the first word of a thread goes. */
function splitPlace(
  module: ModuleBuilder,
  { tiles, channels, along }: MatrixStack,
  depth: MatrixStack["along"],
  unitDepth: number,
): string[] {
  const [deep, place] = depth === "tile" ? ["tile", "channel"] : ["channel", "tile"];
  const [padded, places] = depth === "tile" ? [tiles, channels] : [channels, tiles];
  const row = `${deep} / ${unitDepth}u * ${2 * unitDepth}u + ${deep} % ${unitDepth}u`;
  const [first, low] = along === depth
    ? [`${place} * ${module.size("split_row", 2 * padded)} + ${row}`, `${unitDepth}u`]
    : [
      `(${row}) * ${module.size("split_row", places)} + ${place}`,
      module.size("split_low", unitDepth * places),
    ];
  return [
    `let half = ${first} + select(0u, ${low} - 1u, odd);`,
    `let word = group * ${module.size("matrix", tiles * channels)} + half / 2u;`,
  ];
}
