import assert from "#assert";
import { scheduleLoads } from "./loader.ts";

/** Every (place, depth) that a thread's loads touch, by evaluating the index expressions. */
function touched(
  along: "place" | "depth",
  vector: 1 | 4,
  extent: number,
  depth: number,
  threads: number,
): string[] {
  const { places, depths, loads } = scheduleLoads({ along, vector }, extent, depth, threads);
  const at = (expression: string, t: number) => {
    const script = expression.replaceAll("u", "").replace(/t \/ (\d+)/, "Math.floor(t / $1)");
    return new Function("t", `return ${script};`)(t) as number;
  };
  const seen: string[] = [];
  for (let t = 0; t < threads; t++) {
    for (const { placeSlot, depthSlot } of loads) {
      const place = at(places[placeSlot]!, t);
      const row = at(depths[depthSlot]!, t);
      for (let i = 0; i < vector; i++) {
        seen.push(along === "place" ? `${place + i},${row}` : `${place},${row + i}`);
      }
    }
  }
  return seen;
}

Deno.test("scheduleLoads() covers every element of the tile once", () => {
  for (const along of ["place", "depth"] as const) {
    for (const vector of [1, 4] as const) {
      for (
        const [extent, depth, threads] of [[32, 8, 64], [128, 16, 256], [64, 16, 128], [128, 8, 64]]
      ) {
        const seen = touched(along, vector, extent!, depth!, threads!);
        assert.equal(seen.length, extent! * depth!);
        assert.equal(new Set(seen).size, seen.length, `${along} ${vector} ${extent}x${depth}`);
      }
    }
  }
});

Deno.test("scheduleLoads() refuses a tile that the threads do not divide", () => {
  assert.throws(
    () => scheduleLoads({ along: "place", vector: 4 }, 24, 8, 64),
    /^Error: Cannot deal a tile of 24 x 8 by 4 to 64 threads$/,
  );
});
