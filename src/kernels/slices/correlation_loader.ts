import type { ModuleBuilder, TensorAccess } from "../module.ts";
import type { StepLoader } from "../loop/step_loop.ts";
import type { CorrelationShape } from "./correlation.ts";
import { correlationColumns, type CorrelationOperand } from "./correlation_columns.ts";
import { type OperandPlace, storeItems } from "./image_loader.ts";
import { patchSize, type PatchTransform } from "./patch.ts";
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
