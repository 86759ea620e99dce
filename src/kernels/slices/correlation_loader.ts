import { masked, zeroOf } from "../../elements/scalar.ts";
import { lines, range } from "../lists.ts";
import type { OperandLoader } from "../loop/mainloop.ts";
import type { ModuleBuilder, TensorAccess } from "../module.ts";
import {
  correlationColumns,
  type CorrelationOperand,
  type CorrelationShape,
  correlationSizes,
  isTiled,
} from "./correlation.ts";
import type { SliceStore } from "./exchange.ts";
import { type OperandPlace, storeItems } from "./image.ts";
import { halvesTransformText, patchSize, type PatchTransform, readsRow } from "./patch.ts";
import { scheduleItems } from "./policy.ts";
import { type UnitSlicePolicy, unitSliceThreads, unitSliceTile } from "./unit_loop.ts";

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
): OperandLoader {
  const p = `${at.side}_`;
  const { vector } = tensor;
  const lie = correlationColumns(module, which, shape, at, vector);
  const schedule = scheduleItems(
    at.extent / vector,
    at.depth,
    at.threads,
    shape.channelsInner ? "place" : "depth",
  );
  const [rows, columns] = patchSize(transform);
  const firstName = at.side === "a" ? "first_row" : "first_column";
  const begin = lines(
    schedule.places.map((place, slot) => {
      const first = `${firstName} + ${p}place${slot}`;
      return [
        `  let ${p}place${slot} = ${vector === 1 ? place : `(${place}) * ${vector}u`};`,
        `  let ${p}base${slot} = ${lie.base(vector === 1 ? first : `(${first}) / ${vector}u`)};`,
      ];
    }),
    schedule.depths.map((depth, slot) => `  let ${p}depth${slot} = ${depth};`),
  );
  const zero = vector === 1 ? "0.0f" : "vec4f()";
  const name = (item: number, i: number, j: number) => `${p}x${item}_${i * columns + j}`;
  const read = range(rows).filter((i) => readsRow(transform, i));
  const each = <T>(text: (i: number, j: number) => T) =>
    read.flatMap((i) => range(columns).map((j) => text(i, j)));
  const registers = lines(schedule.items.map((_, item) => [
    each((i, j) => `  var ${name(item, i, j)} = ${zero};`),
    `  var ${p}c${item} = 0u;`,
    lie.rows && `  var ${p}l${item} = 0u;`,
  ]));
  const fetch = lines(
    "    {",
    lie.depths(range(schedule.depths.length)),
    schedule.items.map(({ placeSlot, depthSlot }, item) => [
      `${p}c${item} = ${p}first${depthSlot};`,
      lie.rows && `${p}l${item} = ${p}line${depthSlot};`,
      each((i, j) => {
        const row = lie.rows === undefined ? "" : ` + ${i}u * ${lie.rows.step}`;
        const at = `${p}base${placeSlot} + ${p}far${depthSlot}${row} + ${j}u * ${lie.step}`;
        return `${name(item, i, j)} = ${tensor.load(at)};`;
      }),
    ]),
    "    }",
  );
  const { edge } = lie;
  const mask = (item: number, i: number, j: number) => {
    const row = lie.rows === undefined ? [] : [`${p}l${item} + ${i}u < ${lie.rows.size}`];
    return masked(name(item, i, j), zero, [`${p}c${item} + ${j}u < ${edge.size}`, ...row]);
  };
  const kept = (item: number, i: number, j: number) => `${p}m${item}_${i * columns + j}`;
  // The last column and row of a patch of which all lies inside.
  const inside = [
    { at: "c0", last: edge.value - columns },
    ...(lie.rows === undefined ? [] : [{ at: "l0", last: lie.rows.value - rows }]),
  ];
  // Where threads agree on the tile nothing needs a mask away from edges: 3 to 5 % of the time on an H200. At edges patches are masked
  // where they are, so that the text has their transforms once: up to 5 % of the time on an H200.
  const apart = lie.together && inside.every(({ last }) => last >= 0);
  const edges = [
    `    if (${inside.map(({ at, last }) => `${p}${at} > ${last}u`).join(" || ")}) {`,
    schedule.items.map((_, item) =>
      each((i, j) => `      ${name(item, i, j)} = ${mask(item, i, j)};`)
    ),
    "    }",
  ];
  const masks = (item: number) => each((i, j) => `let ${kept(item, i, j)} = ${mask(item, i, j)};`);
  return {
    places: begin,
    // One operand's steps are the other's.
    ...(lie.state && (at.side === "a" ? lie.state : { begin: "", advance: "" })),
    registers,
    fetch,
    store: apart
      ? lines(edges, storeItems(schedule, transform, at, vector, () => [], name))
      : storeItems(schedule, transform, at, vector, masks, kept),
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
): OperandLoader {
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
  const parts = range(rounds).map((round) =>
    [{ ...a, from: 0 }, { ...b, from: a.count }].flatMap((one) => {
      const first = one.from - round * threads;
      const end = first + one.count;
      if (end <= 0 || first >= threads) return [];
      const inside = [
        ...(first > 0 ? [`t >= ${first}u`] : []),
        ...(end < threads ? [`t < ${end}u`] : []),
      ];
      return [{ ...one, round, inside, item: first > 0 ? `t - ${first}u` : `t + ${-first}u` }];
    })
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
    range(columnsOf(one)).map((j) => text(j));
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
    registers: range(rounds).map((round) => [
      ...range(Math.max(...parts.filter((one) => one.round === round).map(columnsOf))).map((j) =>
        `  var ${raw(round, j)} = vec4<u32>();`
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
          `${raw(round, j)} = ${
            masked(raw(round, j), zeroOf("u32", 4), [`edge${round} + ${j}u < ${edge.size}`])
          };`,
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

/** What is stored at once. */
interface Value {
  /** WGSL of the value, of a variable for what is there already, of its place in bucket 0, of what others lie behind, and of whether there is one. */
  readonly out: string;
  readonly there: string;
  readonly offset: string;
  readonly rest: string;
  readonly inside: string;
}

/**
 * Stores n columns of ∇W, of as many rows as patches yield, for four input channels of an output channel: into ∇W itself for bucket 0, into the
 * workspace for the others.
 *
 * @param buckets Where buckets 1 and on lie one after the other, if there are any.
 * @param adding Whether a bucket already holds a part: `always` for a second kernel on the first one's buckets,
 *   `again` where the loop stores its sums in parts.
 * @param early Whether all that is there is loaded before the first is stored, or each load waits for the store before it: on matrix
 *   units 1.01 to 1.03 times as fast, but of threads 0.97 to 1.00, whose registers are full.
 */
export function correlationStore(
  module: ModuleBuilder,
  result: TensorAccess,
  buckets: TensorAccess | undefined,
  shape: CorrelationShape,
  elements: number,
  adding: "never" | "again" | "always",
  early = false,
): SliceStore {
  return { declarations: "", text };

  function text(outputs: readonly string[]): string {
    const size = correlationSizes(module);
    const { outer, width, tile: { n, rows: tiledRows } } = shape;
    const { vector } = result;
    const base = [
      `(group * ${size("gradient_channels", shape.outChannels)} + row) * ${
        size("filter_out", shape.strides.filter.out)
      }`,
      ...outer.map((axis, d) => {
        const tap = isTiled(shape, d) ? `tap${d} * ${tiledRows!.n}u` : `tap${d}`;
        return `${tap} * ${size(`filter_step${d}`, axis.filterStride)}`;
      }),
      `piece * ${size("filter_piece", n * width.filterStride)}`,
    ].join(" + ");
    const valueOf = (j: number, part: string, column: string): Value => {
      const place = j % n;
      const down = tiledRows === undefined
        ? ""
        : ` + ${Math.floor(j / n)}u * ${
          size(`filter_step${outer.length - 1}`, outer.at(-1)!.filterStride)
        }`;
      const step = size("filter_width", width.filterStride);
      return {
        out: `out${j}${part}`,
        there: `there${j}${part}`,
        offset: `base${down} + ${place}u * ${step} + ${column} * ${
          size("filter_in", shape.strides.filter.in)
        }`,
        rest: ` + (bucket - 1u) * ${size("filter_elements", elements)}`,
        inside: [
          `${column} < ${size("input_channels", shape.inChannels)}`,
          ...(width.taps % n === 0
            ? []
            : [`piece * ${n}u + ${place}u < ${size("width_taps", width.taps)}`]),
        ].join(" && "),
      };
    };
    const values = range(n * (tiledRows?.n ?? 1)).flatMap((j) =>
      vector === 4
        ? [valueOf(j, "", "column")]
        : [..."xyzw"].map((part, x) => valueOf(j, `.${part}`, `(column + ${x}u)`))
    );
    /** A statement for each value in the bucket's tensor, at its place there. */
    const each = (statement: (tensor: TensorAccess, at: string, value: Value) => string) =>
      values.map((value) => {
        const to = (tensor: TensorAccess, at: string) =>
          statement(tensor, vector === 4 ? `(${at}) / 4u` : at, value);
        const first = to(result, value.offset);
        const body = buckets === undefined
          ? first
          : `if (bucket == 0u) { ${first} } else { ${to(buckets, value.offset + value.rest)} }`;
        return `        if (${value.inside}) { ${body} }`;
      });
    const put = (tensor: TensorAccess, at: string, { out, there }: Value) => {
      const first = tensor.store(at, out);
      if (adding === "never") return first;
      const sum = tensor.store(at, `${early ? there : tensor.load(at)} + ${out}`);
      return early || adding === "always" ? sum : `if (again) { ${sum} } else { ${first} }`;
    };
    return lines(
      outputs.map((value, j) => `      let out${j} = ${value};`),
      `      let base = ${base};`,
      `      if (row < ${size("gradient_channels", shape.outChannels)}) {`,
      adding !== "never" && early && [
        outputs.map((_, j) => `        var there${j} = vec4f();`),
        adding === "again" && "        if (again) {",
        each((tensor, at, { there }) => `${there} = ${tensor.load(at)};`),
        adding === "again" && "        }",
      ],
      each(put),
      "      }",
    );
  }
}
