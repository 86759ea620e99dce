import template from "../../../shaders/gemv.wgsl" with { type: "text" };
import { type Elements, elementsTrait, sumOf } from "../../elements/elements.ts";
import { scalarBytes, typeName, zeroOf } from "../../elements/scalar.ts";
import {
  applyEpilogue,
  type EpilogueFactory,
  epilogueIterations,
  epilogueTrait,
} from "../epilogue.ts";
import { WORKGROUP_BYTES } from "../kernel.ts";
import { range } from "../lists.ts";
import { loopIterations, type ModuleBuilder, type SizedKernel, templateKernel } from "../module.ts";
import {
  type GemvOperands,
  gemvValues,
  lastSum,
  roundText,
  sumName,
  sumsChunk,
  sumWidth,
} from "./products.ts";
import {
  gemvBlocks,
  gemvLoads,
  gemvRounds,
  type GemvShape,
  gemvTile,
  gemvTiles,
  gemvWorkgroups,
  hasWholeRounds,
} from "./shape.ts";

/**
 * Multiplies a matrix by a few vectors, each element of it loaded once. Where it lies along the depth neighbouring threads take
 * neighbouring blocks of a place's depth, else neighbouring places. A workgroup adds its threads' sums in workgroup memory,
 * always in the same order. Binds `a`, `b`, `result` and what the epilogue reads.
 */
export function gemvKernel(
  module: ModuleBuilder,
  shape: GemvShape,
  elements: Elements,
  epilogue: EpilogueFactory,
): SizedKernel {
  const { side, vectors, places, depth, batches, splits, word, threads: dealt } = shape;
  const { lanes, groups, each, ahead } = dealt;
  const { block, width } = gemvLoads(shape);
  const { blocks, perSplit } = gemvBlocks(shape);
  const along = shape.matrix === "depth";
  const { size } = module;
  const sum = sumOf(elements);
  const threads = lanes * groups;
  const list = <T>(count: number, make: (i: number) => T) => range(count).map((i) => make(i));

  // In the order of their names, whichever the matrix is. Single int8 are taken out of their words.
  const [a, b] = (["a", "b"] as const).map((name) => {
    const isMatrix = (name === "b") === (side === "rows");
    const four = isMatrix && !along ? width : block;
    const stored = elements.storage === "u32" && word === 1 ? "i8" : elements.storage;
    return module.bind(name, "read", four, stored, word === 4 ? "u32" : sum);
  }) as [GemvOperands["matrix"], GemvOperands["vector"]];
  const units = places / width;
  const operands: GemvOperands = {
    ...(side === "rows" ? { matrix: b, vector: a } : { matrix: a, vector: b }),
    leading: size("leading", along ? blocks : units),
    blocks: size("blocks", blocks),
    sum,
  };
  const bound = size("units", units);
  const placeOf = (place: string) => `first_place + ${place} * ${groups}u + own`;
  const bases = list(each, (place) => {
    const lies = `min(${placeOf(`${place}u`)}, ${bound} - 1u)`;
    const far = along ? ` * ${operands.leading}` : "";
    const batch = size("matrix_batch", places * depth / operands.matrix.vector);
    return `  let base${place} = group * ${batch} + ${lies}${far};`;
  });
  const values = gemvValues(shape);
  const store = resultStore();
  // What a thread is left with of a sum: of products along the depth one.
  const kept = along ? 1 : width;
  const total = ([place, vector]: readonly [number, number]) => {
    const name = sumName(place, vector);
    return sumWidth(shape) > kept ? `(${name}.x + ${name}.y) + (${name}.z + ${name}.w)` : name;
  };
  const bytes = threads * kept * scalarBytes(sum);
  const together = Math.min(values.length, lanes, Math.max(1, Math.floor(WORKGROUP_BYTES / bytes)));
  const chunks = list(Math.ceil(values.length / together), (chunk) => {
    const first = chunk * together;
    const some = values.slice(first, first + together);
    const value = first === 0 ? "one" : `(${first}u + one)`;
    return {
      ...sumsChunk(some.map(total), lanes, groups),
      threads: some.length * groups,
      store: store.text(placeOf(`${value} / ${vectors}u`), `${value} % ${vectors}u`),
    };
  });
  const name = `gemv_${elementsTrait(elements)}_${vectors}${side}_${
    along ? `along${block}${word === 4 ? "w" : ""}` : `across${width}`
  }_${shape.vector === "depth" ? "along" : "across"}${block}_${groups}x${lanes}_${each}x${ahead}${
    splits > 1 ? "_split" : ""
  }${epilogueTrait(store.steps)}${module.splitTrait()}`;
  const text = {
    vectors,
    along,
    lanes,
    groups,
    threads,
    together,
    type: typeName(sum, kept),
    tile: gemvTile(dealt),
    tiles: size("tiles", gemvTiles(shape)),
    splits: size("splits", splits),
    batches: size("batches", batches),
    perSplit: size("per_split", perSplit),
    blocks: operands.blocks,
    span: (ahead - 1) * lanes,
    step: ahead * lanes,
    bases,
    vectorBase: `group * ${size("vector_batch", vectors * depth / block)}`,
    sums: values.map(([place, vector]) =>
      `  var ${sumName(place, vector)} = ${zeroOf(sum, sumWidth(shape))};`
    ),
    round: roundText(shape, operands, false),
    rest: hasWholeRounds(shape, module.mode) ? "" : roundText(shape, operands, true),
    stores: lanes > 1 ? [] : values.map((one) => ({
      value: total(one),
      store: store.text(placeOf(`${one[0]}u`), `${one[1]}u`),
    })),
    chunks: lanes > 1 ? chunks : [],
    lastSum: lastSum(lanes, groups),
    functions: store.steps.map(({ declarations }) => declarations).join("\n"),
  };
  const iterations = loopIterations(gemvRounds(shape)) +
    values.length * kept * epilogueIterations(store.steps);
  return templateKernel(module, name, template, text, {
    workgroups: gemvWorkgroups(shape),
    threads,
    bytes: lanes === 1 ? 0 : together * bytes,
    iterations,
  });

  /** How a value, or four along the places, goes to the result: behind the epilogue, or where the depth is split as a part. */
  function resultStore() {
    const part = splits > 1;
    const loaded = along ? 1 : width;
    // Places of a row follow each other, and those of a column if it is the only one.
    const four = loaded === 4 && (side === "rows" || vectors === 1) ? 4 : 1;
    const stored = part ? sum : elements.result;
    const result = module.bind("result", "write", four, stored);
    const steps = epilogue(module, four, (row) => row);
    const base = `group * ${size("result_batch", vectors * places)}${
      part ? ` + split * ${size("result_split", batches * vectors * places)}` : ""
    }`;
    const one = (value: string, place: string) => {
      const [row, column] = side === "rows" ? ["vector", place] : [place, "vector"];
      const far = side === "rows"
        ? `vector * ${size("places", places)} + ${place}`
        : `${place} * ${vectors}u + vector`;
      const at = { width: four, side: side === "rows" ? "columns" : "rows", row, column } as const;
      const finished = applyEpilogue(steps, value, { ...at, offset: "offset" });
      return [
        `let offset = ${four === 4 ? `(${base} + ${far}) / 4u` : `${base} + ${far}`};`,
        result.store("offset", finished),
      ];
    };
    /** Stores WGSL's `value`. */
    const text = (place: string, vector: string): string[] => [
      `let place = ${place};`,
      `let vector = ${vector};`,
      `if (place < ${bound}) {`,
      ...(four === loaded
        ? one("value", four === 4 ? "(place * 4u)" : "place").map((line) => `  ${line}`)
        : [..."xyzw"].map((component, i) =>
          `  { ${one(`value.${component}`, `(place * 4u + ${i}u)`).join(" ")} }`
        )),
      "}",
    ];
    return { steps, text };
  }
}
