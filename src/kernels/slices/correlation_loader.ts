import type { ModuleBuilder, TensorAccess } from "../module.ts";
import type { StepLoader } from "../loop/step_loop.ts";
import type { CorrelationShape } from "./correlation.ts";
import { correlationColumns, type CorrelationOperand } from "./correlation_columns.ts";
import { type OperandPlace, storeItems } from "./image_loader.ts";
import { patchSize, type PatchTransform, readsRow } from "./patch.ts";
import { scheduleItems } from "./policy.ts";

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
  const [rows, columns] = patchSize(transform);
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
  const name = (item: number, i: number, j: number) => `${p}x${item}_${i * columns + j}`;
  const read = Array.from({ length: rows }, (_, i) => i).filter((i) => readsRow(transform, i));
  const each = <T>(text: (i: number, j: number) => T) =>
    read.flatMap((i) => Array.from({ length: columns }, (_, j) => text(i, j)));
  const registers = schedule.items.flatMap((_, item) => [
    ...each((i, j) => `  var ${name(item, i, j)} = ${zero};`),
    `  var ${p}c${item} = 0u;`,
    ...(lie.rows === undefined ? [] : [`  var ${p}l${item} = 0u;`]),
  ]).join("\n");
  const fetch = [
    ...lie.depths(schedule.depths.map((_, slot) => slot)),
    ...schedule.items.flatMap(({ placeSlot, depthSlot }, item) => [
      `${p}c${item} = ${p}first${depthSlot};`,
      ...(lie.rows === undefined ? [] : [`${p}l${item} = ${p}line${depthSlot};`]),
      ...each((i, j) => {
        const row = lie.rows === undefined ? "" : ` + ${i}u * ${lie.rows.step}`;
        const at = `${p}base${placeSlot} + ${p}far${depthSlot}${row} + ${j}u * ${lie.step}`;
        return `${name(item, i, j)} = ${tensor.load(at)};`;
      }),
    ]),
  ].map((line) => `      ${line}`).join("\n");
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
    ...schedule.items.flatMap((_, item) =>
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
    fetch: `    {\n${fetch}\n    }`,
    store: apart
      ? [...edges, storeItems(schedule, transform, at, () => [], name, vector)].join("\n")
      : storeItems(schedule, transform, at, masks, masked, vector),
  };
}
