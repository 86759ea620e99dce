import assert from "node:assert/strict";
import { tapReach } from "../loader.ts";
import { matrixTile, matrixTileShape } from "./matrix_tile.ts";

const UNIT = { component: "f16", result: "f32", m: 16, n: 16, k: 16 } as const;

/** The value of a WGSL expression of whole numbers. */
function evaluate(text: string, names: Readonly<Record<string, number>>): number {
  const script = text.replaceAll(/\b(\d+)u\b/g, "$1").replaceAll(
    /(\([^()]*\)|\w+) \/ (\d+)/g,
    "Math.floor($1 / $2)",
  );
  return new Function(...Object.keys(names), `return ${script};`)(...Object.values(names));
}

Deno.test("places of rows of taps go round a subgroup's matrices: each tap's matrix has the places that it is stored with", () => {
  for (const matrices of [2, 3, 4]) {
    for (const taps of [2, 3, 5]) {
      for (const dilation of [1, 2]) {
        for (const deep of [16, 32]) {
          const [row, columns] = [{ kind: "row", taps, dilation } as const, 2 * 16 * matrices];
          const shape = matrixTileShape(
            "b",
            UNIT,
            columns,
            taps * deep,
            { along: "depth", vector: 8, sharedTaps: row },
            matrices,
          );
          const tile = matrixTile(shape, "tiles", "");
          const stored = (place: number) => {
            const [line] = tile.store({
              place: "p",
              depth: "d",
              value: "v",
              vector: 8,
              side: "depth",
            });
            return evaluate(/\[(.*)\] = v;/.exec(line!)![1]!, { p: place, d: 0 });
          };
          const places = columns + tapReach(row);
          const all = Array.from({ length: places }, (_, place) => stored(place));
          assert.equal(new Set(all).size, places);
          assert.ok(all.every((at) => at < shape.size && at % shape.stride === 0));
          for (const first of [0, columns / 2]) {
            const begin = evaluate(/= (.*);/.exec(tile.places)![1]!, { unit_column: first });
            for (let matrix = 0; matrix < matrices + tapReach(row); matrix++) {
              const [, offset] = /&tiles, (.*), \d+u\)/.exec(tile.load(16 * matrix, 0))!;
              const at = evaluate(offset!, { b_first: begin });
              for (let i = 0; i < 16; i++) {
                const place = first + i * matrices + matrix;
                assert.equal(at + i * shape.stride, stored(place), `${matrices} ${taps} ${place}`);
              }
            }
          }
        }
      }
    }
  }
});

Deno.test("what neighbouring threads store of rows of taps meets no bank twice", () => {
  for (const matrices of [2, 4]) {
    for (const deep of [16, 32]) {
      for (const columns of [64, 128, 192, 256]) {
        const loader = {
          along: "depth",
          vector: 8,
          sharedTaps: { kind: "row", taps: 3, dilation: 1 },
        } as const;
        const shape = matrixTileShape("b", UNIT, columns, 3 * deep, loader, matrices);
        const tile = matrixTile(shape, "tiles", "");
        const [line] = tile.store({ place: "p", depth: "d", value: "v", vector: 8, side: "depth" });
        const at = /\[(.*)\] = v;/.exec(line!)![1]!;
        const vectors = deep / 8;
        // Eight threads store 16 bytes each at once, over 128 bytes of banks.
        for (let first = 0; first + 8 / vectors <= columns; first += 8 / vectors) {
          const banks = Array.from(
            { length: 8 },
            (_, t) => evaluate(at, { p: first + Math.floor(t / vectors), d: t % vectors * 8 }) % 8,
          );
          // Of two matrices and rows of two vectors one meets another.
          const most = vectors === 2 && matrices === 2 ? 7 : 8;
          assert.ok(new Set(banks).size >= most, `${matrices} x ${deep}, ${first}: ${banks}`);
        }
      }
    }
  }
});
