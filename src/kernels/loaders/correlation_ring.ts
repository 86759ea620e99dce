import { range } from "../lists.ts";
import { axisDigits, digitsText, reachesOutside } from "../axes.ts";
import { tapReach, type TileLoader } from "../loader.ts";
import type { ModuleBuilder, TensorAccess } from "../module.ts";
import { boxes, type RingColumns, type RingDepth, rowsOf, rowSteps, tapRingOf } from "./rings.ts";

/** Strides of a tensor with its channels innermost, in elements. */
export interface RingTensor {
  /** Channels of a group. */
  readonly channels: number;
  readonly batchStride: number;
  /** From a place of an axis to the next. */
  readonly strides: readonly number[];
  readonly vector: TileLoader["vector"];
}

interface RingOperand {
  readonly operand: "a" | "b";
  readonly module: ModuleBuilder;
  readonly depth: RingDepth;
  /** Of what a step multiplies more than its own tile of: steps from the first of these tiles to the step. */
  readonly behind?: number;
}

/** Names of sizes that both operands share. */
function ringSize(module: ModuleBuilder) {
  return (name: string, value: number) => module.size(`ring_${name}`, value);
}

/**
 * State of the loop: the place in its row of a step, `{operand}_x`, the first row of its box along every other axis,
 * `{operand}_row{d}`, and its first image.
 */
function ringState({ operand, module, depth, behind }: RingOperand) {
  const { axes, box } = depth;
  const last = axes.length - 1;
  const size = ringSize(module);
  const steps = rowSteps(depth);
  const width = size("width", steps.width);
  const outer = axes.slice(0, last).map(({ places }, d) => ({
    name: `${operand}_row${d}`,
    each: d === last - 1 ? box.rows : 1,
    places,
  }));
  const counts = outer.map(({ places, each }, d) => size(`boxes${d}`, boxes(places, each)));
  const all = size("boxes", outer.reduce((n, { places, each }) => n * boxes(places, each), 1));
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
  const begin = [
    `  var ${operand}_x = ${step} % ${width};`,
    ...outer.map(({ name }) => `  var ${name} = 0u;`),
    `  var ${operand}_image = 0u;`,
    "  {",
    digitsText(
      early ? `(${step} / ${width} + ${all} - 1u)` : `(${step} / ${width})`,
      `${operand}_first`,
      axisDigits(
        [`${operand}_box`, ...outer.map((_, d) => `${operand}_box${d}`)],
        ["", ...counts],
      ),
      "    ",
    ),
    ...outer.map(({ name, each }, d) => `    ${name} = ${operand}_box${d} * ${each}u;`),
    `    ${operand}_image = ${operand}_box * ${box.images}u${early ? ` - ${box.images}u` : ""};`,
    "  }",
  ].join("\n");
  return {
    begin,
    rows: outer.map(({ name }) => name),
    walk: {
      ...(depth.joined && {
        rowBegin: `      ${operand}_x = ${early ? steps.ahead : 0}u;`,
      }),
      advance: `      ${operand}_x += 1u; if (${operand}_x == ${width}) { ${operand}_x = 0u; ${
        next(last - 1)
      } }`,
      placeStep: () => "",
    },
  };
}

/**
 * Loads whose mask is of the step that they are of, and so kept with what is loaded, where there is any.
 *
 * @param load WGSL of what a load gives, and of what it is kept by.
 */
function keptLoads(
  load: (placeSlot: number, depthSlot: number) => { value: string; conditions: readonly string[] },
): Pick<TileLoader, "load" | "keeps"> {
  if (load(0, 0).conditions.length === 0) {
    return { load: (p, k, target) => `      ${target} = ${load(p, k).value};` };
  }
  return {
    keeps: true,
    load(placeSlot, depthSlot, target) {
      const { value, conditions } = load(placeSlot, depthSlot);
      return `      ${target} = ${value};\n      keep_${target} = ${conditions.join(" && ")};`;
    },
  };
}

/**
 * What of a step's depth lies in a box, as WGSL: the row and the image of the box that depth `row` is of, and the conditions under
 * which there are such. Where boxes divide rows and images there are all, but of an operand whose state leaves the last box before the
 * products do, whose images end.
 */
function ringBox({ operand, module, depth, behind }: RingOperand, rows: readonly string[]) {
  const { axes, box, batch } = depth;
  const size = ringSize(module);
  const divides = (each: number, all: number) => module.mode === "constant" && all % each === 0;
  const high = (slot: number) => `${operand}_high${slot}`;
  const image = (slot: number) => `${operand}_own_image${slot}`;
  return {
    high,
    image,
    depth: (slot: number, row: string) => [
      `      let ${high(slot)} = ${row} % ${box.rows}u;`,
      `      let ${image(slot)} = ${row} / ${box.rows}u;`,
    ],
    conditions: (slot: number) => [
      ...(axes.length === 1 || divides(box.rows, rowsOf(axes))
        ? []
        : [`${rows.at(-1)} + ${high(slot)} < ${size("rows", rowsOf(axes))}`]),
      ...(behind === undefined && divides(box.images, batch)
        ? []
        : [`${operand}_image + ${image(slot)} < ${size("batch", batch)}`]),
    ],
  };
}

/** A of backward-filter by rows: channels of the output gradient at the places of a step, zeros where it is idle. */
export function ringGradientLoader(
  module: ModuleBuilder,
  gradient: TensorAccess,
  depth: RingDepth,
  { channels, batchStride, strides, vector }: RingTensor,
): TileLoader {
  const { axes } = depth;
  const last = axes.length - 1;
  const operand: RingOperand = { operand: "a", module, depth };
  const { begin, rows, walk } = ringState(operand);
  const box = ringBox(operand, rows);
  const elements = (name: string, stride: number) =>
    module.size(`gradient_${name}`, stride / vector);
  const images = elements("batch_stride", batchStride);
  const step = strides.map((stride, d) => elements(`step${d}`, stride));
  return {
    vector,
    value: gradient.value,
    along: "place",
    ...walk,
    begin,
    step: `      let a_step_far = ${
      [
        `a_image * ${images}`,
        ...rows.map((row, d) => `${row} * ${step[d]}`),
        `a_x * ${step[last]}`,
      ].join(" + ")
    };`,
    place: (slot, row) =>
      `  let a_base${slot} = group * ${elements("group", channels)} + ${row} / ${vector}u;`,
    depth: (slot, row) =>
      [
        ...box.depth(slot, row),
        `      let a_far${slot} = a_step_far + (${
          [
            `${box.image(slot)} * ${images}`,
            ...(last === 0 ? [] : [`${box.high(slot)} * ${step[last - 1]}`]),
          ].join(" + ")
        });`,
      ].join("\n"),
    ...keptLoads((p, k) => ({
      value: gradient.load(`a_base${p} + a_far${k}`),
      conditions: [
        ...(depth.joined ? [] : [`a_x < ${ringSize(module)("places", axes[last]!.places)}`]),
        ...box.conditions(k),
      ],
    })),
  };
}

/**
 * B of backward-filter by rows: the input where the last taps of the step's places lie; columns of the loaded tile are of taps of the
 * other axes and channels.
 */
export function ringInputLoader(
  module: ModuleBuilder,
  input: TensorAccess,
  depth: RingDepth,
  { channels, batchStride, strides, vector }: RingTensor,
  columns: RingColumns,
): TileLoader {
  const { axes } = depth;
  const last = axes.length - 1;
  const axis = axes[last]!;
  const reach = tapReach(axis);
  const { ahead } = rowSteps(depth);
  const operand: RingOperand = { operand: "b", module, depth, behind: reach - ahead };
  const { begin, rows, walk } = ringState(operand);
  const box = ringBox(operand, rows);
  const named = (name: string, value: number) => module.size(`input_${name}`, value);
  const elements = (name: string, stride: number) => named(name, stride / vector);
  const images = elements("batch_stride", batchStride);
  const step = strides.map((stride, d) => elements(`step${d}`, stride));
  const outer = range(rows.length);
  const stride = outer.map((d) => named(`stride${d}`, axes[d]!.stride));
  const count = named("channels", channels);
  const padded = boxes(channels, columns.block) * columns.block;
  const inColumns = named("padded_channels", padded);
  const masked = padded !== channels || module.mode === "uniform";
  // Places of the state before the source's first.
  const lead = axis.padding + ahead - reach;
  return {
    vector,
    value: input.value,
    along: "place",
    tapRing: tapRingOf(axis, depth.joined),
    ...walk,
    begin,
    step: [
      `      let b_at = b_x - ${named("lead", lead)};`,
      `      let b_step_far = ${
        [
          `b_image * ${images}`,
          ...rows.map((row, d) => `${row} * ${stride[d]} * ${step[d]}`),
          `b_at * ${step[last]}`,
        ].join(" + ")
      };`,
    ].join("\n"),
    place: (slot, column) =>
      [
        `  let b_column${slot} = ${column};`,
        `  let b_channel${slot} = b_column${slot} % ${inColumns};`,
        digitsText(
          `(b_column${slot} / ${inColumns})`,
          `b_taps${slot}_`,
          axisDigits(
            outer.map((d) => `b_tap${slot}_${d}`),
            outer.map((d) => named(`taps${d}`, axes[d]!.taps)),
          ),
        ),
        ...outer.map((d) =>
          `  let b_shift${slot}_${d} = b_tap${slot}_${d} * ${
            named(`dilation${d}`, axes[d]!.dilation)
          } - ${named(`padding${d}`, axes[d]!.padding)};`
        ),
        `  let b_base${slot} = ${
          [
            `group * ${elements("group", channels)}`,
            `b_channel${slot} / ${vector}u`,
            ...outer.map((d) => `b_shift${slot}_${d} * ${step[d]}`),
          ].join(" + ")
        };`,
      ].join("\n"),
    depth: (slot, row) =>
      [
        ...box.depth(slot, row),
        ...(last === 0
          ? []
          : [`      let b_own${slot} = ${box.high(slot)} * ${stride[last - 1]};`]),
        `      let b_far${slot} = b_step_far + (${
          [
            `${box.image(slot)} * ${images}`,
            ...(last === 0 ? [] : [`b_own${slot} * ${step[last - 1]}`]),
          ].join(" + ")
        });`,
      ].join("\n"),
    ...keptLoads((p, k) => ({
      value: input.load(`b_base${p} + b_far${k}`),
      // Unsigned sums: a coordinate below zero is huge. Offsets wrap the same way and meet again.
      conditions: [
        ...(depth.joined ? [] : [`b_at < ${named(`size${last}`, axis.size)}`]),
        ...box.conditions(k),
        ...(masked ? [`b_channel${p} < ${count}`] : []),
        ...outer
          .filter((d) => module.mode === "uniform" || reachesOutside(axes[d]!, "forward"))
          .map((d) => {
            const own = d === last - 1 ? `(b_own${k} + b_shift${p}_${d})` : `b_shift${p}_${d}`;
            return `${rows[d]} * ${stride[d]} + ${own} < ${named(`size${d}`, axes[d]!.size)}`;
          }),
      ],
    })),
  };
}
