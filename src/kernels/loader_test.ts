import assert from "#assert";
import { scheduleLoads, type TileLoader, vectorSide } from "./loader.ts";

type Access = Pick<TileLoader, "along" | "vector" | "vectorAlong">;

/** Every (place, depth) that a thread's loads touch, by evaluating the index expressions. */
function touched(access: Access, extent: number, depth: number, threads: number): string[] {
  const { places, depths, loads } = scheduleLoads(access, extent, depth, threads);
  const at = (expression: string, t: number) => {
    const script = expression.replaceAll(/(\d)u/g, "$1")
      .replace(/(t|\(t [^)]*\)) \/ (\d+)/, "Math.floor($1 / $2)");
    return new Function("t", `return ${script};`)(t) as number;
  };
  const seen: string[] = [];
  for (let t = 0; t < threads; t++) {
    for (const { placeSlot, depthSlot, guard } of loads) {
      if (guard !== undefined && !at(guard, t)) continue;
      const place = at(places[placeSlot]!, t);
      const row = at(depths[depthSlot]!, t);
      for (let i = 0; i < access.vector; i++) {
        seen.push(vectorSide(access) === "place" ? `${place + i},${row}` : `${place},${row + i}`);
      }
    }
  }
  return seen;
}

const ACCESSES: readonly Access[] = [
  { along: "place", vector: 1 },
  { along: "place", vector: 4 },
  { along: "depth", vector: 1 },
  { along: "depth", vector: 4 },
  { along: "depth", vector: 4, vectorAlong: "place" },
];

Deno.test("scheduleLoads() covers every element of the tile once", () => {
  const tiles = [
    [32, 8, 64],
    [128, 16, 256],
    [64, 16, 128],
    [128, 8, 64],
    // What the threads do not divide evenly.
    [128, 16, 192],
    [96, 16, 192],
    [24, 8, 64],
  ] as const;
  for (const access of ACCESSES) {
    for (const [extent, depth, threads] of tiles) {
      const seen = touched(access, extent, depth, threads);
      const what = `${JSON.stringify(access)} ${extent}x${depth} ${threads}`;
      assert.equal(seen.length, extent * depth, what);
      assert.equal(new Set(seen).size, seen.length, what);
    }
  }
});

Deno.test("scheduleLoads() guards nothing where the threads divide the tile", () => {
  for (const access of ACCESSES) {
    const { loads } = scheduleLoads(access, 64, 16, 128);
    assert.ok(loads.every(({ guard }) => guard === undefined));
  }
});

Deno.test("scheduleLoads() refuses a tile without a whole number of vectors", () => {
  assert.throws(
    () => scheduleLoads({ along: "place", vector: 4 }, 26, 8, 64),
    /^Error: Cannot deal a tile of 26 x 8 by 4$/,
  );
});
