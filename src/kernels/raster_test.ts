import assert from "#assert";
import { tilePlaceText } from "./tile_scheduler.ts";
import { moduleBuilder } from "./module.ts";

/** The places of all tiles, in the order of workgroups, as `[row, column, batch]`. */
function places(
  tiles: Parameters<typeof tilePlaceText>[2],
  count: number,
): (readonly [number, number, number])[] {
  const module = moduleBuilder("constant");
  const text = tilePlaceText(module, ["tile", "batch"], tiles).join("\n");
  // One division a line, of whole numbers.
  const lines = text.replaceAll(/let (\w+) = (.*);/g, "const $1 = Math.trunc($2);")
    .replaceAll("min(", "Math.min(").replaceAll(/(\d)u\b/g, "$1");
  const constants = module.declarations().replaceAll(/const (\w+) = (\d+)u;/g, "const $1 = $2;");
  const place = new Function(
    "tile",
    `${constants}\n${lines}\nreturn [row_tile, column_tile, batch];`,
  );
  return Array.from({ length: count }, (_, tile) => place(tile));
}

Deno.test("tiles in bands: down some rows, along all columns, then the next band, then the next batch", () => {
  const grouped = places({ rows: 3, columns: 2, classes: 1, raster: 2 }, 12);
  const first = [[0, 0], [1, 0], [0, 1], [1, 1], [2, 0], [2, 1]];
  assert.deepEqual(grouped, [0, 1].flatMap((batch) => first.map((place) => [...place, batch])));
});

Deno.test("every tile comes up once in every order, those of a class together", () => {
  for (const [rows, columns, classes] of [[7, 5, 1], [12, 3, 4], [1, 1, 1], [6, 1, 2]] as const) {
    for (const raster of [1, 2, 3, 4, 50]) {
      const count = 2 * rows * columns;
      const all = places({ rows, columns, classes, raster }, count);
      assert.equal(new Set(all.map(String)).size, count);
      assert.ok(all.every(([row, column, batch]) => row < rows && column < columns && batch < 2));
      const classOf = all.map(([row, , batch]) =>
        batch * classes + Math.floor(row * classes / rows)
      );
      assert.deepEqual(classOf, classOf.toSorted((one, other) => one - other));
    }
  }
});
