import { type Axis, axisDigits, digitsText, reachesOutside } from "../axes.ts";
import { lines, product, range } from "../lists.ts";
import {
  type LoaderState,
  tapReach,
  type TapRing,
  type TileAccess,
  type TileLoader,
} from "../loader.ts";
import type { ModuleBuilder, TensorAccess } from "../module.ts";

/** The rows of a step: consecutive ones along the last axis but one, of each of so many images. */
export interface RowBox {
  readonly images: number;
  readonly rows: number;
}

/**
 * The depth of backward-filter by rows, channels innermost, as a sliding window: taps along the last axis share what steps load. A step
 * takes one place of each row of a box, the next step the next place. The input that it loads serves the last tap now and the other taps
 * in later steps. Between rows lie idle steps, which load the next row's first places. Joined rows have none: each is as long as the
 * input's, and taps beyond its ends are left out.
 */
export interface RingDepth {
  readonly batch: number;
  /** Whether rows are joined; only where {@linkcode joinsRows}. */
  readonly joined: boolean;
  /** The input's axes, between places of the output and taps. */
  readonly axes: readonly Axis[];
  readonly box: RowBox;
}

/**
 * Idle steps behind a row: as far as its taps reach, less the zeros that neighbouring rows share. Negative where padding at both ends is
 * more than taps reach: so many places at a row's end meet zeros alone and are skipped.
 */
function idlePlaces({ places, size, padding, ...taps }: Axis): number {
  const after = places - 1 + tapReach(taps) - padding - (size - 1);
  return tapReach(taps) - Math.max(0, Math.min(padding, after));
}

/** Most steps at a row's ends that leave taps out: each has a text of its own. */
const MOST_ENDS = 8;

/** Whether rows may be joined: they have as many places as the input's, more than taps reach. */
export function joinsRows({ places, size, ...taps }: Axis): boolean {
  const reach = tapReach(taps);
  return places === size && taps.padding <= reach && places > reach && reach <= MOST_ENDS;
}

/** Steps of a row, and how many steps the input is loaded ahead of the gradient. */
function rowSteps({ axes, joined }: RingDepth): { width: number; ahead: number } {
  const last = axes.at(-1)!;
  const ahead = joined ? tapReach(last) - last.padding : idlePlaces(last);
  return { width: joined ? last.places : last.places + ahead, ahead };
}

/** The ring of the taps along the last axis. */
export function ringOf({ taps, dilation, padding, places }: Axis, joined: boolean): TapRing {
  return { kind: "ring", taps, dilation, ...(joined && { row: { steps: places, padding } }) };
}

/** Boxes along an axis of rows. */
export function boxes(size: number, each: number): number {
  return Math.ceil(size / each);
}

/** Rows along the innermost axis of rows; one where a row is an image. */
export function rowsOf(axes: readonly Pick<Axis, "places">[]): number {
  return axes.at(-2)?.places ?? 1;
}

/** The box of so many rows that wastes least, the highest of equal ones. */
export function rowBox(
  batch: number,
  axes: readonly Pick<Axis, "places">[],
  count: number,
): RowBox {
  const rows = rowsOf(axes);
  const all = range(count).map((i) => count - i)
    .filter((high) => count % high === 0 && (axes.length > 1 || high === 1))
    .map((high): RowBox => ({ rows: high, images: count / high }));
  const covered = ({ rows: high, images }: RowBox) =>
    boxes(rows, high) * high * boxes(batch, images) * images;
  return all.reduce((best, one) => covered(one) < covered(best) ? one : best);
}

/** Steps of all boxes. */
export function ringSteps(depth: RingDepth): number {
  const { batch, axes, box } = depth;
  const others = axes.slice(0, -2).reduce((product, { places }) => product * places, 1);
  return boxes(batch, box.images) * others * boxes(rowsOf(axes), box.rows) * rowSteps(depth).width;
}

/** The order of columns: the channels of a matrix, then the taps of a row, then the next channels. */
export interface RingColumns {
  readonly taps: number;
  readonly block: number;
  /** Channels of a group. */
  readonly channels: number;
}

/** Columns of all taps, channels padded to whole matrices. */
export function ringColumns({ taps, block, channels }: RingColumns, others: number): number {
  return others * boxes(channels, block) * block * taps;
}

/** WGSL of a column's index in the filter, channels innermost; beyond `columns` for padding. */
export function ringColumn(
  module: ModuleBuilder,
  { taps, block, channels }: RingColumns,
  column: string,
  columns: string,
): string {
  const count = module.size("ring_channels", channels);
  const blocks = module.size("ring_blocks", boxes(channels, block));
  const matrix = `(${column} / ${block}u)`;
  const rest = `(${matrix} / ${taps}u)`;
  const channel = `(${rest} % ${blocks} * ${block}u + ${column} % ${block}u)`;
  const natural = `(${rest} / ${blocks} * ${taps}u + ${matrix} % ${taps}u) * ${count} + ${channel}`;
  return channels % block === 0 && module.mode === "constant"
    ? natural
    : `select(${columns}, ${natural}, ${channel} < ${count})`;
}

/** Strides of a tensor with its channels innermost, in elements. */
export interface RingTensor {
  /** Channels of a group. */
  readonly channels: number;
  readonly batchStride: number;
  /** From a place of an axis to the next. */
  readonly strides: readonly number[];
  readonly vector: TileAccess["vector"];
}

/** WGSL that both operands share: names of the rows, the loop's state, and what a slot declares. */
interface RingText {
  readonly rows: readonly string[];
  readonly walk: LoaderState;
  /** A slot's row and image within the box. */
  high(slot: number): string;
  image(slot: number): string;
  /** Declares them for depth `row`. */
  declare(slot: number, row: string): string;
  /** Conditions under which they exist. */
  conditions(slot: number): string[];
}

/**
 * State of the loop: a step's place in its row, `{operand}_x`, the first row of its box along every other axis, `{operand}_row{d}`, and
 * its first image. Rows and images need no check where boxes divide them, except images of an operand that is loaded ahead.
 *
 * @param behind Steps that the operand is loaded ahead of the products; undefined where it is not.
 */
function ringText(
  module: ModuleBuilder,
  operand: "a" | "b",
  depth: RingDepth,
  behind?: number,
): RingText {
  const { axes, box, batch, joined } = depth;
  const last = axes.length - 1;
  const size = (name: string, value: number) => module.size(`ring_${name}`, value);
  const steps = rowSteps(depth);
  const width = size("width", steps.width);
  const outer = axes.slice(0, last).map(({ places }, d) => {
    const each = d === last - 1 ? box.rows : 1;
    return { name: `${operand}_row${d}`, each, count: boxes(places, each) };
  });
  const counts = outer.map(({ count }, d) => size(`boxes${d}`, count));
  const all = size("boxes", product(outer.map(({ count }) => count)));
  const next = (d: number): string => {
    if (d < 0) return `${operand}_image += ${box.images}u;`;
    const { name, each } = outer[d]!;
    return `${name} += ${each}u; if (${name} >= ${counts[d]} * ${each}u) { ${name} = 0u; ${
      next(d - 1)
    } }`;
  };
  // Of a row before the first where steps lie before all: its places are none, and the next row is the first. There are no more such
  // steps than a row has.
  const early = behind !== undefined;
  const step = early ? `(first_step + ${width} - ${size("behind", behind)})` : "first_step";
  const boxNames = [`${operand}_box`, ...outer.map((_, d) => `${operand}_box${d}`)];
  const begin = lines(
    `  var ${operand}_x = ${step} % ${width};`,
    outer.map(({ name }) => `  var ${name} = 0u;`),
    `  var ${operand}_image = 0u;`,
    "  {",
    digitsText(
      early ? `(${step} / ${width} + ${all} - 1u)` : `(${step} / ${width})`,
      `${operand}_first`,
      axisDigits(boxNames, ["", ...counts]),
      "    ",
    ),
    outer.map(({ name, each }, d) => `    ${name} = ${operand}_box${d} * ${each}u;`),
    `    ${operand}_image = ${operand}_box * ${box.images}u${early ? ` - ${box.images}u` : ""};`,
    "  }",
  );
  const rows = outer.map(({ name }) => name);
  const high = (slot: number) => `${operand}_high${slot}`;
  const image = (slot: number) => `${operand}_own_image${slot}`;
  const divides = (each: number, all: number) => module.mode === "constant" && all % each === 0;
  return {
    rows,
    walk: {
      begin,
      ...(joined && { rowBegin: `      ${operand}_x = ${early ? steps.ahead : 0}u;` }),
      advance: `      ${operand}_x += 1u; if (${operand}_x == ${width}) { ${operand}_x = 0u; ${
        next(last - 1)
      } }`,
    },
    high,
    image,
    declare: (slot, row) =>
      lines(
        `      let ${high(slot)} = ${row} % ${box.rows}u;`,
        `      let ${image(slot)} = ${row} / ${box.rows}u;`,
      ),
    conditions: (slot) => [
      ...(last === 0 || divides(box.rows, rowsOf(axes))
        ? []
        : [`${rows.at(-1)} + ${high(slot)} < ${size("rows", rowsOf(axes))}`]),
      ...(!early && divides(box.images, batch)
        ? []
        : [`${operand}_image + ${image(slot)} < ${size("batch", batch)}`]),
    ],
  };
}

/**
 * Loads with a predicate each, which is kept beside the loaded value, where there is any condition.
 *
 * @param load WGSL of the loaded value and of its conditions.
 */
function keptLoads(
  load: (placeSlot: number, depthSlot: number) => { value: string; conditions: readonly string[] },
): Pick<TileLoader, "load" | "mask"> {
  const keeps = load(0, 0).conditions.length > 0;
  return {
    ...(keeps && { mask: "per-load" }),
    load(placeSlot, depthSlot, target) {
      const { value, conditions } = load(placeSlot, depthSlot);
      return lines(
        `      ${target} = ${value};`,
        keeps && `      keep_${target} = ${conditions.join(" && ")};`,
      );
    },
  };
}

/** A of backward-filter by rows: channels of the output gradient at a step's places, zeros in idle steps. */
export function ringGradientLoader(
  module: ModuleBuilder,
  gradient: TensorAccess,
  depth: RingDepth,
  { channels, batchStride, strides, vector }: RingTensor,
): TileLoader {
  const { axes, joined } = depth;
  const last = axes.length - 1;
  const text = ringText(module, "a", depth);
  const size = (name: string, stride: number) => module.size(`gradient_${name}`, stride / vector);
  const images = size("batch_stride", batchStride);
  const step = strides.map((stride, d) => size(`step${d}`, stride));
  const far = [
    `a_image * ${images}`,
    ...text.rows.map((row, d) => `${row} * ${step[d]}`),
    `a_x * ${step[last]}`,
  ];
  return {
    access: { vector, value: gradient.value, along: "place" },
    state: { ...text.walk, step: `      let a_step_far = ${far.join(" + ")};` },
    place: (slot, row) =>
      `  let a_base${slot} = group * ${size("group", channels)} + ${row} / ${vector}u;`,
    depth(slot, row) {
      const rows = last === 0 ? "" : ` + ${text.high(slot)} * ${step[last - 1]}`;
      return lines(
        text.declare(slot, row),
        `      let a_far${slot} = a_step_far + (${text.image(slot)} * ${images}${rows});`,
      );
    },
    ...keptLoads((p, k) => ({
      value: gradient.load(`a_base${p} + a_far${k}`),
      conditions: [
        ...(joined ? [] : [`a_x < ${module.size("ring_places", axes[last]!.places)}`]),
        ...text.conditions(k),
      ],
    })),
  };
}

/**
 * B of backward-filter by rows: the input at the last tap of a step's places. Columns of the loaded tile are taps of the other axes and
 * channels.
 */
export function ringInputLoader(
  module: ModuleBuilder,
  input: TensorAccess,
  depth: RingDepth,
  { channels, batchStride, strides, vector }: RingTensor,
  columns: RingColumns,
): TileLoader {
  const { axes, joined } = depth;
  const last = axes.length - 1;
  const axis = axes[last]!;
  const reach = tapReach(axis);
  const { ahead } = rowSteps(depth);
  const text = ringText(module, "b", depth, reach - ahead);
  const { rows } = text;
  const size = (name: string, value: number) => module.size(`input_${name}`, value);
  const images = size("batch_stride", batchStride / vector);
  const step = strides.map((stride, d) => size(`step${d}`, stride / vector));
  const outer = range(last);
  const stride = outer.map((d) => size(`stride${d}`, axes[d]!.stride));
  const count = size("channels", channels);
  const padded = boxes(channels, columns.block) * columns.block;
  const inColumns = size("padded_channels", padded);
  const masked = padded !== channels || module.mode === "uniform";
  // Places of the state before the source's first.
  const lead = axis.padding + ahead - reach;
  const far = [
    `b_image * ${images}`,
    ...rows.map((row, d) => `${row} * ${stride[d]} * ${step[d]}`),
    `b_at * ${step[last]}`,
  ];
  return {
    access: { vector, value: input.value, along: "place", sharedTaps: ringOf(axis, joined) },
    state: {
      ...text.walk,
      step: lines(
        `      let b_at = b_x - ${size("lead", lead)};`,
        `      let b_step_far = ${far.join(" + ")};`,
      ),
    },
    place(slot, column) {
      const taps = outer.map((d) => `b_tap${slot}_${d}`);
      const digits = axisDigits(taps, outer.map((d) => size(`taps${d}`, axes[d]!.taps)));
      const shift = (d: number) => `b_shift${slot}_${d}`;
      return lines(
        `  let b_column${slot} = ${column};`,
        `  let b_channel${slot} = b_column${slot} % ${inColumns};`,
        digitsText(`(b_column${slot} / ${inColumns})`, `b_taps${slot}_`, digits),
        outer.map((d) =>
          `  let ${shift(d)} = ${taps[d]} * ${size(`dilation${d}`, axes[d]!.dilation)} - ${
            size(`padding${d}`, axes[d]!.padding)
          };`
        ),
        `  let b_base${slot} = ${
          [
            `group * ${size("group", channels / vector)}`,
            `b_channel${slot} / ${vector}u`,
            ...outer.map((d) => `${shift(d)} * ${step[d]}`),
          ].join(" + ")
        };`,
      );
    },
    depth(slot, row) {
      const own = last === 0 ? "" : ` + b_own${slot} * ${step[last - 1]}`;
      return lines(
        text.declare(slot, row),
        last > 0 && `      let b_own${slot} = ${text.high(slot)} * ${stride[last - 1]};`,
        `      let b_far${slot} = b_step_far + (${text.image(slot)} * ${images}${own});`,
      );
    },
    ...keptLoads((p, k) => ({
      value: input.load(`b_base${p} + b_far${k}`),
      // Unsigned sums: a coordinate below zero is huge. Offsets wrap the same way and meet again.
      conditions: [
        ...(joined ? [] : [`b_at < ${size(`size${last}`, axis.size)}`]),
        ...text.conditions(k),
        ...(masked ? [`b_channel${p} < ${count}`] : []),
        ...outer
          .filter((d) => module.mode === "uniform" || reachesOutside(axes[d]!, "forward"))
          .map((d) => {
            const own = d === last - 1 ? `(b_own${k} + b_shift${p}_${d})` : `b_shift${p}_${d}`;
            return `${rows[d]} * ${stride[d]} + ${own} < ${size(`size${d}`, axes[d]!.size)}`;
          }),
      ],
    })),
  };
}
