import assert from "#assert";
import { eachSum } from "../loop/thread_products.ts";
import { threadPlace } from "../loop/threads.ts";
import { type Exchange, sumExchange } from "./exchange.ts";
import { parseSlicePolicy, sliceGrid, type SlicePolicy, sliceThreads } from "./policy.ts";
import { type SliceOperands, sliceThreadGrid } from "./tile.ts";

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

function exchangeOf(policy: SlicePolicy, operands: SliceOperands): Exchange {
  return sumExchange(operands, policy, eachSum(policy, (row, j) => `c_${row}_${j}`));
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

/** What each thread of a slice stores in a round, in order: an element, and the sum. */
function storesOf(
  policy: SlicePolicy,
  operands: SliceOperands,
  stores: string,
): [string, string][][] {
  const grid = sliceThreadGrid(policy, operands);
  const body = script([threadPlace(grid, "u", "t"), stores].join("\n"))
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

/** Where every position of a round lies in the result, and the element that it loads. */
function loadsOf({ positions, load }: Exchange, place: string) {
  const read = new Function(
    "position",
    "first_row",
    "first_column",
    script(`${place}\nreturn [${elementText(load(0))}, row, column];`),
  );
  return Array.from(
    { length: positions },
    (_, position): [string, bigint, bigint] => read(BigInt(position), 0n, 0n),
  );
}

/** Where the threads of a slice lie on its grid, column and row. */
function threadPlaces(policy: SlicePolicy, operands: SliceOperands): [number, number][] {
  const text = script(threadPlace(sliceThreadGrid(policy, operands), "u", "t"));
  const read = new Function("u", `${text}\nreturn [tx, ty];`);
  return Array.from({ length: sliceThreads(policy) }, (_, u) => read(BigInt(u)).map(Number));
}

Deno.test("each sum is handed over once, to where it lies in the result", () => {
  for (const operands of OPERANDS) {
    for (const name of POLICIES) {
      const policy = parseSlicePolicy(name)!;
      const { rows, columns } = sliceGrid(policy);
      const places = threadPlaces(policy, operands);
      const exchange = exchangeOf(policy, operands);
      const seen = new Set<string>();
      for (const { stores, place } of exchange.rounds) {
        const memory = new Map<string, string>();
        storesOf(policy, operands, stores).forEach((all, u) => {
          for (const [element, sum] of all) {
            assert.ok(!memory.has(element), `${name}: ${element} is stored twice`);
            memory.set(element, `${u} ${sum}`);
          }
        });
        const loads = loadsOf(exchange, place);
        for (const [element, row, column] of loads) {
          const [, u, of, j] = /^(\d+) c_(\d+)_(\d+)$/.exec(memory.get(element)!)!.map(Number);
          const [x, y] = places[u!]!;
          assert.equal(Number(row), (y + Math.floor(of! / 4) * rows) * 4 + of! % 4);
          assert.equal(Number(column), (x + j! * columns) * 4);
          seen.add(`${row} ${column}`);
        }
        assert.equal(loads.length, memory.size);
      }
      assert.equal(seen.size, policy.rows * policy.columns / 4, name);
    }
  }
});
