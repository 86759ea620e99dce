import type { HighRounding } from "../problem/split_rounding.ts";
import { type ModuleBuilder, WHOLE } from "./module.ts";
import {
  darkText,
  markPlaces,
  sizeBits,
  SPLIT_FACTOR,
  splitHalvesText,
  type SplitMarks,
} from "./split_marks.ts";
import type { MatrixStack } from "./winograd_tiles.ts";

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

/** Threads of a workgroup that has all channels of its tiles, given those of a tile. */
export function wholeTiles(channels: number, threads: number): number {
  return channels * Math.max(1, Math.floor(threads / channels));
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
