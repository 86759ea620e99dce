import { masked, type Scalar, typeName } from "../../elements/scalar.ts";
import { digitsText } from "../axes.ts";
import { applyEpilogue, type EpilogueStep } from "../epilogue.ts";
import { type Lines, lines, range } from "../lists.ts";
import type { OperandLoader } from "../loop/mainloop.ts";
import type { ModuleBuilder, TensorAccess } from "../module.ts";
import type { SliceStore } from "./exchange.ts";
import {
  paddedChannels,
  type SliceGeometry,
  tapCount,
  tileCount,
  type TiledAxis,
  tileDigits,
} from "./geometry.ts";
import { patchSize, type PatchTransform, transformText } from "./patch.ts";
import { type ItemSchedule, scheduleItems } from "./policy.ts";
import type { SliceTile } from "./tile.ts";

/** Where an operand stands in the tile and how far it reaches. */
export interface OperandPlace {
  readonly side: "a" | "b";
  readonly extent: number;
  readonly depth: number;
  readonly threads: number;
  readonly tile: SliceTile;
  /**
   * Whether the four places of a vector lie a quarter of the extent apart: tiles of neighbouring vectors are neighbours then, and so
   * are what neighbouring threads store one by one.
   */
  readonly spread?: boolean;
  /** What the tile holds. */
  readonly scalar: Scalar;
}

/** A column far outside of every tensor: every element of its patch is padding. */
export const OUTSIDE = "0xff000000u";

/**
 * Patches of the source, transformed on the way: place = tile (image, outer places, tiles), depth = (tap, channel),
 * channels fastest. Padding is implicit: an element outside is zero. Of a source of vectors a thread brings four patches at once, of
 * neighbouring images, which lie so in the tile.
 */
export function imageLoader(
  module: ModuleBuilder,
  source: TensorAccess,
  geometry: SliceGeometry,
  transform: PatchTransform,
  at: OperandPlace,
): OperandLoader {
  const { outer, tiled } = geometry;
  const p = `${at.side}_`;
  const size = (name: string, value: number) => module.size(`image_${name}`, value);
  const { vector } = source;
  const schedule = scheduleItems(
    at.extent / vector,
    at.depth,
    at.threads,
    geometry.channelsInner ? "depth" : "place",
  );
  /** Sizes in vectors of the source. */
  const stride = (name: string, value: number) => size(name, value / vector);
  const zero = vector === 1 ? "0.0f" : "vec4f()";
  const [patchRows, patchColumns] = patchSize(transform);
  const patchOf = (d: number) => d === tiled.length - 1 ? patchColumns : patchRows;
  const firstName = at.side === "a" ? "first_row" : "first_column";
  const blocks = size("blocks", paddedChannels(geometry.channels, at.depth) / at.depth);
  const padded = module.mode === "uniform" || geometry.channels % at.depth !== 0;
  const tiles = size("tiles", tileCount(geometry));
  // Of one piece of taps a patch stays at its place: what of it may lie outside is known, and whether it does before the loop.
  const still = module.mode === "constant" && tiled.every(({ chunks }) => chunks === 1);
  const leaves = (d: number, i: number) => !still || mayLeave(tiled[d]!, i);
  const digits = (slot: number) =>
    tileDigits(geometry, size, {
      tile: `${p}tile${slot}_`,
      outer: `${p}outer${slot}_`,
      image: `${p}image${slot}`,
    });
  const sizes = tiled.map((axis, d) => size(`tiled_size${d}`, axis.size));
  const each = <T>(text: (i: number, j: number) => T) =>
    range(patchRows).map((i) => range(patchColumns).map((j) => text(i, j))).flat();
  const begin = lines(
    schedule.places.map((place, slot) => [
      `  let ${p}place${slot} = ${vector === 1 ? place : `(${place}) * ${vector}u`};`,
      `  let ${p}unit${slot} = ${firstName} + ${
        at.spread
          ? `(${p}place${slot} % 4u) * ${at.extent / 4}u + ${p}place${slot} / 4u`
          : `${p}place${slot}`
      };`,
      digitsText(`${p}unit${slot}`, `${p}rest${slot}_`, digits(slot)),
      // Where the patch begins; "negative" coordinates wrap around and fail every comparison.
      outer.map((axis, d) =>
        `  let ${p}from${slot}_${d} = ${p}outer${slot}_${d} * ${
          size(`stride${d}`, axis.stride)
        } - ${size(`padding${d}`, axis.padding >>> 0)};`
      ),
      tiled.map((axis, d) => {
        const begin = `${p}tile${slot}_${d} * ${axis.n}u + ${size(`first${d}`, axis.first)}`;
        const start = `${begin} - ${size(`tiled_padding${d}`, axis.padding >>> 0)}`;
        // Results beyond the last tile are stored nowhere, whatever they are made of.
        const whole = d === 0 && !still
          ? `select(${OUTSIDE}, ${start}, ${p}unit${slot} < ${tiles})`
          : start;
        return `  let ${p}at${slot}_${d} = ${whole};`;
      }),
      still &&
      tiled.map((axis, d) =>
        range(patchOf(d)).filter((i) => leaves(d, i)).map((i) =>
          `  let ${p}in${slot}_${d}_${i} = ${p}at${slot}_${d} + ${i}u < ${axis.size}u;`
        )
      ),
      `  let ${p}base${slot} = ${
        [
          `group * ${stride("group_stride", geometry.channels * geometry.sourceChannelStride)}`,
          vector === 1
            ? `${p}image${slot} * ${stride("batch_stride", geometry.sourceBatchStride)}`
            : `${p}image${slot} / ${vector}u`,
          ...outer.map((axis, d) =>
            `${p}from${slot}_${d} * ${stride(`source${d}`, axis.sourceStride)}`
          ),
          ...tiled.map((axis, d) =>
            `${p}at${slot}_${d} * ${stride(`tiled_source${d}`, axis.sourceStride)}`
          ),
        ].join(" + ")
      };`,
    ]),
    schedule.depths.map((depth, slot) => `  let ${p}depth${slot} = ${depth};`),
  );
  const name = (item: number, i: number, j: number) => `${p}x${item}_${i}_${j}`;
  // What is loaded is masked when it is stored: a mask at the load would wait for it before the products.
  const coordinates = range(tiled.length);
  const whole = !padded && outer.length === 0;
  const registers = lines(schedule.items.map((_, item) => [
    each((i, j) => `  var ${name(item, i, j)} = ${zero};`),
    still
      ? !whole && `  var ${p}keep${item} = false;`
      : coordinates.map((d) => `  var ${p}c${item}_${d} = 0u;`),
  ]));
  const taps = size("taps", tapCount(geometry));
  const tapDigits = [
    ...tiled.map((axis, d) => ({ name: `chunk${d}`, radix: `${axis.chunks}u` })).reverse(),
    ...outer.map((axis, d) => ({ name: `tap${d}`, radix: size(`taps${d}`, axis.taps) })).reverse(),
  ];
  const columnsAxis = tiled.length - 1;
  const step = (d: number) => stride(`tiled_source${d}`, tiled[d]!.sourceStride);
  const fetch = lines(
    "    {",
    `    let tap = at / ${blocks};`,
    `    let block = at % ${blocks};`,
    digitsText("tap", "tap_rest", tapDigits, "    "),
    // The same for every thread: how far this tap and block of channels lie from a patch's beginning.
    `    let far = ${
      [
        `block * ${stride("block_stride", at.depth * geometry.sourceChannelStride)}`,
        ...outer.map((axis, d) =>
          `tap${d} * ${stride(`tap_stride${d}`, axis.dilation * axis.sourceStride)}`
        ),
        ...tiled.map((axis, d) =>
          `chunk${d} * ${stride(`chunk_stride${d}`, axis.r * axis.sourceStride)}`
        ),
      ].join(" + ")
    };`,
    schedule.items.map(({ placeSlot, depthSlot }, item) => {
      const channel = () =>
        `block * ${at.depth}u + ${p}depth${depthSlot} < ${size("channels", geometry.channels)}`;
      const inside = [
        // What is fetched beyond the last step is not used.
        ...(still ? [] : [`tap < ${taps}`]),
        ...(padded ? [channel()] : []),
        ...outer.map((axis, d) =>
          `${p}from${placeSlot}_${d} + tap${d} * ${size(`dilation${d}`, axis.dilation)} < ${
            size(`size${d}`, axis.size)
          }`
        ),
      ].join(" && ");
      const coordinate = (d: number) => `${p}at${placeSlot}_${d} + chunk${d} * ${tiled[d]!.r}u`;
      return [
        `    {`,
        `      let x_base = ${p}base${placeSlot} + far + ${p}depth${depthSlot} * ${
          stride("channel_stride", geometry.sourceChannelStride)
        };`,
        still ? !whole && `      ${p}keep${item} = ${inside};` : [
          `      ${p}c${item}_0 = select(${OUTSIDE}, ${coordinate(0)}, ${inside});`,
          coordinates.slice(1).map((d) => `      ${p}c${item}_${d} = ${coordinate(d)};`),
        ],
        each((i, j) => {
          const row = tiled.length > 1 ? ` + ${i}u * ${step(0)}` : "";
          const value = source.load(`x_base${row} + ${j}u * ${step(columnsAxis)}`);
          return `      ${name(item, i, j)} = ${value};`;
        }),
        `    }`,
      ];
    }),
    "    }",
  );
  const kept = (item: number) => {
    const slot = schedule.items[item]!.placeSlot;
    return each((i, j) => {
      const inside = [
        ...(whole ? [] : [`${p}keep${item}`]),
        ...(tiled.length > 1 && leaves(0, i) ? [`${p}in${slot}_0_${i}`] : []),
        ...(leaves(columnsAxis, j) ? [`${p}in${slot}_${columnsAxis}_${j}`] : []),
      ];
      const value = inside.reduce((value, one) => masked(value, zero, [one]), name(item, i, j));
      return `let ${p}m${item}_${i}_${j} = ${value};`;
    });
  };
  const mask = (item: number) => {
    if (still) return kept(item);
    const row = (i: number) => tiled.length > 1 ? `${p}v${item}_${i}` : `${p}c${item}_0`;
    const [rows, columns] = [sizes[0], sizes[columnsAxis]];
    return [
      tiled.length > 1 &&
      range(patchRows).map((i) =>
        `let ${row(i)} = select(${OUTSIDE}, ${p}c${item}_1, ${p}c${item}_0 + ${i}u < ${rows});`
      ),
      each((i, j) => {
        const value = masked(name(item, i, j), zero, [`${row(i)} + ${j}u < ${columns}`]);
        return `let ${p}m${item}_${i}_${j} = ${value};`;
      }),
    ];
  };
  return {
    places: begin,
    registers,
    fetch,
    store: storeItems(
      schedule,
      transform,
      at,
      vector,
      mask,
      (item, i, j) => `${p}m${item}_${i}_${j}`,
    ),
  };
}

/** Whether element `i` of some tile's patch lies outside the source. */
function mayLeave({ first, padding, tiles, n, size }: TiledAxis, i: number): boolean {
  const start = first - padding + i;
  return start < 0 || start + (tiles - 1) * n >= size;
}

/**
 * Transforms every item's patch and stores its slices.
 *
 * @param width Patches of an item: four lie side by side in the tile.
 * @param prepare Statements before an item's transform.
 */
export function storeItems(
  schedule: ItemSchedule,
  transform: PatchTransform,
  at: OperandPlace,
  width: 1 | 4,
  prepare: (item: number) => Lines,
  name: (item: number, i: number, j: number) => string,
): string {
  const p = `${at.side}_`;
  const items = schedule.items.map(({ placeSlot, depthSlot }, item) => {
    const [place, depth] = [`${p}place${placeSlot}`, `${p}depth${depthSlot}`];
    const vector = `${at.tile.row(depth)}${at.tile.stored(at.side, `${place} / 4u`, depth)}`;
    const { statements, outputs } = transformText(
      transform,
      `${p}t${item}_`,
      (i, j) => name(item, i, j),
      width === 1 ? "f32" : "vec4f",
    );
    const value = (text: string) =>
      at.scalar === "f32" ? text : `${typeName(at.scalar, width)}(${text})`;
    const element = width === 1 ? `[${place} % 4u]` : "";
    return [
      prepare(item),
      statements,
      outputs.map((text, slice) => `${at.tile.slice(slice)}${vector}${element} = ${value(text)};`),
    ];
  });
  const { active } = schedule;
  return lines(active === undefined ? "    {" : `    if (t < ${active}u) {`, items, "    }");
}

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
