import { range } from "./lists.ts";
import type { Scalar, Stored } from "../elements/scalar.ts";
import { linearProgram } from "../winograd/linear_program.ts";
import type { Matrix } from "../winograd/matrix.ts";
import { applyEpilogue, type EpilogueFactory, epilogueTrait } from "./epilogue.ts";
import {
  type SplitOutput,
  splitResultBytes,
  type SplitResults,
  splitResults,
} from "./split_results.ts";
import type { ModuleBuilder } from "./module.ts";
import { loopIterations, mainText, type SizedKernel, textKernel } from "./sized_kernel.ts";
import {
  type MatrixStack,
  stackPlace,
  tensorTiles,
  threadCount,
  type TiledTensor,
  tileIndexText,
  tileStartText,
  tilesTrait,
} from "./winograd_tiles.ts";
import { WORKGROUP_BYTES } from "./kernel.ts";

/** Products of α0·α1 matrices on their way to tiles of results. */
export interface OutputTransform {
  /** Names the matrices, e.g. `m4x4r3x3`: enters the kernel's name. */
  readonly name: string;
  readonly tensor: TiledTensor;
  /** Tile size x α of each axis. */
  readonly matrices: readonly [Matrix, Matrix];
  /** Whether tiles may reach beyond the tensor. */
  readonly masked: boolean;
  readonly stack: MatrixStack;
  /** Offset of the tensor in its binding, in elements. */
  readonly start: number;
  /** What the products are in. */
  readonly stored: Stored;
  /** Of products of halves. */
  readonly split?: SplitOutput | undefined;
}

/** How results leave: one or four of a tile's row a store, or through workgroup memory, neighbours by neighbours. */
type Store = "single" | "vector" | "rows" | "filters";

/** Threads of a workgroup. */
const THREADS = 128;

function resultsOf({ matrices }: OutputTransform): number {
  return matrices[0].length * matrices[1].length;
}

/** Bytes that results may be staged in: threads that sum a result together share some of them. */
function stagedBytes({ split }: OutputTransform): number {
  return split === undefined ? WORKGROUP_BYTES : WORKGROUP_BYTES - splitResultBytes(THREADS);
}

/** Threads of a workgroup: half as many where the results of all would not fit workgroup memory. */
function sizeOf(shape: OutputTransform): number {
  return 4 * THREADS * resultsOf(shape) <= stagedBytes(shape) ? THREADS : THREADS / 2;
}

/** Four results of a row leave in one store where all or none of them are inside. */
function storeOf(shape: OutputTransform): Store {
  const { tensor, matrices, masked, stack, start } = shape;
  const [outer, inner] = tensor.axes;
  // Neighbouring threads have neighbouring results of tiles that begin side by side.
  if (inner.stride !== 1 || inner.dilation !== 1 || resultsOf(shape) === 1) return "single";
  const multiples = [
    start,
    inner.size,
    matrices[1].length,
    outer.stride,
    tensor.channelStride,
    tensor.batchStride,
    tensor.groupStride,
  ];
  if (masked && multiples.every((value) => value % 4 === 0)) return "vector";
  if (4 * sizeOf(shape) * resultsOf(shape) > stagedBytes(shape)) return "single";
  if (masked) return stack.along === "tile" && !tensor.batchInner ? "rows" : "single";
  const dense = tensor.channelStride === outer.size * inner.size;
  return dense && stack.along === "channel" ? "filters" : "single";
}

/**
 * Gathers the products of each tile and channel, transforms them, A0ᵀ·M·A1, and stores what lies inside the result
 * after the epilogue. Binds `matrices`, `result` and what the epilogue reads.
 */
export function outputTransformKernel(
  module: ModuleBuilder,
  shape: OutputTransform,
  epilogue: EpilogueFactory,
  element: Scalar,
): SizedKernel {
  const { tensor, stack, matrices: [matrix0, matrix1] } = shape;
  const store = storeOf(shape);
  const vector = store === "vector" ? 4 : 1;
  const staged = store === "rows" || store === "filters";
  const from = module.bind("matrices", "read", 1, shape.stored);
  const to = module.bind("result", "write", vector, element);
  const size = module.size;
  const channels = size("channels", tensor.channels);
  const steps = epilogue(module, vector, (row) => `group * ${channels} + ${row}`);
  const [axis0, axis1] = tensor.axes;
  const [alpha0, alpha1] = [matrix0[0]!.length, matrix1[0]!.length];
  const [n0, n1] = [matrix0.length, matrix1.length];
  const workgroup = sizeOf(shape);
  const split = shape.split &&
    splitResults(module, shape.split, shape.matrices, { threads: workgroup, vector });
  const threads = { tiles: tensorTiles(tensor), channels: tensor.channels };
  const count = threadCount(tensor.groups, threads);
  const total = size("threads", count);
  const index = tileIndexText(module, tensor, stack, threads, shape.start);
  const lines: string[] = [];
  const row = (i: number) => `y + ${i * axis0.dilation}u`;
  const column = (j: number) => `x + ${j * axis1.dilation}u`;
  const insideRow = (i: number) => `${row(i)} < ${size("size0", axis0.size)}`;
  const insideColumn = (j: number) => `${column(j)} < ${size("size1", axis1.size)}`;
  const place = (y: string, x: string) =>
    `base + (${y}) * ${size("stride0", axis0.stride)} + (${x}) * ${size("stride1", axis1.stride)}`;
  const corner = [
    `let y = ${tileStartText(module, tensor, 0)};`,
    `let x = ${tileStartText(module, tensor, 1)};`,
  ];

  const block = staged || split !== undefined;
  if (block) lines.push("{");
  lines.push("let i = first + t;");
  if (!block) lines.push(`if (i >= ${total}) { return; }`);
  lines.push(index);
  if (split) lines.push(...split.begin);
  const transformed: string[][] = matrix0.map(() => []);
  const program0 = linearProgram(matrix0);
  for (let j = 0; j < alpha1; j++) {
    const names = range(alpha0).map((i) => `m${i}_${j}`);
    names.forEach((name, i) => {
      const at = stackPlace(module, stack, tensor.groups, i * alpha1 + j);
      lines.push(`let ${name} = ${from.load(at)};`);
      if (split) lines.push(split.loaded(name, i, j));
    });
    const { statements, outputs } = program0.text(`c${j}_`, names, "f32");
    lines.push(...statements);
    outputs.forEach((value, i) => transformed[i]!.push(value));
  }
  if (!staged) lines.push(...corner);
  const program1 = linearProgram(matrix1);
  let made = matrix0.map((_, i) => program1.text(`r${i}_`, transformed[i]!, "f32"));
  if (split) {
    lines.push(...made.flatMap(({ statements }) => statements));
    const live = `i < ${total}`;
    lines.push(...split.rescaled(made.map(({ outputs }) => outputs), live));
    if (!staged) lines.push(`if (${live}) {`);
    made = made.map((_, i) => ({
      statements: [],
      outputs: range(n1).map((j) => `y${i}_${j}`),
    }));
  }
  for (let i = 0; i < n0; i++) {
    const { statements, outputs } = made[i]!;
    lines.push(...statements);
    if (staged) {
      outputs.forEach((value, j) => {
        const [row, column] = store === "rows" ? [i, j] : [0, i * n1 + j];
        lines.push(`staged[${row}][t * ${columnsOf()}u + ${column}u] = ${value};`);
      });
      continue;
    }
    if (shape.masked) lines.push(`if (${insideRow(i)}) {`);
    for (let j = 0; j < n1; j += vector) {
      const value = vector === 1 ? outputs[j]! : `vec4f(${outputs.slice(j, j + 4).join(", ")})`;
      const line = finished(value, place(row(i), column(j)));
      lines.push(shape.masked ? `if (${insideColumn(j)}) { ${line} }` : line);
    }
    if (shape.masked) lines.push("}");
  }
  if (split) lines.push(...staged ? [] : ["}"], "}", "}", ...listed(split));
  if (staged) lines.push(...split ? [] : ["}"], "workgroupBarrier();", ...slots());

  const name = [
    `winograd_output_${shape.name}_${element}_${tilesTrait(tensor, stack)}`,
    ...(split ? [split.trait] : []),
    ...(shape.masked ? [] : ["whole"]),
    ...(vector === 4 ? ["x4"] : staged ? ["staged"] : []),
  ].join("_") + epilogueTrait(steps) + module.splitTrait();
  const memory = store === "rows" ? n0 : 1;
  const stage = `var<workgroup> staged: array<array<f32, ${workgroup * columnsOf()}>, ${memory}>;`;
  const wgsl = [
    staged && stage,
    steps.map(({ declarations }) => declarations),
    split?.functions,
    mainText(workgroup),
    `  let first = (workgroup.x + workgroup.y * grid.x) * ${workgroup}u;`,
    `  if (first >= ${total}) { return; }`,
    lines.map((line) => `  ${line}`),
    "}",
  ];
  const about = `one thread a tile of results; it gathers one element of each of ${
    alpha0 * alpha1
  } matrices.`;
  return textKernel(module, name, about, wgsl, {
    workgroups: Math.ceil(count / workgroup),
    threads: workgroup,
    bytes: (staged ? 4 * workgroup * n0 * n1 : 0) + (split ? splitResultBytes(workgroup) : 0),
    iterations: (staged ? loopIterations(columnsOf()) : 0) + (split?.iterations ?? 0),
  });

  /** Sums what halves do not hold, and stores it. */
  function listed(split: SplitResults): string[] {
    const at = (e: string, from: string) => shape.masked ? `${from} + ${e}` : e;
    const stored = finished("value", place(at("down", "y"), at("across", "x")));
    const [row, column] = store === "rows" ? ["down", "across"] : ["0u", "e"];
    const inside = `y + down < ${size("size0", axis0.size)} && x + across < ${
      size("size1", axis1.size)
    }`;
    return split.plain(
      [index, ...corner],
      shape.masked ? ["y", "x"] : ["0u", "0u"],
      staged
        ? `staged[${row}][listed * ${columnsOf()}u + ${column}] = value;`
        : shape.masked
        ? `if (${inside}) { ${stored} }`
        : stored,
    );
  }

  /** A statement that stores a result after the epilogue. */
  function finished(value: string, offset: string): string {
    const at = vector === 4 ? `(${offset}) / 4u` : offset;
    const result = applyEpilogue(steps, value, {
      width: vector,
      side: "columns",
      row: "channel",
      column: "tile",
      offset: at,
    });
    return to.store(at, result);
  }

  /** Results of a thread that are neighbours in the tensor: of a row, or of a filter. */
  function columnsOf(): number {
    return store === "rows" ? n1 : n0 * n1;
  }

  /** Neighbouring threads store neighbouring results of the workgroup. */
  function slots(): string[] {
    const columns = columnsOf();
    const body = store === "rows"
      ? [
        ...corner,
        `if (x + e < ${size("size1", axis1.size)}) {`,
        ...matrix0.map((_, i) =>
          `if (${insideRow(i)}) { ${finished(`staged[${i}][slot]`, place(row(i), "x + e"))} }`
        ),
        "}",
      ]
      : [finished("staged[0][slot]", place(`e / ${n1}u`, `e % ${n1}u`))];
    return [
      `for (var slot = t; slot < ${columns * workgroup}u; slot += ${workgroup}u) {`,
      `let i = first + slot / ${columns}u;`,
      `let e = slot % ${columns}u;`,
      `if (i < ${total}) {`,
      index,
      ...body,
      "}",
      "}",
    ];
  }
}
