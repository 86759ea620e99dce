import assert from "#assert";
import { type ThreadGrid, threadPlace } from "./threads.ts";

/** Column and row of each thread; whole numbers are BigInt, which divides as u32 does. */
function places(grid: ThreadGrid): [x: number, y: number][] {
  const text = threadPlace(grid, "t", "p").replaceAll("let ", "const ").replaceAll(
    /\b(\d+)u\b/g,
    "$1n",
  );
  const read = new Function("t", `${text}\nreturn [px, py];`);
  return Array.from({ length: grid.rows * grid.columns }, (_, t) => {
    const [x, y] = read(BigInt(t));
    return [Number(x), Number(y)];
  });
}

const GRIDS: readonly ThreadGrid[] = [
  { rows: 16, columns: 8, warp: [4, 8] as const },
  { rows: 8, columns: 16, warp: [4, 8] as const },
  { rows: 32, columns: 4, warp: [8, 4] as const },
  { rows: 2, columns: 64, warp: [2, 16] as const },
  { rows: 1, columns: 128, warp: [1, 32] as const },
  { rows: 64, columns: 2, warp: [16, 2] as const },
  { rows: 8, columns: 4 },
  { rows: 4, columns: 4 },
  { rows: 8, columns: 2 },
  { rows: 3, columns: 8 },
  { rows: 5, columns: 8 },
  { rows: 10, columns: 8 },
  { rows: 4, columns: 12 },
  { rows: 2, columns: 3 },
].flatMap((grid) => [true, false].map((paired) => ({ ...grid, paired })));

Deno.test("threadPlace() gives each thread a place of the grid, warps places that lie together", () => {
  for (const grid of GRIDS) {
    const all = places(grid);
    assert.equal(new Set(all.map(String)).size, all.length);
    assert.ok(all.every(([x, y]) => x < grid.columns && y < grid.rows));
    if (grid.warp === undefined) continue;
    for (let first = 0; first < all.length; first += 32) {
      const warp = all.slice(first, first + 32);
      for (const [side, size] of [[0, grid.warp[1]], [1, grid.warp[0]]] as const) {
        const along = warp.map((place) => place[side]);
        assert.equal(Math.max(...along) - Math.min(...along), size - 1);
      }
    }
  }
});

Deno.test("of threads in pairs each has the column of its neighbour and the row of the next but one, or the other way", () => {
  for (const grid of GRIDS) {
    const [high, wide] = grid.warp ?? [grid.rows, grid.columns];
    const all = places(grid);
    const same = (side: 0 | 1, by: number) =>
      all.every((place, t) => place[side] === all[t ^ by]?.[side]);
    const merged = same(0, 1) && same(1, 2) || same(1, 1) && same(0, 2);
    // What is one row, one column or three has no such neighbours.
    const possible = high % 2 === 0 && wide % 2 === 0;
    assert.equal(merged, possible && (grid.paired || wide === 2), JSON.stringify(grid));
  }
});
