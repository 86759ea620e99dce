import { range } from "../lists.ts";
import template from "../../../shaders/depthwise.wgsl" with { type: "text" };
import { elementsTrait, sumOf } from "../../elements/elements.ts";
import { typeName } from "../../elements/scalar.ts";
import { axisSizes } from "../axes.ts";
import { type EpilogueFactory, epilogueIterations, epilogueTrait } from "../epilogue.ts";
import type { ModuleBuilder } from "../module.ts";
import { loopIterations, type SizedKernel, templateKernel } from "../sized_kernel.ts";
import { treeSum } from "../sums.ts";
import { coordinateText, isUneven, roundsText, sumName, threadText } from "./products.ts";
import { sharedStoreText, sharedSums, storeText } from "./stores.ts";
import {
  channelVectors,
  channelWidth,
  depthwiseRounds,
  type DepthwiseShape,
  type DepthwiseText,
  groupTraits,
  loopTurns,
  otherAxes,
  overlaps,
  placeThreads,
  plus,
  resultsOf,
  resultWidth,
  runProducts,
  sourcesOf,
  sourceWidth,
  strideSizes,
  tapHits,
  vectorWidth,
} from "./shape.ts";

/** Products that a segment's sum of one result has at most, those of taps that a stride leaves out among them. */
export function depthwiseChain(shape: DepthwiseShape): number {
  const turns = loopTurns(shape);
  const taps = shape.axes.reduce((all, axis) => all * axis.taps, 1);
  const products = depthwiseRounds(shape).sources * sourceWidth(shape) * taps;
  return Math.ceil(products * Math.ceil(turns / shape.segments) / turns);
}

/** Bytes of workgroup memory that staged filters take. */
export function stagedBytes(taps: number, lanes: number, vector: 1 | 4): number {
  return taps * (lanes + 1) * vector * 4;
}

/**
 * Convolves each channel by itself, or each small group. A thread loads the places that its run of results meets along one axis once for each
 * tap of the other axes, so that a load is worth up to as many products as the run has taps; the taps are in registers.
 * Binds the source (`input`, or `output` in backward-data), `filter`, the result and what the epilogue reads.
 */
export function depthwiseKernel(
  module: ModuleBuilder,
  shape: DepthwiseShape,
  epilogue: EpilogueFactory,
): SizedKernel {
  const { op, axes, results, lanes, threads, filter, elements, loop, segments, sharing } = shape;
  const width = vectorWidth(shape);
  const [sourceName, resultName] = op === "fwd"
    ? ["input", "output"] as const
    : ["output", "input"] as const;
  const source = module.bind(sourceName, "read", width, elements.storage);
  const filterWidth = filter.vector && !filter.staged ? 4 : 1;
  const wide = resultWidth(shape);
  const taps = module.bind("filter", "read", filterWidth, elements.storage);
  const stored = segments > 1 ? sumOf(elements) : elements.result;
  const result = module.bind(resultName, "write", wide, stored);
  const steps = epilogue(module, wide, (row) => row);
  const text: DepthwiseText = {
    shape,
    module,
    others: otherAxes(shape),
    sized: axisSizes(module, "axis", axes),
    strides: {
      source: strideSizes(module, shape.source, "source"),
      result: strideSizes(module, shape.result, "result"),
      filter: filter.axes.map((stride, d) => module.size(`filter_axis${d}`, stride)),
    },
    products: runProducts(shape),
    sources: sourcesOf(shape),
    ...{ source, taps, result, steps },
  };
  const allTaps = axes.reduce((all, axis) => all * axis.taps, 1);
  const turns = loopTurns(shape);
  const inSegment = Math.ceil(turns / segments);
  const first = segments === 1 ? "0u" : `segment * ${module.size("segment_turns", inSegment)}`;
  const staged = lanes * channelWidth(shape) * allTaps;
  const tileVector = filter.vector ? ` / 4u][i / ${allTaps}u % 4u` : "";
  const shared = sharedSums(shape);
  const name = kernelName(text) + epilogueTrait(steps) +
    module.splitTrait();
  const values = {
    results,
    threads,
    tile: filter.staged
      ? `array<array<${filter.vector ? "vec4f" : "f32"}, ${lanes + 1}>, ${allTaps}>`
      : "",
    threadPlace: threadText(text),
    staged: `${staged}u`,
    taps: `${allTaps}u`,
    filterElements: module.size("filter_elements", shape.channels * text.sources * allTaps),
    stage: `tile[i % ${allTaps}u][i / ${allTaps}u${tileVector}] = ${taps.load("element")};`,
    outside: `place >= ${module.size("count", placeThreads(shape))}${
      lanes === 0 ? "" : ` || channel >= ${module.size("channels", channelVectors(shape))}`
    }`,
    coordinates: coordinateText(text),
    sums: range(results * shape.own).flatMap((i) =>
      range(shape.columns).map((column) =>
        `  var ${sumName(shape, i % results, Math.floor(i / results), column)} = ${
          typeName("f32", sourceWidth(shape) === 4 ? 1 : width)
        }();`
      )
    ).join("\n"),
    first,
    end: loop.over === "nothing"
      ? ""
      : segments === 1
      ? module.size("turns", turns)
      : `min(${first} + ${module.size("segment_turns", inSegment)}, ${
        module.size("turns", turns)
      })`,
    body: roundsText(text),
    sharing,
    shared,
    sharedThreads: threads + 1,
    sharedSum: treeSum(
      range(sharing).map((i) => `sums[one][${plus("first_sharing", i)}]`),
    ),
    sharedStore: sharing === 1 ? "" : sharedStoreText(text),
    stores: sharing === 1 ? storeText(text) : "",
    functions: steps.map(({ declarations }) => declarations).join("\n"),
  };
  const iterations = (loop.over === "nothing" ? 0 : loopIterations(inSegment)) +
    (filter.staged ? loopIterations(Math.ceil(staged / threads)) : 0) +
    shared.reduce((all, { sums }) => all + loopIterations(Math.ceil(sums.length / sharing)), 0) +
    results * shape.own * shape.columns * width * epilogueIterations(steps);
  const bytes = sharing > 1
    ? shared[0]!.sums.length * (threads + 1) * 4
    : filter.staged
    ? stagedBytes(allTaps, lanes, filter.vector ? 4 : 1)
    : 0;
  const workgroups = lanes === 0
    ? Math.ceil(placeThreads(shape) / threads)
    : Math.ceil(channelVectors(shape) / lanes) *
      Math.ceil(placeThreads(shape) / (threads / lanes / sharing));
  return templateKernel(module, name, template, values, { workgroups, threads, bytes, iterations });
}

/** Every trait of the kernel but those of its epilogue and bindings. */
function kernelName({ shape, others, sources }: DepthwiseText): string {
  const { op, axes, run, results, lanes, threads, filter, elements, loop, segments, sharing } =
    shape;
  const along = axes[run]!;
  const allTaps = axes.reduce((all, axis) => all * axis.taps, 1);
  const hits = others.map((d) => tapHits(axes[d]!, op));
  return [
    "depthwise",
    op.replace("-", "_"),
    elementsTrait(elements),
    shape.imagesFirst
      ? "images"
      : shape.vector === "sources"
      ? sources === 1 ? "source" : "sources"
      : lanes > 0
      ? "channels"
      : "places",
    `${shape.order.join("")}x${vectorWidth(shape)}`,
    ...(lanes > 0 ? [`l${lanes}of${threads}`] : []),
    `run${run}r${results}k${along.taps}s${along.stride}d${along.dilation}` +
    (op === "bwd-data" ? `p${along.padding % along.stride}` : ""),
    ...groupTraits(shape.group),
    ...(shape.own > 1
      ? [
        `own${shape.own}${
          overlaps(shape) ? "overlapping" : resultsOf(shape) > shape.own ? "of" : ""
        }`,
      ]
      : []),
    ...(shape.columns > 1 ? [`columns${shape.columns}`] : []),
    ...(filter.staged ? [`staged${allTaps}`] : filter.vector ? ["taps4"] : []),
    ...(loop.over === "rounds" ? [] : [
      `taps${hits.join("x")}` +
      (loop.over === "sources" ? `by${loop.together}` : sources > 1 ? `x${sources}` : ""),
    ]),
    ...(sharing > 1 ? [`shared${sharing}${isUneven(shape) ? "of" : ""}`] : []),
    ...(segments > 1 ? ["split"] : []),
  ].join("_");
}
