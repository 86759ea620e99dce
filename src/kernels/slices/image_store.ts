import { lines, range } from "../lists.ts";
import { applyEpilogue, type EpilogueStep } from "../epilogue.ts";
import type { ModuleBuilder, TensorAccess } from "../module.ts";
import { digitsText } from "../axes.ts";
import { type SliceGeometry, tileCount, type TiledAxis, tileDigits } from "./geometry.ts";
import type { SliceStore } from "./exchange.ts";

/**
 * Stores transformed results of a forward-like product, whose one side is target channels and whose other is tiles.
 * Four columns leave in one vector where they lie together: channels of a place, or images of one (chwn).
 *
 * @param channels The side of the target channels.
 * @param parts Whether the loop stores its sums in parts: each is added to what is there `again`, the epilogue follows the last.
 * @param spread Columns of a workgroup, where tiles of a vector lie a quarter of them apart.
 */
export function imageStore(
  module: ModuleBuilder,
  target: TensorAccess,
  geometry: SliceGeometry,
  channels: "rows" | "columns",
  steps: readonly EpilogueStep[],
  parts: boolean,
  spread?: number,
): SliceStore {
  const { outer, tiled } = geometry;
  const size = (name: string, value: number) => module.size(`image_${name}`, value);
  const tiles = size("tiles", tileCount(geometry));
  const targets = size("targets", geometry.targets);
  const digits = tileDigits(geometry, size, { tile: "tile", outer: "outer", image: "image" });
  const channelStride = size("target_channel_stride", geometry.targetChannelStride);
  const vector = target.vector === 4;
  const last = tiled.length - 1;
  const [rows, columns] = last > 0 ? [tiled[0], tiled[1]!] : [undefined, tiled[0]!];
  /** Whether result `i` of some tile lies beyond the last place. */
  const mayExceed = ({ first, tiles, n, places }: TiledAxis, i: number) =>
    module.mode === "uniform" || first + (tiles - 1) * n + i >= places;
  /** Stores result (i, j) of a tile, which is `sum`. */
  const resultText = (tile: string, channel: string, sum: string, i: number, j: number) => {
    const place = `to${last} + ${j}u`;
    const within = `${place} < ${size(`tiled_places${last}`, columns.places)}`;
    const inside = [
      ...(rows !== undefined && mayExceed(rows, i)
        ? [`to0 + ${i}u < ${size("tiled_places0", rows.places)}`]
        : []),
      ...(mayExceed(columns, j) ? [within] : []),
    ].join(" && ");
    const down = rows === undefined
      ? ""
      : ` + (to0 + ${i}u) * ${size("tiled_target0", rows.targetStride)}`;
    const offset = `base${down} + (${place}) * ${
      size(`tiled_target${last}`, columns.targetStride)
    }`;
    const [row, column] = channels === "rows" ? [channel, tile] : [tile, channel];
    const at = { width: vector ? 4 : 1, side: "columns", row, column, offset: "to" } as const;
    const finished = (text: string) => applyEpilogue(steps, text, at);
    return [
      inside === "" ? "        {" : `        if (${inside}) {`,
      `          let to = ${vector ? `(${offset}) / 4u` : offset};`,
      parts && [
        `          var sum = ${sum};`,
        `          if (again) { sum += ${target.load("to")}; }`,
        steps.length > 0 &&
        `          if (next_step >= end_step) { sum = ${finished("sum")}; }`,
      ],
      `          ${target.store("to", parts ? "sum" : finished(sum))}`,
      "        }",
    ];
  };
  /** Results of one tile (and four images or channels of it, in a vector), given its index and channel. */
  const tileText = (tile: string, channel: string, value: (i: number) => string) =>
    lines(
      digitsText(tile, "rest", digits, "        "),
      `        let base = ${
        [
          `(group * ${targets} + ${channel}) * ${channelStride}`,
          `image * ${size("target_batch_stride", geometry.targetBatchStride)}`,
          ...outer.map((axis, d) => `outer${d} * ${size(`target${d}`, axis.targetStride)}`),
        ].join(" + ")
      };`,
      tiled.map((axis, d) =>
        `        let to${d} = tile${d} * ${axis.n}u + ${size(`first${d}`, axis.first)};`
      ),
      range(rows?.n ?? 1).map((i) =>
        range(columns.n).map((j) => resultText(tile, channel, value(i * columns.n + j), i, j))
      ),
    );
  const [rowCount, columnCount] = channels === "columns" ? [tiles, targets] : [targets, tiles];
  /** A store of a column, or of four at once. */
  const columnText = (column: string, part: string, own = column) => {
    const [tile, channel] = channels === "columns" ? ["row", column] : [column, "row"];
    return [
      `      if (${own} < ${columnCount}) {`,
      tileText(tile, channel, (i) => `out${i}${part}`),
      "      }",
    ];
  };
  const oneText = (x: number) => {
    const part = `.${"xyzw"[x]}`;
    if (channels === "columns") return columnText(`(column + ${x}u)`, part, `column + ${x}u`);
    return columnText(
      spread === undefined
        ? `(column + ${x}u)`
        : `(first_column + (column - first_column) / 4u + ${x * spread / 4}u)`,
      part,
    );
  };
  return {
    declarations: steps.map(({ declarations }) => declarations).filter((one) => one !== "")
      .join("\n"),
    text: (outputs) =>
      lines(
        outputs.map((value, i) => `      let out${i} = ${value};`),
        `      if (row < ${rowCount}) {`,
        vector ? columnText("column", "") : range(4).map(oneText),
        "      }",
      ),
  };
}
