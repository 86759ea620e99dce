/** A matrix times a few vectors: the products of threads, and how a workgroup adds their sums. */
import template from "../../shaders/gemv.wgsl" with { type: "text" };
import { type Elements, elementsTrait, sumOf } from "../elements/elements.ts";
import { type Scalar, scalarBytes, typeName, zeroOf } from "../elements/scalar.ts";
import {
  applyEpilogue,
  type EpilogueFactory,
  epilogueIterations,
  epilogueTrait,
} from "./epilogue.ts";
import {
  gemvBlocks,
  gemvChains,
  gemvLoads,
  gemvRounds,
  type GemvShape,
  gemvTile,
  gemvTiles,
  gemvWorkgroups,
  hasWholeRounds,
} from "./gemv_shape.ts";
import { WORKGROUP_BYTES } from "./kernel.ts";
import { range } from "./lists.ts";
import type { ModuleBuilder, TensorAccess } from "./module.ts";
import { loopIterations, type SizedKernel, templateKernel } from "./sized_kernel.ts";
import { treeSum } from "./sums.ts";

/** What the products of a thread are made of. */
interface GemvOperands {
  readonly matrix: TensorAccess;
  readonly vector: TensorAccess;
  /** WGSL of loads of the matrix from one place, or row, to the next, and of blocks of the depth. */
  readonly leading: string;
  readonly blocks: string;
  /** What products are summed in. */
  readonly sum: Scalar;
}

/** A thread's sums: places and vectors, in the order in which they are kept. */
function gemvValues({ vectors, threads: { each } }: GemvShape): [number, number][] {
  return range(each * vectors).map((i) => [Math.floor(i / vectors), i % vectors]);
}

/** What the sums of a place and a vector are called. */
function sumName(place: number, vector: number): string {
  return `sum${place}_${vector}`;
}

/** How many sums a variable holds: of four products along the depth, or of four places. */
function sumWidth(shape: GemvShape): 1 | 4 {
  return shape.matrix === "depth" ? gemvChains(shape) : gemvLoads(shape).width;
}

/** Adds the products of one operand's values with the other's to sums. */
function addProducts(sums: string, one: string, other: string, sum: Scalar, words: boolean) {
  if (sum !== "i32") return `${sums} = fma(${one}, ${other}, ${sums});`;
  return words ? `${sums} += dot4I8Packed(${one}, ${other});` : `${sums} += ${one} * ${other};`;
}

/**
 * WGSL of a round: loads the blocks from `block` on that a thread takes at once, and adds their products to its sums.
 *
 * @param masked Whether blocks may lie at or beyond `end`: they are loaded from before it then, and add nothing.
 */
function roundText(shape: GemvShape, operands: GemvOperands, masked: boolean): string {
  const { vectors, word, threads: { lanes, each, ahead } } = shape;
  const { matrix, vector, leading, blocks, sum } = operands;
  const { block, width } = gemvLoads(shape);
  const along = shape.matrix === "depth";
  const inTurn = shape.vector === "depth";
  const wide = sumWidth(shape);
  const lines: string[] = [];
  const say = (text: string) => lines.push(`    ${text}`);
  const at = (j: number) => masked ? `block${j}` : j === 0 ? "block" : `(block + ${j * lanes}u)`;
  const load = (name: string, { load }: TensorAccess, index: string, j: number) =>
    say(`let ${name} = ${load(index, masked ? [`inside${j}`] : [])};`);
  /** Of the vectors: value `i` of block `j`. */
  const component = (j: number, i: number, which: number) => {
    if (block === 1) return `v${j}_${which}`;
    // Across the depth the vectors' values of one place follow each other.
    const place = i * vectors + which;
    const [one, at] = inTurn ? [which, i] : [Math.floor(place / 4), place % 4];
    return `v${j}_${one}.${"xyzw"[at]}`;
  };
  const each4 = [0, 1, 2, 3];
  const rows = along ? 1 : block;

  for (let j = 0; masked && j < ahead; j++) {
    say(`let inside${j} = block + ${j * lanes}u < end;`);
    say(`let block${j} = min(block + ${j * lanes}u, end - 1u);`);
  }
  for (let j = 0; j < ahead; j++) {
    for (let i = 0; i < rows; i++) {
      const row = along ? at(j) : `${block === 1 ? at(j) : `(${at(j)} * 4u + ${i}u)`} * ${leading}`;
      for (let place = 0; place < each; place++) {
        load(`m${j}_${i}_${place}`, matrix, `base${place} + ${row}`, j);
      }
    }
  }
  for (let j = 0; j < ahead; j++) {
    for (let which = 0; which < vectors; which++) {
      const far = inTurn
        ? `${which === 0 ? "" : `${which}u * ${blocks} + `}${at(j)}`
        : `${at(j)} * ${vectors}u + ${which}u`;
      load(`v${j}_${which}`, vector, `vector_base + ${far}`, j);
    }
  }
  const add = (sums: string, one: string, other: string) =>
    say(addProducts(sums, one, other, sum, word === 4));
  for (let j = 0; j < ahead; j++) {
    for (let i = 0; i < rows; i++) {
      for (const [place, which] of gemvValues(shape)) {
        const [sums, loaded] = [sumName(place, which), `m${j}_${i}_${place}`];
        if (!along) {
          const one = component(j, i, which);
          add(sums, width === 1 ? one : `${typeName(sum, 4)}(${one})`, loaded);
        } else if (block === 1) {
          add(sums, component(j, 0, which), loaded);
        } else if (wide === 1 || word === 4) {
          for (const i of each4) {
            const part = wide === 1 ? sums : `${sums}.${"xyzw"[i]}`;
            add(part, component(j, i, which), `${loaded}.${"xyzw"[i]}`);
          }
        } else {
          const four = each4.map((i) => component(j, i, which)).join(", ");
          add(sums, inTurn ? `v${j}_${which}` : `${typeName(sum, 4)}(${four})`, loaded);
        }
      }
    }
  }
  return lines.join("\n");
}

/** Sums that one thread adds at once: fewer steps of a tree have fewer barriers. */
const AT_ONCE = 8;

/** How many lanes' sums each step of a tree adds, at most {@linkcode AT_ONCE}, and the last one, which is not among them. */
export function treeSteps(
  lanes: number,
): { readonly before: readonly number[]; readonly last: number } {
  const before: number[] = [];
  let last = lanes;
  while (last > AT_ONCE) {
    const one = Math.min(AT_ONCE, last / AT_ONCE);
    before.push(one);
    last /= one;
  }
  return { before, last };
}

/** Sums that pass through workgroup memory together. */
interface SumsChunk {
  /** WGSL that stores each thread's, `sums[i][at]`. */
  readonly kept: readonly string[];
  /** Steps of the tree: threads that add, and what they do. */
  readonly steps: readonly { readonly threads: number; readonly text: readonly string[] }[];
}

/**
 * Workgroup memory `sums` of [sum][lane][group], in which a tree adds lanes until `last` are left.
 *
 * @param totals WGSL of each sum of a thread.
 */
function sumsChunk(
  totals: readonly string[],
  lanes: number,
  groups: number,
): SumsChunk {
  let kept = lanes;
  const steps = treeSteps(lanes).before.map((added) => {
    kept /= added;
    const threads = kept * groups;
    const at = (j: number) => j === 0 ? "at" : `at + ${j * threads}u`;
    const text = totals.map((_, i) =>
      `sums[${i}][at] = ${treeSum(range(added).map((j) => `sums[${i}][${at(j)}]`))};`
    );
    return { threads, text };
  });
  return { kept: totals.map((total, i) => `sums[${i}][at] = ${total};`), steps };
}

/** WGSL of the sum over the lanes that are left, of the `one`-th of a chunk's sums and the group `own`. */
function lastSum(lanes: number, groups: number): string {
  const { last } = treeSteps(lanes);
  return treeSum(
    range(last).map((j) => `sums[one][own${j === 0 ? "" : ` + ${j * groups}u`}]`),
  );
}

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
