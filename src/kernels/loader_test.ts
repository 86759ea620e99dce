import assert from "#assert";
import { bankedIndex, bankedRow, scheduleLoads, type TileAccess, vectorSide } from "./loader.ts";

type Access = Pick<TileAccess, "along" | "vector" | "vectorAlong" | "runs">;

/** WGSL over a thread's index, whose whole numbers divide as BigInt's do. */
function at(expression: string, t: number): number {
  const script = expression.replaceAll(/(\d)u/g, "$1n");
  const select = (no: bigint, yes: bigint, when: boolean) => when ? yes : no;
  return Number(new Function("t", "select", `return ${script};`)(BigInt(t), select));
}

/** Where each thread's loads begin, as (place, depth). */
function begins(
  access: Access,
  extent: number,
  depth: number,
  threads: number,
  order: { readonly banked?: boolean; readonly duplicateLoad?: boolean } = {},
): (readonly [place: number, depth: number] | undefined)[][] {
  const { places, depths, loads } = scheduleLoads(access, extent, depth, threads, order);
  return loads.map(({ placeSlot, depthSlot, guard }) =>
    Array.from(
      { length: threads },
      (_, t) =>
        guard !== undefined && at(guard, t) === 0
          ? undefined
          : [at(places[placeSlot]!, t), at(depths[depthSlot]!, t)] as const,
    )
  );
}

/** The threads whose loads touch each (place, depth). */
function touched(access: Access, begun: ReturnType<typeof begins>): Map<string, Set<number>> {
  const found = new Map<string, Set<number>>();
  for (const load of begun) {
    for (const [t, begin] of load.entries()) {
      if (begin === undefined) continue;
      const [place, row] = begin;
      for (let i = 0; i < access.vector; i++) {
        const key = vectorSide(access) === "place" ? `${place + i},${row}` : `${place},${row + i}`;
        found.set(key, (found.get(key) ?? new Set()).add(t));
      }
    }
  }
  return found;
}

const ACCESSES: readonly Access[] = [
  { along: "place", vector: 1 },
  { along: "place", vector: 4 },
  { along: "depth", vector: 1 },
  { along: "depth", vector: 4 },
  { along: "depth", vector: 4, vectorAlong: "place" },
  { along: "place", vector: 4, runs: 2 },
  { along: "depth", vector: 4, runs: 2 },
];

Deno.test("scheduleLoads() covers every element of the tile, each by one thread", () => {
  const tiles = [
    [32, 8, 64],
    [128, 16, 256],
    [64, 16, 128],
    [128, 8, 64],
    // What the threads do not divide evenly.
    [128, 16, 192],
    [96, 16, 192],
    [24, 8, 64],
    [132, 16, 128],
    // Less than the threads take at once.
    [8, 8, 256],
  ] as const;
  for (const access of ACCESSES) {
    for (const [extent, depth, threads] of tiles) {
      for (
        const order of [{}, { banked: true }, { duplicateLoad: true }, {
          banked: true,
          duplicateLoad: true,
        }]
      ) {
        const begun = begins(access, extent, depth, threads, order);
        const seen = touched(access, begun);
        const what = JSON.stringify([access, extent, depth, threads, order]);
        const loads = begun.flat().filter((one) => one !== undefined).length;
        if (!order.duplicateLoad) assert.equal(loads * access.vector, extent * depth, what);
        assert.equal(seen.size, extent * depth, what);
        assert.ok([...seen.values()].every((threads) => threads.size === 1), what);
      }
    }
  }
});

Deno.test("scheduleLoads() says of which run a slot is, and where in it", () => {
  for (const along of ["place", "depth"] as const) {
    const { depths, inRuns } = scheduleLoads({ along, vector: 8, runs: 3 }, 128, 96, 256);
    assert.equal(inRuns!.length, depths.length);
    for (const [slot, { run, row }] of inRuns!.entries()) {
      for (let t = 0; t < 256; t++) {
        assert.ok(at(row, t) < 32);
        assert.equal(at(depths[slot]!, t), 32 * run + at(row, t));
      }
    }
    // Threads would be left over.
    assert.equal(scheduleLoads({ along, vector: 8, runs: 3 }, 32, 48, 256).inRuns, undefined);
  }
});

Deno.test("eight threads whose stores of 16 bytes pass at once reach all banks", () => {
  // Tiles of matrix units: halves in eights, words of int8 in fours, taps of a row beside them.
  const tiles = [
    [{ along: "depth", vector: 8 }, 96, 32, 128],
    [{ along: "depth", vector: 8 }, 192, 32, 256],
    [{ along: "depth", vector: 8 }, 256, 16, 256],
    [{ along: "depth", vector: 8 }, 128, 16, 128],
    [{ along: "depth", vector: 4 }, 256, 8, 256],
    [{ along: "depth", vector: 4 }, 128, 16, 256],
    [{ along: "depth", vector: 8 }, 98, 16, 128],
    [{ along: "place", vector: 8 }, 32, 32, 128],
    [{ along: "place", vector: 8 }, 16, 32, 64],
    [{ along: "place", vector: 8 }, 128, 32, 128],
  ] as const;
  for (const [access, extent, depth, threads] of tiles) {
    const what = `${JSON.stringify(access)} ${extent}x${depth} ${threads}`;
    const length = access.along === "place" ? extent : depth;
    const stride = length / access.vector + 1;
    const bank = ([place, row]: readonly [number, number]) => {
      const [outer, inner] = access.along === "place" ? [row, place] : [place, row];
      return (outer * stride + inner / access.vector) % 8;
    };
    for (const loads of begins(access, extent, depth, threads, { banked: true })) {
      // A last load that only some threads have is left as it is.
      if (loads.includes(undefined)) continue;
      for (let first = 0; first < threads; first += 8) {
        const phase = loads.slice(first, first + 8).map((one) => bank(one!));
        assert.equal(new Set(phase).size, 8, `${what}: ${phase}`);
      }
    }
  }
});

Deno.test("bankedIndex() finds what bankedRow() puts somewhere", () => {
  for (const vectors of [1, 2, 3, 4, 6, 8]) {
    for (let row = 0; row < 64; row++) {
      const banked = at(bankedRow("t", vectors), row);
      assert.equal(at(bankedIndex("t", vectors), banked), row);
      assert.equal(Math.floor(banked / 8), Math.floor(row / 8));
      if (vectors !== 2 && vectors !== 4) assert.equal(banked, row);
    }
  }
});

Deno.test("scheduleLoads() guards nothing where the threads divide the tile, or take their first load again", () => {
  for (const access of ACCESSES) {
    const guards = (...tile: Parameters<typeof scheduleLoads>) =>
      scheduleLoads(...tile).loads.filter(({ guard }) => guard !== undefined).length;
    assert.equal(guards(access, 64, 16, 128), 0);
    const odd = { ...access, vector: 1 as const };
    assert.ok(guards(odd, 130, 14, 128) > 0);
    assert.equal(guards(odd, 130, 14, 128, { duplicateLoad: true }), 0);
    // Of less than all threads take none has a first one.
    assert.ok(guards(odd, 4, 8, 128, { duplicateLoad: true }) > 0);
  }
});

Deno.test("scheduleLoads() refuses a tile without a whole number of vectors", () => {
  assert.throws(
    () => scheduleLoads({ along: "place", vector: 4 }, 26, 8, 64),
    /^Error: Cannot deal a tile of 26 x 8 by 4$/,
  );
});
