import assert from "#assert";
import { type ChartPoint, decades, speedErrorChart } from "./chart.ts";

const point = (name: string, speed: number, error: number, right = true): ChartPoint => ({
  ...{ name, speed, error, right },
});

Deno.test("decades() encloses values, and is never one alone", () => {
  assert.deepEqual(decades([3e-7, 2e-5]), [-7, -6, -5, -4]);
  assert.deepEqual(decades([1]), [0, 1]);
  assert.deepEqual(decades([10, 100]), [1, 2]);
});

Deno.test("speedErrorChart() marks wrong results, keeps labels apart and within its width", () => {
  const many = Array.from({ length: 8 }, (_, i) => point(`algorithm${i}`, 100 + i, 1e-7));
  const svg = speedErrorChart([...many, point("bad", 3, 0.5, false), point("exact", 5, 0)], 400);
  assert.equal(svg.match(/class="dot"/g)?.length, 9);
  assert.equal(svg.match(/class="wrong"/g)?.length, 1);
  const lines = [...svg.matchAll(/<text x="([\d.]+)" y="([\d.]+)">algorithm/g)]
    .map(([, x, y]) => [Number(x), Number(y)] as const);
  const heights = lines.map(([, y]) => y).sort((a, b) => a - b);
  heights.slice(1).forEach((y, i) => assert.ok(y - heights[i]! >= 13, heights.join()));
  for (const [x] of lines) assert.ok(x >= 0 && x + 10 * 6.6 <= 400, String(x));
  assert.equal(speedErrorChart([], 400), "");
});
