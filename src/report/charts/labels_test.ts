import assert from "#assert";
import { placeLabels } from "./labels.ts";

const PLOT = { width: 345, height: 360 };

/** Left, right and middle of a name, in pixels. */
function extent(mark: { x: number; y: number; text: string }, at: number, all: typeof mark[]) {
  const { align, dx, dy } = placeLabels(all, [], PLOT)[at]!;
  const width = 6.5 * mark.text.length;
  const left = mark.x + dx - width * { left: 0, center: 0.5, right: 1 }[align];
  return { left, right: left + width, y: mark.y + dy };
}

Deno.test("placeLabels() puts names right of their marks where they have room, and left of them at the edge", () => {
  const places = placeLabels(
    [{ x: 100, y: 50, text: "cudnn tf32" }, { x: 340, y: 200, text: "cudnn f16" }],
    [],
    PLOT,
  );
  assert.deepEqual(places, [
    { align: "left", dx: 10, dy: 0 },
    { align: "right", dx: -10, dy: 0 },
  ]);
});

Deno.test("placeLabels() goes out of the way of dots", () => {
  const dots = [{ x: 130, y: 50 }, { x: 140, y: 51 }];
  const [place] = placeLabels([{ x: 100, y: 50, text: "cudnn f16" }], dots, PLOT);
  assert.equal(place!.align, "right");
});

Deno.test("placeLabels() keeps the names of marks that lie on each other apart, within the plot", () => {
  for (const x of [5, 170, 340]) {
    const marks = Array.from({ length: 8 }, (_, i) => ({
      x: x + i % 2,
      y: 180 + i % 3,
      text: `wgconv f16 summed in ${"f32".repeat(i % 2 + 1)}`,
    }));
    const boxes = marks.map((mark, i) => extent(mark, i, marks));
    boxes.forEach((box, i) => {
      assert.ok(box.left >= 0 && box.right <= PLOT.width, `${x}: ${i}`);
      for (const other of boxes.slice(i + 1)) {
        const apart = Math.abs(box.y - other.y) >= 13 || box.left >= other.right ||
          other.left >= box.right;
        assert.ok(apart, `${x}: ${JSON.stringify([box, other])}`);
      }
    });
  }
});
