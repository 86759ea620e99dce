import {
  fragments,
  innerProduct,
  multiplyFragments,
  type ProductOrder,
} from "../../src/kernels/loop/inner_product.ts";
import type { Probe } from "./probe.ts";

/** A loop of products by threads and nothing else, as main loops have them. */
export interface ProductLoop {
  /** Of a workgroup; four warps are one a scheduler of NVIDIA's. */
  readonly threads: 128 | 256 | 384;
  /** Results of a thread: 8 rows of so many columns. */
  readonly columns: 8 | 12 | 16;
  /** Rows of both tiles that are multiplied in the loop's text, one after the other. */
  readonly depth: number;
  /** Whether threads load their vectors of each row from workgroup memory, or have the same in registers. */
  readonly loads: boolean;
  /** Whether threads meet at the loop's end. */
  readonly barrier: boolean;
  readonly order: ProductOrder;
}

const ROWS = 8;
/** As WinRS' tiles of 16 slices: vectors of a row, 16 of one operand and 8 of the other, slices, and threads of each. */
const VECTORS = 24;
const SLICES = 16;
const SLICE_THREADS = 16;
/** Bytes of workgroup memory that every driver of the tests has. */
const MEMORY = 32768;
/** The vector of the data that says how many rounds there are. */
const ROUNDS_AT = 31;

/** `8x16 256 threads, 8 deep, from memory, barrier, columns`. */
export function productLoopName(
  { threads, columns, depth, loads, barrier, order }: ProductLoop,
): string {
  return `${ROWS}x${columns} ${threads} threads, ${depth} deep, from ${
    loads ? "memory" : "registers"
  }${barrier ? ", barrier" : ""}, ${order}`;
}

/** Loops by how long their text is, with and without a barrier and loads; by threads, their results, and the order of products. */
export function productLoops(): ProductLoop[] {
  const of = (more: Partial<ProductLoop>): ProductLoop => ({
    threads: 256,
    columns: 16,
    depth: 8,
    loads: false,
    barrier: false,
    order: "columns",
    ...more,
  });
  return [
    ...[false, true].flatMap((barrier) =>
      [2, 4, 6, 8, 12, 16, 24].map((depth) => of({ depth, barrier }))
    ),
    ...[4, 8, 16].map((depth) => of({ threads: 128, depth })),
    ...[2, 4, 6, 8].map((depth) => of({ depth, loads: true })),
    of({ loads: true, barrier: true }),
    ...[4, 8, 16].map((depth) => of({ depth, order: "serpentine" })),
    ...([8, 12] as const).flatMap((columns) => [of({ columns }), of({ columns, loads: true })]),
    of({ threads: 384, columns: 8 }),
  ];
}

/** Products of a call. */
export function productCount(
  { threads, columns, depth }: ProductLoop,
  rounds: number,
  workgroups: number,
): number {
  return ROWS * columns * depth * threads * rounds * workgroups;
}

/** Element `i` of both operands' vectors: whole numbers, whose sums are exact. */
function factor(i: number): number {
  return (i * 5) % 7 - 2;
}

/** By what they are multiplied in a row of a slice's tile, so that no row is another's. */
function scale(slice: number, k: number): number {
  return 1 + (slice + k) % 2;
}

/** Slices of a tile that is as deep as the text: as many as fit. */
function sliceCount(depth: number): number {
  return Math.min(SLICES, Math.floor(MEMORY / (16 * VECTORS * depth)));
}

/** A kernel of a loop and what it takes to begin and end it. */
export function productLoopProbe(loop: ProductLoop, rounds: number, workgroups: number): Probe {
  const { threads, columns, depth, loads, barrier, order } = loop;
  const tile = { threadRows: ROWS, threadColumns: columns };
  const [aVectors, bVectors] = [fragments(ROWS), fragments(columns)];
  const sums = Array.from({ length: ROWS * bVectors }, (_, i) => `c${i}`);
  const names = [
    ...Array.from({ length: aVectors }, (_, i) => ({ name: `a${i}`, at: `ty + ${8 * i}u` })),
    ...Array.from({ length: bVectors }, (_, j) => ({ name: `b${j}`, at: `16u + tx + ${2 * j}u` })),
  ];
  const slices = sliceCount(depth);
  const products = multiplyFragments(
    innerProduct("f32"),
    tile,
    (row, fragment) => `c${row * bVectors + fragment}`,
    order,
  );
  const row = (k: number) => [
    "    {",
    ...(loads ? names.map(({ name, at }) => `      let ${name} = tile[slice][${k}][${at}];`) : []),
    ...products.map((line) => `      ${line}`),
    "    }",
  ];
  const wgsl = [
    ...(loads
      ? [`var<workgroup> tile: array<array<array<vec4f, ${VECTORS}>, ${depth}>, ${slices}>;`]
      : []),
    `@compute @workgroup_size(${threads})`,
    "fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) grid: vec3u,",
    "  @builtin(local_invocation_index) t: u32) {",
    `  let slice = t / ${SLICE_THREADS}u % ${slices}u;`,
    "  let tx = t % 2u;",
    `  let ty = t % ${SLICE_THREADS}u / 2u;`,
    ...(loads
      ? [
        `  for (var i = t; i < ${slices * depth * VECTORS}u; i += ${threads}u) {`,
        `    let of_slice = i / ${depth * VECTORS}u;`,
        `    let k = i / ${VECTORS}u % ${depth}u;`,
        `    let vector = i % ${VECTORS}u;`,
        "    tile[of_slice][k][vector] = f32(1u + (of_slice + k) % 2u) * data[vector];",
        "  }",
        "  workgroupBarrier();",
      ]
      : names.map(({ name, at }) => `  let ${name} = data[${at}];`)),
    ...sums.map((sum) => `  var ${sum} = vec4f();`),
    // The data's, so that no compiler writes rounds out.
    `  let rounds = u32(data[${ROUNDS_AT}].x);`,
    "  for (var round = 0u; round < rounds; round++) {",
    ...Array.from({ length: depth }, (_, k) => row(k)).flat(),
    ...(barrier ? ["    workgroupBarrier();"] : []),
    "  }",
    `  let id = (group.x + group.y * grid.x) * ${threads}u + t;`,
    `  result[id] = ${sums.join(" + ")};`,
    "}",
  ].join("\n");
  const data = Float32Array.from({ length: 4 * (ROUNDS_AT + 1) }, (_, i) => factor(i));
  data[4 * ROUNDS_AT] = rounds;
  return {
    name: `products_${threads}_${columns}_${depth}_${order}${loads ? "_loads" : ""}${
      barrier ? "_barrier" : ""
    }`,
    wgsl,
    threads,
    workgroups,
    element: "vec4f",
    workgroupBytes: loads ? 16 * VECTORS * depth * slices : 0,
    data,
    resultBytes: 16 * threads * workgroups,
  };
}

/** Where a thread's sums, four columns' of all rows and vectors each, are others than they should be; -1 for nowhere. */
export function productFault(
  { threads, columns, depth, loads }: ProductLoop,
  rounds: number,
  result: Float32Array,
): number {
  const sum = (all: readonly number[]) => all.reduce((total, one) => total + one, 0);
  const vectors = (first: number, step: number, count: number) =>
    Array.from({ length: count }, (_, i) => first + i * step);
  return result.findIndex((value, i) => {
    const thread = Math.floor(i / 4) % threads;
    const [tx, ty] = [thread % 2, Math.floor(thread % SLICE_THREADS / 2)];
    const rows = vectors(ty, 8, fragments(ROWS)).flatMap((vector) =>
      [0, 1, 2, 3].map((element) => factor(4 * vector + element))
    );
    const ofColumns = vectors(16 + tx, 2, fragments(columns)).map((vector) =>
      factor(4 * vector + i % 4)
    );
    const slice = Math.floor(thread / SLICE_THREADS) % sliceCount(depth);
    const times = Array.from({ length: depth }, (_, k) => loads ? scale(slice, k) ** 2 : 1);
    return value !== rounds * sum(times) * sum(rows) * sum(ofColumns);
  });
}
