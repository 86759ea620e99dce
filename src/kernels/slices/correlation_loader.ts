import type { ModuleBuilder, TensorAccess } from "../module.ts";
import { type CorrelationShape, correlationSizes } from "./correlation.ts";
import { digitsText } from "../axes.ts";
import { type OperandPlace, OUTSIDE, storeItems } from "./image_loader.ts";
import type { StepLoader } from "../loop/step_loop.ts";
import { patchSize, type PatchTransform } from "./patch.ts";
import { scheduleItems } from "./policy.ts";

/** Declares tile, row coordinates and image of a depth index; tile and row of all of a step where it has no index. */
function depthText(
  module: ModuleBuilder,
  shape: CorrelationShape,
  p: string,
  slot: number | undefined,
  at: OperandPlace,
): string[] {
  const size = correlationSizes(module);
  const name = (what: string) => `${p}${what}${slot ?? ""}`;
  const index = name("index");
  const batch = slot === undefined ? `${shape.batch / at.depth}u` : size("batch", shape.batch);
  const [image, tile, row] = shape.imagesFirst
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
    `let ${index} = ${slot === undefined ? "at" : `at * ${at.depth}u + ${p}depth${slot}`};`,
    `let ${name("image")} = ${image};`,
    `let ${name("column")} = (tile_start + ${tile}) * ${shape.r}u + ${
      size("first_column", shape.firstColumn)
    };`,
    `let ${name("row")} = row_start + ${row};`,
    digitsText(
      name("row"),
      `${p}row_rest${slot ?? ""}_`,
      shape.outer.map((axis, d) => ({
        name: `${p}o${slot ?? ""}_${d}`,
        radix: size(`places${d}`, axis.places),
      })).reverse(),
      "    ",
    ),
  ];
}

/** The two operands of WinRS: `gradient` patches of r columns of ∇Y, `input` patches of α columns of X. */
export function correlationLoader(
  module: ModuleBuilder,
  tensor: TensorAccess,
  which: "gradient" | "input",
  shape: CorrelationShape,
  transform: PatchTransform,
  at: OperandPlace,
): StepLoader {
  const size = correlationSizes(module);
  const p = `${at.side}_`;
  const { outer, width } = shape;
  const input = which === "input";
  const channelStride = input ? shape.inputChannelStride : shape.gradientChannelStride;
  const channels = input ? shape.inChannels : shape.outChannels;
  const schedule = scheduleItems(
    at.extent,
    at.depth,
    at.threads,
    shape.channelsInner ? "place" : "depth",
  );
  const [, columns] = patchSize(transform);
  const firstName = at.side === "a" ? "first_row" : "first_column";
  const channelSize = size(`${which}_channel`, channelStride);
  const begin = [
    ...schedule.places.flatMap((place, slot) => [
      `  let ${p}place${slot} = ${place};`,
      `  let ${p}base${slot} = (group * ${
        size(`${which}_channels`, channels)
      } + ${firstName} + ${p}place${slot}) * ${channelSize};`,
    ]),
    ...schedule.depths.map((depth, slot) => `  let ${p}depth${slot} = ${depth};`),
  ].join("\n");
  const name = (item: number, j: number) => `${p}x${item}_${j}`;
  const registers = schedule.items.flatMap((_, item) => [
    ...Array.from({ length: columns }, (_, j) => `  var ${name(item, j)} = 0.0f;`),
    `  var ${p}c${item} = 0u;`,
  ]).join("\n");
  const axisStride = (d: number) => input ? outer[d]!.sourceStride : outer[d]!.gradientStride;
  // Where whole steps share a tile and a row, these are the same for every thread, and so cheap.
  const together = module.mode === "constant" && shape.imagesFirst && shape.batch > 0 &&
    shape.batch % at.depth === 0;
  const coordinate = (slot: number | undefined, d: number) => {
    const o = `${p}o${slot ?? ""}_${d}`;
    return input
      ? `(${o} * ${size(`stride${d}`, outer[d]!.stride)} + tap${d} * ${
        size(`dilation${d}`, outer[d]!.dilation)
      } - ${size(`padding${d}`, outer[d]!.padding)})`
      : o;
  };
  const widthStride = size(`${which}_width`, input ? width.sourceStride : width.gradientStride);
  const batchStride = size(
    `${which}_batch`,
    input ? shape.inputBatchStride : shape.gradientBatchStride,
  );
  const placeText = (slot: number | undefined) => {
    const its = (what: string) => `${p}${what}${slot ?? ""}`;
    const column = input
      ? `${its("column")} * ${size("width_stride", width.stride)} + piece * ${
        size("piece_step", shape.n * width.dilation)
      } - ${size("width_padding", width.padding)}`
      : its("column");
    const inside = [
      `${its("index")}${slot === undefined ? ` * ${at.depth}u` : ""} < depth_end`,
      ...(input
        ? outer.map((axis, d) => `${coordinate(slot, d)} < ${size(`size${d}`, axis.size)}`)
        : []),
    ].join(" && ");
    return [
      ...depthText(module, shape, p, slot, at),
      `let ${its("first")} = select(${OUTSIDE}, ${column}, ${inside});`,
      `let ${its("far")} = ${
        [
          `${its("image")} * ${slot === undefined ? `${at.depth}u * ` : ""}${batchStride}`,
          ...outer.map((_, d) =>
            `${coordinate(slot, d)} * ${size(`${which}_step${d}`, axisStride(d))}`
          ),
          `(${column}) * ${widthStride}`,
        ].join(" + ")
      };`,
    ];
  };
  const depthSlots = together
    ? [
      ...placeText(undefined),
      ...schedule.depths.flatMap((_, slot) => [
        `let ${p}first${slot} = ${p}first;`,
        `let ${p}far${slot} = ${p}far + ${p}depth${slot} * ${batchStride};`,
      ]),
    ]
    : schedule.depths.flatMap((_, slot) => placeText(slot));
  const fetch = [
    ...depthSlots,
    ...schedule.items.flatMap(({ placeSlot, depthSlot }, item) => [
      `${p}c${item} = ${p}first${depthSlot};`,
      ...Array.from(
        { length: columns },
        (_, j) =>
          `${name(item, j)} = ${
            tensor.load(`${p}base${placeSlot} + ${p}far${depthSlot} + ${j}u * ${widthStride}`)
          };`,
      ),
    ]),
  ].map((line) => `      ${line}`).join("\n");
  const edgeSize = input ? width.size : width.places;
  const edge = size(`${which}_edge`, edgeSize);
  const masked = storeItems(
    schedule,
    transform,
    at,
    (item) =>
      Array.from(
        { length: columns },
        (_, j) =>
          `let ${p}m${item}_${j} = select(0.0f, ${name(item, j)}, ${p}c${item} + ${j}u < ${edge});`,
      ),
    (item, _, j) => `${p}m${item}_${j}`,
  );
  // Threads agree on the tile then, so away from edges nothing needs a mask: 3 to 5 % of the time on an H200.
  const inner = () => storeItems(schedule, transform, at, () => [], (item, _, j) => name(item, j));
  return {
    places: begin,
    registers,
    fetch: `    {\n${fetch}\n    }`,
    store: together && edgeSize >= columns
      ? `    if (${p}c0 <= ${edgeSize - columns}u) {\n${inner()}\n    } else {\n${masked}\n    }`
      : masked,
  };
}
