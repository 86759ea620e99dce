/** Where the columns of WinRS' patches lie. */
import type { ModuleBuilder } from "../module.ts";
import { digitsText } from "../axes.ts";
import type { StepLoader } from "../loop/step_loop.ts";
import {
  type CorrelationShape,
  correlationSizes,
  evenTiles,
  isTiled,
  outerUnits,
} from "./correlation.ts";
import { type OperandPlace, OUTSIDE } from "./image_loader.ts";

/**
 * Where a step lies, of steps that share a tile and a row: among those of its tile and row, its tile and its row, which are counted
 * where they would else be quotients of its index that its loads wait for.
 */
function stepState(
  { batch }: CorrelationShape,
  depth: number,
): Required<Pick<StepLoader, "begin" | "advance">> {
  return {
    begin: "  var step_image = 0u;\n  var step_tile = 0u;\n  var step_row = 0u;",
    advance: [
      "    step_image++;",
      `    if (step_image == ${batch / depth}u) {`,
      "      step_image = 0u;",
      "      step_tile++;",
      "      if (step_tile == tile_count) {",
      "        step_tile = 0u;",
      "        step_row++;",
      "      }",
      "    }",
    ].join("\n"),
  };
}

/** Tile, row coordinates and image of a depth index; tile and row of all of a step where it has no index. */
function depthText(
  size: Sizes,
  shape: CorrelationShape,
  p: string,
  slot: number | undefined,
  depth: number,
  counted: boolean,
): string[] {
  const name = (what: string) => `${p}${what}${slot ?? ""}`;
  const index = name("index");
  const batch = slot === undefined ? `${shape.batch / depth}u` : size("batch", shape.batch);
  const [image, tile, row] = counted
    ? ["step_image", "step_tile", "step_row"]
    : shape.imagesFirst
    ? [
      `${index} % ${batch}`,
      `(${index} / ${batch}) % tile_count`,
      `(${index} / ${batch}) / tile_count`,
    ]
    : [
      `(${index} / tile_count) % ${batch}`,
      `${index} % tile_count`,
      `(${index} / tile_count) / ${batch}`,
    ];
  return [
    ...(counted
      ? []
      : [`let ${index} = ${slot === undefined ? "at" : `at * ${depth}u + ${p}depth${slot}`};`]),
    `let ${name("image")} = ${image};`,
    `let ${name("column")} = (tile_start + ${tile}) * ${shape.r}u + ${
      size("first_column", shape.firstColumn)
    };`,
    `let ${name("row")} = row_start + ${row};`,
    digitsText(
      name("row"),
      `${p}row_rest${slot ?? ""}_`,
      outerUnits(shape).map((axis, d) => ({
        name: `${p}o${slot ?? ""}_${d}`,
        radix: size(`places${d}`, axis.places),
      })).reverse(),
      "    ",
    ),
  ];
}

type Sizes = (name: string, value: number) => string;

/** An operand of WinRS: patches of r columns of ∇Y, or of α columns of X. */
export type CorrelationOperand = "gradient" | "input";

/** How many columns or rows there are. */
interface Edge {
  readonly size: string;
  readonly value: number;
}

/** Where the columns of an operand's patches lie, in vectors of so many channels, as text. */
export interface CorrelationColumns {
  /** Whether whole steps share a tile and a row: these are the same for every thread then, and so cheap. */
  readonly together: boolean;
  /** What says where a step lies, where its index does not. */
  readonly state?: Required<Pick<StepLoader, "begin" | "advance">> | undefined;
  /** From one column to the next. */
  readonly step: string;
  /** Columns that the operand has. */
  readonly edge: Edge;
  /** Rows that it has, and from one to the next, where patches have rows. */
  readonly rows?: Edge & { readonly step: string } | undefined;
  /** WGSL of where a place of the tile lies in its group's channels. */
  base(place: string): string;
  /**
   * Declares `{p}first{slot}`, the first column of each depth slot's patch, outside where it is none, `{p}line{slot}`, its first row,
   * where patches have rows, and `{p}far{slot}`.
   */
  depths(slots: readonly number[]): string[];
}

export function correlationColumns(
  module: ModuleBuilder,
  which: CorrelationOperand,
  shape: CorrelationShape,
  { side, depth }: Pick<OperandPlace, "side" | "depth">,
  vector: 1 | 4 | 8,
): CorrelationColumns {
  const own = correlationSizes(module, vector === 1 ? "winrs" : "winrs_wide");
  const size = own;
  const stride = (name: string, value: number) => own(name, value / vector);
  const p = `${side}_`;
  const { outer, width } = shape;
  const input = which === "input";
  const channelStride = input ? shape.inputChannelStride : shape.gradientChannelStride;
  const channels = input ? shape.inChannels : shape.outChannels;
  // Vectors are of neighbouring channels.
  const channelSize = vector === 1 ? own(`${which}_channel`, channelStride) : "1u";
  const axisStride = (d: number) => input ? outer[d]!.sourceStride : outer[d]!.gradientStride;
  const together = module.mode === "constant" && shape.imagesFirst && shape.batch > 0 &&
    shape.batch % depth === 0;
  // Of tiles that a number divides evenly, and of vectors, an index takes as long.
  const counted = together && vector === 1 && !evenTiles(module, shape);
  const coordinate = (slot: number | undefined, d: number) => {
    const o = `${p}o${slot ?? ""}_${d}`;
    const { n, r } = shape.tiledRows ?? { n: 1, r: 1 };
    if (isTiled(shape, d)) {
      return input
        ? `(${o} * ${r}u + tap${d} * ${n}u - ${size(`padding${d}`, outer[d]!.padding)})`
        : `(${o} * ${r}u)`;
    }
    return input
      ? `(${o} * ${size(`stride${d}`, outer[d]!.stride)} + tap${d} * ${
        size(`dilation${d}`, outer[d]!.dilation)
      } - ${size(`padding${d}`, outer[d]!.padding)})`
      : o;
  };
  const step = stride(`${which}_width`, input ? width.sourceStride : width.gradientStride);
  const batchStride = stride(
    `${which}_batch`,
    input ? shape.inputBatchStride : shape.gradientBatchStride,
  );
  const rowAxis = outer.length - 1;
  const lines = shape.tiledRows && outer[rowAxis]![input ? "size" : "places"];
  const rows = lines === undefined ? undefined : {
    size: size(`${which}_lines`, lines),
    value: lines,
    step: stride(`${which}_step${rowAxis}`, axisStride(rowAxis)),
  };
  const placeText = (slot: number | undefined) => {
    const its = (what: string) => `${p}${what}${slot ?? ""}`;
    const column = input
      ? `${its("column")} * ${size("width_stride", width.stride)} + piece * ${
        size("piece_step", shape.n * width.dilation)
      } - ${size("width_padding", width.padding)}`
      : its("column");
    const inside = [
      counted
        ? `${its("row")} < row_end`
        : `${its("index")}${slot === undefined ? ` * ${depth}u` : ""} < depth_end`,
      ...(input
        ? outer.flatMap((axis, d) =>
          isTiled(shape, d) ? [] : [`${coordinate(slot, d)} < ${size(`size${d}`, axis.size)}`]
        )
        : []),
    ].join(" && ");
    return [
      ...depthText(size, shape, p, slot, depth, counted),
      `let ${its("first")} = select(${OUTSIDE}, ${column}, ${inside});`,
      ...(rows === undefined ? [] : [`let ${its("line")} = ${coordinate(slot, rowAxis)};`]),
      `let ${its("far")} = ${
        [
          `${its("image")} * ${slot === undefined ? `${depth}u * ` : ""}${batchStride}`,
          ...outer.map((_, d) =>
            `${coordinate(slot, d)} * ${stride(`${which}_step${d}`, axisStride(d))}`
          ),
          `(${column}) * ${step}`,
        ].join(" + ")
      };`,
    ];
  };
  const edge = input ? width.size : width.places;
  return {
    together,
    state: counted ? stepState(shape, depth) : undefined,
    step,
    edge: { size: size(`${which}_edge`, edge), value: edge },
    rows,
    base: (place) =>
      `(group * ${stride(`${which}_channels`, channels)} + ${place}) * ${channelSize}`,
    depths: (slots) =>
      together
        ? [
          ...placeText(undefined),
          ...slots.flatMap((slot) => [
            `let ${p}first${slot} = ${p}first;`,
            ...(rows === undefined ? [] : [`let ${p}line${slot} = ${p}line;`]),
            `let ${p}far${slot} = ${p}far + ${p}depth${slot} * ${batchStride};`,
          ]),
        ]
        : slots.flatMap(placeText),
  };
}
