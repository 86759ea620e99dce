import { applyEpilogue, type EpilogueStep } from "../epilogue.ts";
import type { ModuleBuilder, TensorAccess } from "../module.ts";
import { digitsText } from "../axes.ts";
import { type SliceGeometry, tileCount, type TiledAxis } from "./geometry.ts";
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
  const spatial = [
    ...tiled.map((axis, d) => ({ name: `tile${d}`, radix: size(`tiles${d}`, axis.tiles) }))
      .reverse(),
    ...outer.map((axis, d) => ({
      name: `outer${d}`,
      radix: size(`places${d}`, axis.places),
    })).reverse(),
  ];
  const image = { name: "image", radix: size("batch", geometry.batch) };
  const digits = geometry.batchInner ? [image, ...spatial] : [...spatial, image];
  const channelStride = size("target_channel_stride", geometry.targetChannelStride);
  const vector = target.vector === 4;
  /** Whether result `i` of some tile lies beyond the last place. */
  const mayExceed = ({ first, tiles, n, places }: TiledAxis, i: number) =>
    module.mode === "uniform" || first + (tiles - 1) * n + i >= places;
  /** Results of one tile (and four images or channels of it, in a vector), given its index and channel. */
  const tileText = (tile: string, channel: string, value: (i: number) => string) => {
    const lines = [
      digitsText(tile, "rest", digits, "        "),
      `        let base = ${
        [
          `(group * ${targets} + ${channel}) * ${channelStride}`,
          `image * ${size("target_batch_stride", geometry.targetBatchStride)}`,
          ...outer.map((axis, d) => `outer${d} * ${size(`target${d}`, axis.targetStride)}`),
        ].join(" + ")
      };`,
      ...tiled.map((axis, d) =>
        `        let to${d} = tile${d} * ${axis.n}u + ${size(`first${d}`, axis.first)};`
      ),
    ];
    const [rows, columns] = tiled.length > 1 ? [tiled[0], tiled[1]!] : [undefined, tiled[0]!];
    for (let i = 0; i < (rows?.n ?? 1); i++) {
      for (let j = 0; j < columns.n; j++) {
        const d = tiled.length - 1;
        const place = `to${d} + ${j}u`;
        const within = `${place} < ${size(`tiled_places${d}`, columns.places)}`;
        const inside = [
          ...(rows !== undefined && mayExceed(rows, i)
            ? [`to0 + ${i}u < ${size("tiled_places0", rows.places)}`]
            : []),
          ...(mayExceed(columns, j) ? [within] : []),
        ].join(" && ");
        const offset = [
          "base",
          ...(rows === undefined
            ? []
            : [`(to0 + ${i}u) * ${size("tiled_target0", rows.targetStride)}`]),
          `(${place}) * ${size(`tiled_target${d}`, columns.targetStride)}`,
        ].join(" + ");
        const finished = (text: string) =>
          applyEpilogue(steps, text, {
            width: vector ? 4 : 1,
            side: "columns",
            row: channels === "rows" ? channel : tile,
            column: channels === "rows" ? tile : channel,
            offset: "to",
          });
        const sum = value(i * columns.n + j);
        lines.push(
          inside === "" ? "        {" : `        if (${inside}) {`,
          `          let to = ${vector ? `(${offset}) / 4u` : offset};`,
          ...(parts
            ? [
              `          var sum = ${sum};`,
              `          if (again) { sum += ${target.load("to")}; }`,
              ...(steps.length === 0
                ? []
                : [`          if (next_step >= end_step) { sum = ${finished("sum")}; }`]),
              `          ${target.store("to", "sum")}`,
            ]
            : [`          ${target.store("to", finished(sum))}`]),
          "        }",
        );
      }
    }
    return lines.join("\n");
  };
  return {
    declarations: steps.map(({ declarations }) => declarations).filter((one) => one !== "").join(
      "\n",
    ),
    text(outputs) {
      const names = outputs.map((value, i) => `      let out${i} = ${value};`).join("\n");
      const one = (x: number) => `${"xyzw"[x]}`;
      const columnOf = (x: number) =>
        spread === undefined
          ? `(column + ${x}u)`
          : `(first_column + (column - first_column) / 4u + ${x * spread / 4}u)`;
      if (channels === "columns") {
        const body = vector
          ? `      if (column < ${targets}) {\n${
            tileText("row", "column", (i) => `out${i}`)
          }\n      }`
          : [0, 1, 2, 3].map((x) =>
            `      if (column + ${x}u < ${targets}) {\n${
              tileText("row", `(column + ${x}u)`, (i) => `out${i}.${one(x)}`)
            }\n      }`
          ).join("\n");
        return `${names}\n      if (row < ${tiles}) {\n${body}\n      }`;
      }
      const body = vector
        ? `      if (column < ${tiles}) {\n${tileText("column", "row", (i) => `out${i}`)}\n      }`
        : [0, 1, 2, 3].map((x) =>
          `      if (${columnOf(x)} < ${tiles}) {\n${
            tileText(columnOf(x), "row", (i) => `out${i}.${one(x)}`)
          }\n      }`
        ).join("\n");
      return `${names}\n      if (row < ${targets}) {\n${body}\n      }`;
    },
  };
}
