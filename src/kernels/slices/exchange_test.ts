import assert from "#assert";
import type { OutputLayout } from "../variant.ts";
import { eachSum } from "../loop/thread_products.ts";
import { threadPlace } from "../loop/threads.ts";
import { type Exchange, sumExchange } from "./exchange.ts";
import {
  parseSlicePolicy,
  sliceGrid,
  type SlicePolicy,
  sliceThreads,
  sumLinesBytes,
  sumLinesOf,
} from "./policy.ts";
import { type SliceOperands, sliceThreadGrid, sliceTile } from "./tile.ts";

const LAYOUTS = ["threads", "reference", "sts64", "sts64-compact"] as const;
/** One to sixteen threads side by side, in whole warps and not; tiles of two columns of vectors, and of three. */
const POLICIES = [
  "8x8x4_4x4",
  "32x8x4_4x8",
  "16x16x4_4x4",
  "16x32x4_8x16",
  "16x24x4_4x8",
  "64x32x8_8x16",
  "32x64x8_8x16",
  "64x32x8_8x8",
  "64x64x8_8x8",
  "32x128x16_4x8",
  "128x32x8_8x8",
  "40x64x4_8x8",
  "40x32x4_8x4",
  "16x48x4_4x4",
  "96x128x2_16x8",
];

/** Operands of fused Winograd, with rows copied by turns or exchanged, and of WinRS, whose threads do not lie in pairs. */
const OPERANDS: readonly SliceOperands[] = [
  { slices: 4, scalar: "f32", across: [], copied: "a" },
  { slices: 4, scalar: "f32", across: ["a"], copied: "b" },
  { slices: 4, scalar: "f32", across: [] },
];

function exchangeOf(
  policy: SlicePolicy,
  outputLayout: OutputLayout,
  operands: SliceOperands,
): Exchange {
  const names = eachSum(policy, (row, j) => `c_${row}_${j}`);
  return sumExchange({ ...operands, outputLayout }, policy, names);
}

/** WGSL as JavaScript: whole numbers are BigInt, which divides as u32 does. */
function script(text: string): string {
  return text.replace(/\blet\b/g, "const").replace(/\b(\d+)u\b/g, "$1n");
}

/** An element of workgroup memory, `[2][3]`, as `2 3`. */
const ELEMENT = /^(?:tile\[0\]|sums)\[\w+\]((?:\[.*\])+)$/;
function elementText(access: string): string {
  const [, indexes] = ELEMENT.exec(access)!;
  return `[${indexes!.slice(1, -1).split("][").join(", ")}].join(" ")`;
}

/** Where an element of those dimensions, the outer one first, lies. */
function placeOf(element: string, dimensions: readonly number[]): number {
  return element.split(" ").map(Number).reduce(
    (at, index, i) => at * (dimensions[i] ?? 1) + index,
    0,
  );
}

/** The dimensions of a slice of the tile. */
function tileDimensions(policy: SlicePolicy, operands: SliceOperands): number[] {
  const sizes = [...sliceTile(policy, operands).type.matchAll(/, (\d+)>/g)].map(([, size]) =>
    Number(size)
  );
  return sizes.toReversed().slice(2);
}

/** What each thread of a slice stores in a round, in order: an element, and the sum or part of it. */
function storesOf(
  policy: SlicePolicy,
  operands: SliceOperands,
  begin: string,
  stores: string,
): [string, string][][] {
  const grid = sliceThreadGrid(policy, operands);
  const body = script([threadPlace(grid, "u", "t"), begin, stores].join("\n"))
    .replace(
      /^\s*(\S.*\]) = (\S+);$/gm,
      (_, access: string, sum: string) => `into.push([${elementText(access)}, "${sum}"]);`,
    );
  const store = new Function("u", "into", body);
  return Array.from({ length: sliceThreads(policy) }, (_, u) => {
    const into: [string, string][] = [];
    store(BigInt(u), into);
    return into;
  });
}

/** Where every position of a round lies in the result, and the elements that it loads. */
function loadsOf({ positions, load }: Exchange, place: string) {
  const loaded = /^vec4f\((.*), (sums.*)\)$/.exec(load(0))?.slice(1) ?? [load(0)];
  const read = new Function(
    "position",
    "first_row",
    "first_column",
    script(`${place}\nreturn [[${loaded.map(elementText).join(", ")}], row, column];`),
  );
  return Array.from(
    { length: positions },
    (_, position): [string[], bigint, bigint] => read(BigInt(position), 0n, 0n),
  );
}

/** Where the threads of a slice lie on its grid, column and row. */
function threadPlaces(policy: SlicePolicy, operands: SliceOperands): [number, number][] {
  const text = script(threadPlace(sliceThreadGrid(policy, operands), "u", "t"));
  const read = new Function("u", `${text}\nreturn [tx, ty];`);
  return Array.from({ length: sliceThreads(policy) }, (_, u) => read(BigInt(u)).map(Number));
}

Deno.test("every layout hands each sum over once, to where it lies in the result", () => {
  for (const operands of OPERANDS) {
    for (const name of POLICIES) {
      const policy = parseSlicePolicy(name)!;
      const { rows, columns } = sliceGrid(policy);
      const places = threadPlaces(policy, operands);
      // Lines are of pairs of rows of threads.
      for (const layout of rows % 2 === 0 ? LAYOUTS : ["threads"] as const) {
        const exchange = exchangeOf(policy, layout, operands);
        const seen = new Set<string>();
        for (const { stores, place } of exchange.rounds) {
          const memory = new Map<string, string>();
          storesOf(policy, operands, exchange.begin, stores).forEach((all, u) => {
            for (const [element, sum] of all) {
              assert.ok(!memory.has(element), `${name} ${layout}: ${element} is stored twice`);
              memory.set(element, `${u} ${sum}`);
            }
          });
          let loaded = 0;
          for (const [elements, row, column] of loadsOf(exchange, place)) {
            loaded += elements.length;
            const found = elements.map((element) => memory.get(element) ?? "nothing");
            const [, u, of, j] = /^(\d+) c_(\d+)_(\d+)/.exec(found[0]!)!.map(Number);
            const parts = elements.length === 1 ? [""] : [".xy", ".zw"];
            assert.deepEqual(found, parts.map((part) => `${u} c_${of}_${j}${part}`));
            const [x, y] = places[u!]!;
            assert.equal(Number(row), (y + Math.floor(of! / 4) * rows) * 4 + of! % 4);
            assert.equal(Number(column), (x + j! * columns) * 4);
            seen.add(`${row} ${column}`);
          }
          assert.equal(loaded, memory.size);
        }
        assert.equal(seen.size, policy.rows * policy.columns / 4, `${name} ${layout}`);
      }
    }
  }
});

/** Lanes whose stores of 16 bytes, and of 8, the 32 banks take at once. */
const LANES = { reference: 8, pairs: 16 };

Deno.test("neighbouring threads store to different banks; half of each warp rests in the reference alone", () => {
  const operands = OPERANDS[0]!;
  // A slice is half a warp at least, and threads side by side are a power of two, as in the papers' kernels.
  for (const name of POLICIES) {
    const policy = parseSlicePolicy(name)!;
    const side = sliceGrid(policy).columns;
    if (sliceThreads(policy) % 16 !== 0 || !Number.isInteger(Math.log2(side))) continue;
    for (const layout of ["reference", "sts64", "sts64-compact"] as const) {
      const { begin, rounds } = exchangeOf(policy, layout, operands);
      const reference = layout === "reference";
      // Halves of lines that are shorter than the banks find no free ones by turning.
      if (layout === "sts64-compact" && policy.columns < 32) continue;
      const lanes = LANES[reference ? "reference" : "pairs"];
      const dimensions = reference ? tileDimensions(policy, operands) : [];
      for (const { stores } of rounds) {
        const all = storesOf(policy, operands, begin, stores);
        const storing = all.filter((of) => of.length > 0);
        assert.equal(storing.length, reference ? all.length / 2 : all.length);
        for (let first = 0; first < all.length; first += 16) {
          const active = all.slice(first, first + 16).filter((of) => of.length > 0);
          assert.equal(active.length, reference ? 8 : 16);
          for (let store = 0; store < active[0]!.length; store++) {
            const banks = new Set(active.map((of) => placeOf(of[store]![0], dimensions) % lanes));
            assert.equal(banks.size, active.length, `${name} ${layout}`);
          }
        }
      }
    }
  }
});

Deno.test("the reference pads rows as openCNN does, STS64 lines, and compact ones not at all", () => {
  // 32 columns, two threads side by side: rows of 32 + 8 numbers, 40 KB for 32 (openCNN, section 3).
  const paper = parseSlicePolicy("64x32x8_8x16")!;
  const lines = (layout: "reference" | "sts64" | "sts64-compact", policy = paper) =>
    sumLinesOf(policy, layout)!;
  assert.deepEqual([lines("reference").width, lines("reference").stride], [8, 10]);
  assert.deepEqual([lines("sts64").width, lines("sts64").stride, lines("sts64").turn], [32, 36, 0]);
  const compact = lines("sts64-compact");
  assert.deepEqual([compact.stride, compact.turn], [32, 4]);
  // Eight threads side by side fill the banks without padding.
  const wide = parseSlicePolicy("64x64x8_8x8")!;
  assert.deepEqual(lines("sts64", wide), lines("sts64-compact", wide));
  // No more than half of the tile, which has 8 rows of 24 vectors; without padding more fits.
  assert.equal(sumLinesBytes(paper, "threads") + sumLinesBytes(paper, "reference"), 0);
  const bytes = (["sts64", "sts64-compact"] as const).map((one) => sumLinesBytes(paper, one));
  assert.deepEqual(bytes, [8 * (3 * 36 + 32), 8 * 4 * 32]);
  assert.ok(bytes.every((one) => one <= 16 * 8 * 24 / 2));
});

Deno.test("layouts of lines are for pairs of rows of threads, and the reference for tiles that hold a row of each thread", () => {
  const lines = (name: string, layout: "reference" | "sts64") =>
    sumLinesOf(parseSlicePolicy(name)!, layout);
  for (const layout of ["reference", "sts64"] as const) {
    assert.equal(lines("8x8x4_8x4", layout), undefined);
    assert.equal(lines("48x16x4_16x4", layout), undefined);
  }
  assert.equal(lines("64x64x1_4x4", "reference"), undefined);
  assert.equal(lines("64x64x1_4x4", "sts64")?.rows, 1);
});
