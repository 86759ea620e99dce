import assert from "#assert";
import { threadPlace } from "../loop/threads.ts";
import {
  isSwizzled,
  parseSlicePolicy,
  sliceGrid,
  type SlicePolicy,
  sliceRowVectors,
  sliceThreads,
} from "./policy.ts";
import { type Side, type SliceOperands, sliceThreadGrid, sliceTile } from "./tile.ts";

/** Rows that are padded, exchanged in parts (squares of threads and not) and one by one, copied at once and in turns. */
const POLICIES = [
  "64x64x8_8x16",
  "64x64x8_8x8",
  "32x64x8_8x16",
  "32x64x8_8x8",
  "32x48x8_8x12",
  "32x48x8_8x4",
  "96x32x8_32x8",
  "32x32x8_32x8",
  "64x32x8_8x16",
  "128x32x6_8x8",
  "16x24x4_4x8",
  "40x64x4_8x8",
  "48x24x4_4x8",
];

const OPERANDS = (["a", "b", undefined] as const).flatMap((copied) =>
  ([[], ["a"], ["b"], ["a", "b"]] as const).flatMap((across) =>
    [false, true].map((parted): SliceOperands => ({
      slices: 4,
      across,
      scalar: "f32",
      parted,
      ...(copied === undefined ? {} : { copied }),
    }))
  )
);

/** Indices of a text, `[2][t / 2u]`, as numbers; whole numbers are BigInt, which divides as u32 does. */
function indices(text: string, names: Readonly<Record<string, number>> = {}): number[] {
  const words = text.replaceAll(/\b(\d+)u?\b/g, "$1n");
  const read = new Function(
    ...Object.keys(names),
    `return [${words.slice(1, -1).split("][").join(", ")}]`,
  );
  return read(...Object.values(names).map(BigInt)).map(Number);
}

/** A tile's dimensions from the buffer on. */
function dimensions(type: string): number[] {
  return [...type.matchAll(/, (\d+)>/g)].map(([, size]) => Number(size)).toReversed();
}

/** `let` declarations, given what they are of. */
function declared(places: string, names: Readonly<Record<string, number>>): Record<string, number> {
  const all: Record<string, number> = { ...names };
  for (const [, name, text] of places.matchAll(/let (\w+) = (.+);/g)) {
    all[name!] = indices(`[${text}]`, all)[0]!;
  }
  return all;
}

Deno.test("on every grid of a slice each thread has a place of its own", () => {
  const sizes = Array.from({ length: 20 }, (_, i) => 4 * (i + 1));
  for (const rows of sizes) {
    for (const columns of sizes) {
      const policy = parseSlicePolicy(`${rows}x${columns}x4_4x4`)!;
      for (const copied of ["a", undefined] as const) {
        const grid = sliceThreadGrid(policy, copied === undefined ? {} : { copied });
        const text = threadPlace(grid, "u", "t").replaceAll("let ", "const ");
        const read = new Function(
          "u",
          `${text.replaceAll(/\b(\d+)u\b/g, "$1n")}\nreturn ty * ${grid.columns}n + tx;`,
        );
        const places = new Set<number>();
        for (let u = 0; u < sliceThreads(policy); u++) places.add(Number(read(BigInt(u))));
        assert.equal(Math.max(...places) + 1, sliceThreads(policy), `${rows} x ${columns}`);
        assert.equal(places.size, sliceThreads(policy), `${rows} x ${columns}`);
      }
    }
  }
});

function each(check: (policy: SlicePolicy, operands: SliceOperands, name: string) => void): void {
  for (const name of POLICIES) {
    for (const operands of OPERANDS) {
      check(parseSlicePolicy(name)!, operands, `${name} ${JSON.stringify(operands)}`);
    }
  }
}

Deno.test("every vector of every row has a place of its own in the tile, whose size is what it takes", () => {
  each((policy, operands, name) => {
    const tile = sliceTile(policy, operands);
    const [one, slices, ...sizes] = dimensions(tile.type);
    assert.deepEqual([one, slices], [1, operands.slices]);
    const vectors = sliceRowVectors(policy, operands.across);
    assert.equal(sizes.reduce((all, size) => all * size, 1), policy.depth * vectors, name);
    const seen = new Set<string>();
    for (let depth = 0; depth < policy.depth; depth++) {
      const row = indices(tile.row(`${depth}`));
      assert.deepEqual(indices(tile.row("depth"), { depth }), row);
      for (let vector = 0; vector < vectors; vector++) {
        const at = [...row, ...indices(tile.vector("of"), { of: vector })];
        assert.equal(at.length, sizes.length, name);
        assert.ok(at.every((index, i) => index < sizes[i]!), `${name}: ${at} of ${sizes}`);
        seen.add(at.join());
      }
    }
    assert.equal(seen.size, policy.depth * vectors, name);
  });
});

Deno.test("rows that go together fill the threads of a slice, and are found by the round and the thread", () => {
  each((policy, operands, name) => {
    const tile = sliceTile(policy, operands);
    const { together: rows } = tile;
    const vectors = (operands.copied === "b" ? policy.columns : policy.rows) / 4;
    assert.ok(rows === 1 || rows * vectors <= sliceThreads(policy), name);
    for (let depth = 0; depth < policy.depth; depth++) {
      const own = depth % rows;
      assert.deepEqual(
        indices(tile.rowOf(depth - own, "own"), { own }),
        indices(tile.row(`${depth}`)),
        name,
      );
    }
  });
  const together = (name: string, copied?: Side) =>
    sliceTile(parseSlicePolicy(name)!, {
      slices: 4,
      across: [],
      scalar: "f32",
      ...(copied === undefined ? {} : { copied }),
    }).together;
  assert.equal(together("64x64x8_8x8", "b"), 4);
  assert.equal(together("64x64x8_8x16", "a"), 2);
  assert.equal(together("64x64x8_8x16"), 1);
  // 64 threads could copy 8 rows of 8 vectors; 6 are all there are.
  assert.equal(together("128x32x6_8x8", "b"), 6);
});

Deno.test("a fragment is its thread's vector, exchanged where the row is, and what is stored lies there", () => {
  each((policy, operands, name) => {
    const tile = sliceTile(policy, operands);
    const { rows, columns } = sliceGrid(policy);
    const swizzled = isSwizzled(policy, operands.across);
    for (const [ty, tx] of [[0, 0], [rows - 1, columns - 1], [rows >> 1, columns >> 1]] as const) {
      const names = declared(tile.places, { ty, tx });
      for (let depth = 0; depth < policy.depth; depth++) {
        for (const side of ["a", "b"] as const) {
          const [own, threads, count, first] = side === "a"
            ? [ty, rows, policy.threadRows / 4, 0]
            : [tx, columns, policy.threadColumns / 4, policy.rows / 4];
          const turn = swizzled && operands.across.includes(side) ? depth % 8 : 0;
          for (let i = 0; i < count; i++) {
            const of = first + ((i * threads + own) ^ turn);
            const lies = indices(tile.vector("of"), { of });
            const what = `${name}: ${side} ${i} of ${depth}`;
            assert.deepEqual(indices(tile.fragment(side, i, depth), names), lies, what);
            const local = { local: i * threads + own, depth };
            assert.deepEqual(indices(tile.stored(side, "local", "depth"), local), lies, what);
            assert.equal(tile.first[side], first);
          }
        }
      }
    }
  });
});

Deno.test("exchanged rows are found by as many addresses as a thread has turns", () => {
  const policy = parseSlicePolicy("32x64x8_8x16")!;
  const tile = sliceTile(policy, { slices: 16, across: ["a"], scalar: "f32", copied: "b" });
  const threads = new Set<string>();
  for (let depth = 0; depth < 8; depth++) {
    for (const [side, count] of [["a", 2], ["b", 4]] as const) {
      for (let i = 0; i < count; i++) {
        const [, part, thread] = /^\[(\d+)\]\[(\w+)\]$/.exec(tile.fragment(side, i, depth))!;
        assert.ok(Number(part) < 6);
        threads.add(thread!);
      }
    }
  }
  assert.deepEqual([...threads].sort(), ["tx", "ty", "ty_1", "ty_2", "ty_3"]);
});

Deno.test("rows in parts that are asked for have an address of each operand, and none where threads do not fill them", () => {
  const operands = { slices: 8, across: [], scalar: "f32" } as const;
  const addresses = (name: string, parted: boolean) => {
    const tile = sliceTile(parseSlicePolicy(name)!, { ...operands, parted });
    const of = (side: Side, count: number) =>
      Array.from({ length: count }, (_, i) => tile.fragment(side, i, 0));
    return [...of("a", 2), ...of("b", 4)];
  };
  const parts = addresses("64x64x8_8x16", true);
  assert.equal(new Set(parts.map((text) => text.replaceAll(/\[\d+\]/g, ""))).size, 2);
  assert.equal(new Set(parts).size, 6);
  assert.deepEqual(addresses("64x64x8_8x16", false), [
    "[ay0]",
    "[ay1]",
    "[bx0]",
    "[bx1]",
    "[bx2]",
    "[bx3]",
  ]);
  assert.deepEqual(addresses("16x32x4_4x4", true), addresses("16x32x4_4x4", false));
});
