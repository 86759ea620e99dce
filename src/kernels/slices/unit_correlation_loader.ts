import type { ModuleBuilder, TensorAccess } from "../module.ts";
import type { StepLoader } from "../loop/step_loop.ts";
import type { CorrelationShape } from "./correlation.ts";
import { correlationColumns, type CorrelationOperand } from "./correlation_columns.ts";
import { halvesTransformText } from "./halves_transform.ts";
import { patchSize, type PatchTransform } from "./patch.ts";
import { type UnitSlicePolicy, unitSliceThreads, unitSliceTile } from "./unit_policy.ts";

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
