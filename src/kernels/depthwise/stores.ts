import { lines, range } from "../lists.ts";
import { applyEpilogue } from "../epilogue.ts";
import { WORKGROUP_BYTES } from "../kernel.ts";
import {
  type DepthwiseShape,
  type DepthwiseText,
  INNERMOST,
  overlaps,
  plus,
  resultWidth,
} from "./shape.ts";
import { firstResult, ownName, resultChannel, sumName } from "./products.ts";

/** WGSL of where a thread's results lie, but for their channel and their place in the run. */
function targetText({ shape, module, others, strides: { result: to } }: DepthwiseText): string {
  const { segments, images, channels, axes } = shape;
  const elements = axes.reduce((all, { places }) => all * places, images * channels);
  return [
    `image * ${to.image}`,
    ...others.map((d) => `at${d} * ${to.axes[d]}`),
    ...(segments > 1 ? [`segment * ${module.size("partial", elements / resultWidth(shape))}`] : []),
  ].join(" + ");
}

/**
 * The sums of threads that share a run, in parts that workgroup memory holds, each with how many are before it; none where threads have
 * runs of their own.
 */
export function sharedSums(shape: DepthwiseShape): { first: number; sums: string[] }[] {
  const { results, threads, sharing } = shape;
  if (sharing === 1) return [];
  const all = range(results).flatMap((q) => range(shape.own).map((m) => sumName(shape, q, m)));
  const parts = Math.ceil(all.length / Math.floor(WORKGROUP_BYTES / 4 / (threads + 1)));
  const each = Math.ceil(all.length / parts);
  return range(parts).map((i) => ({ first: i * each, sums: all.slice(i * each, (i + 1) * each) }));
}

/** Stores WGSL's `value`, the sum named `which` of those of a run, if its place exists. */
export function sharedStoreText(text: DepthwiseText): string {
  const { shape, sized, strides: { result: to }, result, steps } = text;
  const { run, results, own } = shape;
  const value = applyEpilogue(steps, "value", {
    width: 1,
    side: "rows",
    row: "result_channel",
    column: "0u",
    offset: "offset",
  });
  const far = `result_channel * ${to.channel} + along * ${to.axes[run]}`;
  return lines(
    `    let along = block * ${results}u + which / ${own}u;`,
    `    let result_channel = ${firstResult(shape)} + which % ${own}u;`,
    `    if (along < ${sized.places[run]}${
      overlaps(shape) ? ` && which % ${own}u >= repeated` : ""
    }) {`,
    `      let offset = ${targetText(text)} + ${far};`,
    `      ${result.store("offset", value)}`,
    "    }",
  );
}

/** Stores the run's results that exist, each after the epilogue's steps. */
export function storeText(text: DepthwiseText): string {
  const { shape, sized, strides: { result: to }, result, steps } = text;
  const { run, results, vector, own } = shape;
  const width = resultWidth(shape);
  // A thread's channels leave as one vector where a load brings the source's.
  const vectorOfOwn = vector === "sources" && width === 4;
  const store = (q: number, m: number, column: number) => {
    const channel = resultChannel(shape, m);
    const sum = vectorOfOwn
      ? `vec4f(${range(own).map((one) => sumName(shape, q, one)).join(", ")})`
      : sumName(shape, q, m, column);
    const value = applyEpilogue(steps, sum, {
      width,
      side: vector === "images" ? "columns" : "rows",
      row: vectorOfOwn || vector === "channels" ? "(channel * 4u)" : channel,
      column: "0u",
      offset: "offset",
    });
    const along = plus(`block * ${results}u`, q);
    const beside = column === 0 ? ["", ""] : [
      ` && at${INNERMOST} + ${column}u < ${sized.places[INNERMOST]}`,
      ` + ${column}u * ${to.axes[INNERMOST]}`,
    ];
    return [
      `  if (${along} < ${sized.places[run]}${beside[0]}${
        overlaps(shape) && m + 1 < own ? ` && ${m}u >= repeated` : ""
      }) {`,
      `    let offset = ${ownName(shape, "target_place", m)} + (${along}) * ${to.axes[run]}${
        beside[1]
      };`,
      `    ${result.store("offset", value)}`,
      "  }",
    ];
  };
  return lines(
    range(vectorOfOwn ? 1 : own).map((m) => [
      `  let ${ownName(shape, "target_place", m)} = ${targetText(text)} + ${
        vectorOfOwn ? "channel" : resultChannel(shape, m)
      } * ${to.channel};`,
      range(results).map((q) => range(shape.columns).map((column) => store(q, m, column))),
    ]),
  );
}
