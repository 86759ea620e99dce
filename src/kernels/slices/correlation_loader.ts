import { lines, range } from "../lists.ts";
import type { OperandLoader } from "../loop/mainloop.ts";
import type { ModuleBuilder, TensorAccess } from "../module.ts";
import {
  correlationColumns,
  type CorrelationOperand,
  type CorrelationShape,
} from "./correlation.ts";
import { halvesTransformText, patchSize, type PatchTransform, readsRow } from "./patch.ts";
import { type OperandPlace, storeItems } from "./image_loader.ts";
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
    const row = lie.rows === undefined ? "" : ` && ${p}l${item} + ${i}u < ${lie.rows.size}`;
    return `select(${zero}, ${name(item, i, j)}, ${p}c${item} + ${j}u < ${edge.size}${row})`;
  };
  const masked = (item: number, i: number, j: number) => `${p}m${item}_${i * columns + j}`;
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
  const masks = (item: number) =>
    each((i, j) => `let ${masked(item, i, j)} = ${mask(item, i, j)};`);
  return {
    places: begin,
    // One operand's steps are the other's.
    ...(lie.state && (at.side === "a" ? lie.state : { begin: "", advance: "" })),
    registers,
    fetch,
    store: apart
      ? lines(edges, storeItems(schedule, transform, at, vector, () => [], name))
      : storeItems(schedule, transform, at, vector, masks, masked),
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
