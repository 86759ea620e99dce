import type { ModuleBuilder, TensorAccess } from "../module.ts";
import { type CorrelationShape, correlationSizes, evenTiles } from "./correlation.ts";
import { digitsText } from "../axes.ts";
import { halvesTransformText } from "./halves_transform.ts";
import { type OperandPlace, OUTSIDE, storeItems } from "./image_loader.ts";
import type { StepLoader } from "../loop/step_loop.ts";
import { patchSize, type PatchTransform } from "./patch.ts";
import { scheduleItems } from "./policy.ts";
import { type UnitSlicePolicy, unitSliceThreads, unitSliceTile } from "./unit_policy.ts";

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
      shape.outer.map((axis, d) => ({
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

/** Where the columns of an operand's patches lie, in vectors of so many channels, as text. */
interface CorrelationColumns {
  /** Whether whole steps share a tile and a row: these are the same for every thread then, and so cheap. */
  readonly together: boolean;
  /** What says where a step lies, where its index does not. */
  readonly state?: Required<Pick<StepLoader, "begin" | "advance">> | undefined;
  /** From one column to the next. */
  readonly step: string;
  /** Columns that the operand has. */
  readonly edge: { readonly size: string; readonly value: number };
  /** WGSL of where a place of the tile lies in its group's channels. */
  base(place: string): string;
  /** Declares `{p}first{slot}`, the first column of each depth slot's patch, outside where it is none, and `{p}far{slot}`. */
  depths(slots: readonly number[]): string[];
}

function correlationColumns(
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
        ? outer.map((axis, d) => `${coordinate(slot, d)} < ${size(`size${d}`, axis.size)}`)
        : []),
    ].join(" && ");
    return [
      ...depthText(size, shape, p, slot, depth, counted),
      `let ${its("first")} = select(${OUTSIDE}, ${column}, ${inside});`,
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
    base: (place) =>
      `(group * ${stride(`${which}_channels`, channels)} + ${place}) * ${channelSize}`,
    depths: (slots) =>
      together
        ? [
          ...placeText(undefined),
          ...slots.flatMap((slot) => [
            `let ${p}first${slot} = ${p}first;`,
            `let ${p}far${slot} = ${p}far + ${p}depth${slot} * ${batchStride};`,
          ]),
        ]
        : slots.flatMap(placeText),
  };
}

/**
 * The two operands of WinRS: `gradient` patches of r columns of ∇Y, `input` patches of α columns of X; of a tensor of vectors four
 * patches at once, of neighbouring channels, which lie so in the tile (section 5.1 of the paper).
 */
export function correlationLoader(
  module: ModuleBuilder,
  tensor: TensorAccess,
  which: CorrelationOperand,
  shape: CorrelationShape,
  transform: PatchTransform,
  at: OperandPlace,
): StepLoader {
  const p = `${at.side}_`;
  const { vector } = tensor;
  const lie = correlationColumns(module, which, shape, at, vector);
  const schedule = scheduleItems(
    at.extent / vector,
    at.depth,
    at.threads,
    shape.channelsInner ? "place" : "depth",
  );
  const [, columns] = patchSize(transform);
  const firstName = at.side === "a" ? "first_row" : "first_column";
  const begin = [
    ...schedule.places.flatMap((place, slot) => [
      `  let ${p}place${slot} = ${vector === 1 ? place : `(${place}) * ${vector}u`};`,
      `  let ${p}base${slot} = ${
        lie.base(
          vector === 1
            ? `${firstName} + ${p}place${slot}`
            : `(${firstName} + ${p}place${slot}) / ${vector}u`,
        )
      };`,
    ]),
    ...schedule.depths.map((depth, slot) => `  let ${p}depth${slot} = ${depth};`),
  ].join("\n");
  const zero = vector === 1 ? "0.0f" : "vec4f()";
  const name = (item: number, j: number) => `${p}x${item}_${j}`;
  const registers = schedule.items.flatMap((_, item) => [
    ...Array.from({ length: columns }, (_, j) => `  var ${name(item, j)} = ${zero};`),
    `  var ${p}c${item} = 0u;`,
  ]).join("\n");
  const fetch = [
    ...lie.depths(schedule.depths.map((_, slot) => slot)),
    ...schedule.items.flatMap(({ placeSlot, depthSlot }, item) => [
      `${p}c${item} = ${p}first${depthSlot};`,
      ...Array.from(
        { length: columns },
        (_, j) =>
          `${name(item, j)} = ${
            tensor.load(`${p}base${placeSlot} + ${p}far${depthSlot} + ${j}u * ${lie.step}`)
          };`,
      ),
    ]),
  ].map((line) => `      ${line}`).join("\n");
  const { edge } = lie;
  const mask = (item: number, j: number) =>
    `select(${zero}, ${name(item, j)}, ${p}c${item} + ${j}u < ${edge.size})`;
  const each = (text: (j: number) => string) => Array.from({ length: columns }, (_, j) => text(j));
  const masked = storeItems(
    schedule,
    transform,
    at,
    (item) => each((j) => `let ${p}m${item}_${j} = ${mask(item, j)};`),
    (item, _, j) => `${p}m${item}_${j}`,
    vector,
  );
  // Threads agree on the tile then, so away from edges nothing needs a mask: 3 to 5 % of the time on an H200.
  const inner = () =>
    storeItems(schedule, transform, at, () => [], (item, _, j) => name(item, j), vector);
  const apart = lie.together && edge.value >= columns ? edge.value - columns : undefined;
  return {
    places: begin,
    // One operand's steps are the other's.
    ...(lie.state && (at.side === "a" ? lie.state : { begin: "", advance: "" })),
    registers,
    fetch: `    {\n${fetch}\n    }`,
    store: apart === undefined
      ? masked
      : vector === 1
      ? `    if (${p}c0 <= ${apart}u) {\n${inner()}\n    } else {\n${masked}\n    }`
      // One text of fewer instructions.
      : [
        `    if (${p}c0 > ${apart}u) {`,
        ...schedule.items.flatMap((_, item) =>
          each((j) => `      ${name(item, j)} = ${mask(item, j)};`)
        ),
        "    }",
        inner(),
      ].join("\n"),
  };
}

/** An operand of products on matrix units: where its patches come from, and how they are transformed. */
export interface UnitOperand {
  readonly which: CorrelationOperand;
  /** Of eight channels in four words. */
  readonly tensor: TensorAccess;
  readonly transform: PatchTransform;
}

/** Channels of a vector. */
const WIDE = 8;

/**
 * Both operands of WinRS in f16 for products on matrix units, of nhwc: a thread brings patches of eight neighbouring channels,
 * transforms them to halves and stores each slice's as a vector (section 5.1 of the paper). Their patches share registers, since a
 * warp brings those of one operand.
 */
export function unitCorrelationLoader(
  module: ModuleBuilder,
  operands: readonly [UnitOperand, UnitOperand],
  shape: CorrelationShape,
  policy: UnitSlicePolicy,
): StepLoader {
  const { depth } = policy;
  const threads = unitSliceThreads(policy);
  const tile = unitSliceTile(policy);
  const sides = (["a", "b"] as const).map((side, s) => {
    const { which, tensor, transform } = operands[s]!;
    const vectors = (side === "a" ? policy.rows : policy.columns) / WIDE;
    const lie = correlationColumns(module, which, shape, { side, depth }, WIDE);
    return { side, tensor, transform, vectors, lie, count: vectors * depth };
  });
  const [a, b] = sides as [typeof sides[0], typeof sides[0]];
  const rounds = Math.ceil((a.count + b.count) / threads);
  // Which threads of a round bring patches of which operand, and the first patch.
  const parts = Array.from(
    { length: rounds },
    (_, round) =>
      [{ ...a, from: 0 }, { ...b, from: a.count }].flatMap((one) => {
        const first = one.from - round * threads;
        const end = first + one.count;
        if (end <= 0 || first >= threads) return [];
        const inside = [
          ...(first > 0 ? [`t >= ${first}u`] : []),
          ...(end < threads ? [`t < ${end}u`] : []),
        ];
        return [{ ...one, round, inside, item: first > 0 ? `t - ${first}u` : `t + ${-first}u` }];
      }),
  ).flat();
  const columnsOf = ({ transform }: typeof a) => patchSize(transform)[1];
  const raw = (round: number, j: number) => `raw${round}_${j}`;
  const within = ({ inside }: typeof parts[0], lines: readonly string[]) =>
    [
      inside.length === 0 ? "    {" : `    if (${inside.join(" && ")}) {`,
      ...lines.map((line) => `      ${line}`),
      "    }",
    ].join("\n");
  const each = (one: typeof a, text: (j: number) => string) =>
    Array.from({ length: columnsOf(one) }, (_, j) => text(j));
  return {
    places: parts.flatMap(({ side, round, item, vectors, lie }) => {
      const p = `${side}_`;
      const first = side === "a" ? "first_row" : "first_column";
      return [
        `  let ${p}place${round} = (${item}) % ${vectors}u;`,
        `  let ${p}depth${round} = (${item}) / ${vectors}u;`,
        `  let ${p}base${round} = ${lie.base(`${first} / ${WIDE}u + ${p}place${round}`)};`,
      ];
    }).join("\n"),
    registers: Array.from({ length: rounds }, (_, round) => [
      ...Array.from(
        { length: Math.max(...parts.filter((one) => one.round === round).map(columnsOf)) },
        (_, j) => `  var ${raw(round, j)} = vec4<u32>();`,
      ),
      `  var edge${round} = 0u;`,
    ]).flat().join("\n"),
    fetch: parts.map((one) => {
      const { side, round, tensor, lie } = one;
      const p = `${side}_`;
      return within(one, [
        ...lie.depths([round]),
        `edge${round} = ${p}first${round};`,
        `let begin = ${p}base${round} + ${p}far${round};`,
        ...each(one, (j) => `${raw(round, j)} = ${tensor.load(`begin + ${j}u * ${lie.step}`)};`),
      ]);
    }).join("\n"),
    store: parts.map((one) => {
      const { side, round, transform, lie: { edge } } = one;
      const p = `${side}_`;
      const columns = columnsOf(one);
      const masks = each(
        one,
        (j) =>
          `${raw(round, j)} = select(vec4<u32>(), ${
            raw(round, j)
          }, edge${round} + ${j}u < ${edge.size});`,
      );
      const halves = ["xy", "zw"].map((half, h) => {
        const names = each(one, (j) => `${p}x${h}_${j}`);
        const { statements, outputs } = halvesTransformText(
          transform.columns,
          `${p}t${h}_`,
          names,
        );
        return {
          text: [
            ...names.map((value, j) =>
              `let ${value} = bitcast<vec4<f16>>(${raw(round, j)}.${half});`
            ),
            ...statements,
          ],
          outputs: outputs.map((value) => `bitcast<vec2<u32>>(${value})`),
        };
      });
      const [low, high] = halves as [typeof halves[0], typeof halves[0]];
      return within(one, [
        // Away from edges nothing needs a mask.
        ...(module.mode === "constant" && edge.value >= columns
          ? [`if (edge${round} > ${edge.value - columns}u) {`, ...masks, "}"]
          : masks),
        ...low.text,
        ...low.outputs.map((value, slice) => `let ${p}low${slice} = ${value};`),
        ...high.text,
        ...high.outputs.map((value, slice) =>
          `${
            tile.at(side, slice, `${p}depth${round}`, `${p}place${round}`)
          } = vec4<u32>(${p}low${slice}, ${value});`
        ),
      ]);
    }).join("\n"),
  };
}
