import type { ModuleBuilder, TensorAccess } from "../module.ts";
import { decompose } from "./decompose.ts";
import { type OperandPlace, OUTSIDE, storeItems } from "./image_loader.ts";
import type { SliceLoader, SliceStore } from "./loop.ts";
import { patchSize, type PatchTransform } from "./patch.ts";
import { scheduleItems } from "./policy.ts";

/** An axis whose filter taps are rows of ∇W of their own. Strides are in elements. */
export interface CorrelationAxis {
  readonly size: number;
  readonly places: number;
  readonly taps: number;
  readonly stride: number;
  readonly dilation: number;
  readonly padding: number;
  readonly inputStride: number;
  readonly gradientStride: number;
  readonly filterStride: number;
}

/**
 * One kernel's share of a backward-filter problem (WinRS): segments of ∇Y in a grid, each cut into tiles of r
 * columns along the width, of which F(n,r) makes n columns of ∇W.
 */
export interface CorrelationShape {
  readonly batch: number;
  readonly groups: number;
  /** Of a group. */
  readonly outChannels: number;
  readonly inChannels: number;
  readonly inputBatchStride: number;
  readonly inputChannelStride: number;
  readonly gradientBatchStride: number;
  readonly gradientChannelStride: number;
  readonly filterOutStride: number;
  readonly filterInStride: number;
  /** Outermost first; the outermost's rows without input are clipped. */
  readonly outer: readonly CorrelationAxis[];
  readonly width: CorrelationAxis;
  readonly n: number;
  readonly r: number;
  /** Tiles of a row, the first one's column, and the segments that share them. */
  readonly tiles: number;
  readonly firstColumn: number;
  readonly segmentColumns: number;
  readonly segmentRows: number;
  /** Bucket of the first segment of row 0, and of how many a row has. */
  readonly firstBucket: number;
  readonly bucketColumns: number;
  /** Images follow each other fastest along the depth; tiles of a row otherwise (nchw). */
  readonly imagesFirst: boolean;
  /** Channels lie together in memory (nhwc), so neighbouring threads bring neighbouring channels. */
  readonly channelsInner: boolean;
}

const product = (values: readonly number[]) => values.reduce((all, one) => all * one, 1);

/** Independent products: pieces of the filter's width, its rows, groups, segments. */
export function correlationBatches(shape: CorrelationShape): number {
  return Math.ceil(shape.width.taps / shape.n) * product(shape.outer.map(({ taps }) => taps)) *
    shape.groups * shape.segmentRows * shape.segmentColumns;
}

/** Sizes of a {@linkcode CorrelationShape} as WGSL. */
function sizes(module: ModuleBuilder) {
  return (name: string, value: number) => module.size(`winrs_${name}`, value >>> 0);
}

/** Sizes that stay out of the text, so that any number of segments runs the same kernel. */
function parameters(module: ModuleBuilder) {
  return (name: string, value: number) => module.parameter(`winrs_${name}`, value >>> 0);
}

/** Declares piece, filter row, group and segment of a batch, and the depth that its rows, tiles and images make. */
export function correlationBatchText(module: ModuleBuilder, shape: CorrelationShape): string {
  const [size, vary] = [sizes(module), parameters(module)];
  const { outer, width } = shape;
  const rows = product(outer.map(({ places }) => places));
  const [outermost, ...inner] = outer;
  const innerRows = product(inner.map(({ places }) => places));
  const digits = [
    { name: "piece", radix: size("pieces", Math.ceil(width.taps / shape.n)) },
    ...outer.map((axis, d) => ({ name: `tap${d}`, radix: size(`taps${d}`, axis.taps) })).reverse(),
    { name: "group", radix: size("groups", shape.groups) },
    { name: "segment_column", radix: vary("segment_columns", shape.segmentColumns) },
    { name: "segment_row", radix: vary("segment_rows", shape.segmentRows) },
  ];
  const tiles = size("tiles", shape.tiles);
  // With sizes in a uniform one text serves all.
  const even = module.mode === "constant" && shape.tiles % shape.segmentColumns === 0;
  // Rows of the gradient that meet the input in this row of the filter: start·stride + tap·dilation − padding >= 0.
  const clip = outermost === undefined ? [] : [
    `  let clip_at = i32(tap0 * ${size("dilation0", outermost.dilation)}) - ${
      size("padding0", outermost.padding)
    };`.replace(/- (.*);$/, "- i32($1);"),
    `  let clip_stride = i32(${size("stride0", outermost.stride)});`,
    `  let clip_start = u32(max(0, (clip_stride - 1 - clip_at) / clip_stride)) * ${
      size("inner_rows", innerRows)
    };`,
    `  let clip_end = u32(max(0, (i32(${
      size("size0", outermost.size)
    }) - clip_at + clip_stride - 1) / clip_stride)) * ${size("inner_rows", innerRows)};`,
    `  let row_start = max(segment_start, clip_start);`,
    `  let row_end = max(row_start, min(segment_end, clip_end));`,
  ];
  return [
    decompose("batch", "batch_rest", digits),
    `  let bucket = segment_row * ${
      vary("bucket_columns", shape.bucketColumns)
    } + segment_column + ${vary("first_bucket", shape.firstBucket)};`,
    `  let tile_start = segment_column * ${tiles} / ${
      vary("segment_columns", shape.segmentColumns)
    };`,
    even
      ? `  let tile_count = ${size("segment_tiles", shape.tiles / shape.segmentColumns)};`
      : `  let tile_count = (segment_column + 1u) * ${tiles} / ${
        vary("segment_columns", shape.segmentColumns)
      } - tile_start;`,
    `  let segment_start = segment_row * ${size("rows", rows)} / ${
      vary("segment_rows", shape.segmentRows)
    };`,
    `  let segment_end = (segment_row + 1u) * ${size("rows", rows)} / ${
      vary("segment_rows", shape.segmentRows)
    };`,
    ...(outermost === undefined
      ? ["  let row_start = segment_start;", "  let row_end = segment_end;"]
      : clip),
    `  let depth_end = (row_end - row_start) * tile_count * ${size("batch", shape.batch)};`,
  ].join("\n");
}

/** Declares tile, row coordinates and image of a depth index; tile and row of all of a step where it has no index. */
function depthText(
  module: ModuleBuilder,
  shape: CorrelationShape,
  p: string,
  slot: number | undefined,
  at: OperandPlace,
): string[] {
  const size = sizes(module);
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
    decompose(
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
): SliceLoader {
  const size = sizes(module);
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
  const axisStride = (d: number) => input ? outer[d]!.inputStride : outer[d]!.gradientStride;
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
  const widthStride = size(`${which}_width`, input ? width.inputStride : width.gradientStride);
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
  const edge = size(`${which}_edge`, input ? width.size : width.places);
  return {
    declarations: "",
    begin,
    registers,
    fetch: `    {\n${fetch}\n    }`,
    store: storeItems(
      schedule,
      transform,
      at,
      (item) =>
        Array.from(
          { length: columns },
          (_, j) =>
            `let ${p}m${item}_${j} = select(0.0f, ${
              name(item, j)
            }, ${p}c${item} + ${j}u < ${edge});`,
        ),
      (item, _, j) => `${p}m${item}_${j}`,
    ),
  };
}

/**
 * Stores n columns of ∇W for four input channels of an output channel: into ∇W itself for bucket 0, into the
 * workspace for the others.
 *
 * @param buckets Where buckets 1 and on lie one after the other, if there are any.
 * @param adding Whether a bucket already holds a part: `always` for a second kernel on the first one's buckets,
 *   `again` where the loop stores its sums in parts.
 */
export function correlationStore(
  module: ModuleBuilder,
  result: TensorAccess,
  buckets: TensorAccess | undefined,
  shape: CorrelationShape,
  elements: number,
  adding: "never" | "again" | "always",
): SliceStore {
  const size = sizes(module);
  const { outer, width, n } = shape;
  const vector = result.vector;
  const text = (outputs: readonly string[]) => {
    const lines = outputs.map((value, j) => `      let out${j} = ${value};`);
    const base = [
      `(group * ${size("gradient_channels", shape.outChannels)} + row) * ${
        size("filter_out", shape.filterOutStride)
      }`,
      ...outer.map((axis, d) => `tap${d} * ${size(`filter_step${d}`, axis.filterStride)}`),
      `piece * ${size("filter_piece", n * width.filterStride)}`,
    ].join(" + ");
    lines.push(`      let base = ${base};`);
    const put = (tensor: TensorAccess, offset: string, value: string) => {
      const sum = tensor.store(offset, `${tensor.load(offset)} + ${value}`);
      if (adding === "always") return sum;
      const first = tensor.store(offset, value);
      return adding === "never" ? first : `if (again) { ${sum} } else { ${first} }`;
    };
    const each = Array.from({ length: n }, (_, j) => {
      const parts = vector === 4 ? [`out${j}`] : [..."xyzw"].map((c) => `out${j}.${c}`);
      return parts.map((value, x) => {
        const column = vector === 4 ? "column" : `(column + ${x}u)`;
        const offset = `base + ${j}u * ${size("filter_width", width.filterStride)} + ${column} * ${
          size("filter_in", shape.filterInStride)
        }`;
        const to = (shift: string) =>
          vector === 4 ? `(${offset}${shift}) / 4u` : `${offset}${shift}`;
        const rest = `(bucket - 1u) * ${size("filter_elements", elements)}`;
        const body = buckets === undefined
          ? put(result, to(""), value)
          : `if (bucket == 0u) { ${put(result, to(""), value)} } else { ${
            put(buckets, to(` + ${rest}`), value)
          } }`;
        const inside = [
          `${column} < ${size("input_channels", shape.inChannels)}`,
          ...(width.taps % n === 0
            ? []
            : [`piece * ${n}u + ${j}u < ${size("width_taps", width.taps)}`]),
        ].join(" && ");
        return `        if (${inside}) { ${body} }`;
      }).join("\n");
    });
    lines.push(
      `      if (row < ${size("gradient_channels", shape.outChannels)}) {`,
      ...each,
      "      }",
    );
    return lines.join("\n");
  };
  return { declarations: "", text };
}
