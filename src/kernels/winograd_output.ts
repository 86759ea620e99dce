import template from "../../shaders/winograd_output.wgsl" with { type: "text" };
import { literalOf, type Scalar, type Stored } from "../elements/scalar.ts";
import { linearProgram } from "../winograd/linear_program.ts";
import type { Matrix } from "../winograd/matrix.ts";
import { applyEpilogue, type EpilogueFactory, epilogueTrait } from "./epilogue.ts";
import { doubtText, markPlaces, SPLIT_RESULTS, type SplitMarks } from "./split_marks.ts";
import { type PlainSums, plainSums } from "./split_rest.ts";
import {
  loopIterations,
  moduleBuilder,
  render,
  type SizedKernel,
  sizedKernel,
  type SizeMode,
  splitTrait,
  type TensorSplit,
  WHOLE,
} from "./module.ts";
import {
  type MatrixStack,
  stackPlace,
  tensorTiles,
  threadCount,
  type TiledTensor,
  tileIndexText,
  tilesTrait,
} from "./winograd_tiles.ts";

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
  readonly split?: OutputSplit | undefined;
}

/** How products of halves become results: multiplied back to their size, or summed as they are where halves do not hold them. */
export interface OutputSplit {
  /** Of both operands. */
  readonly marks: readonly [SplitMarks, SplitMarks];
  readonly plain: PlainSums;
}

/** How results leave: one or four of a tile's row a store, or through workgroup memory, neighbours by neighbours. */
type Store = "single" | "vector" | "rows" | "filters";

/** Threads of a workgroup. */
const THREADS = 128;
/** Bytes of workgroup memory that every device has. */
const STAGED_BYTES = 16384;

/** Workgroups of an {@linkcode outputTransformKernel}. */
export function outputWorkgroups(shape: OutputTransform): number {
  const { tensor } = shape;
  return Math.ceil(threadCount(tensor.groups, threadsOf(tensor)) / sizeOf(shape));
}

function threadsOf(tensor: TiledTensor) {
  return { tiles: tensorTiles(tensor), channels: tensor.channels };
}

function resultsOf({ matrices }: OutputTransform): number {
  return matrices[0].length * matrices[1].length;
}

/** The largest entry of a column, whatever its sign. */
function largestOf(matrix: Matrix, column: number): number {
  return Math.max(...matrix.map((row) => Math.abs(row[column]!.valueOf())));
}

/** The largest L1 norm of a row. */
function largestNorm(matrix: Matrix): number {
  return Math.max(
    ...matrix.map((row) => row.reduce((sum, value) => sum + Math.abs(value.valueOf()), 0)),
  );
}

/** WGSL of workgroup memory that lists threads whose results are summed as they are. */
function doubts(threads: number): string {
  return [
    "",
    "var<workgroup> doubts: atomic<u32>;",
    "var<workgroup> all_doubts: u32;",
    `var<workgroup> doubtful: array<u32, ${threads}>;`,
  ].join("\n");
}

/** Bytes that results may be staged in: threads that sum a result together share some of them. */
function stagedBytes({ split }: OutputTransform): number {
  return split === undefined ? STAGED_BYTES : STAGED_BYTES - splitBytes(THREADS);
}

/** Bytes of a list of threads, how many there are, and of what they share. */
function splitBytes(threads: number): number {
  return 2 * (4 * threads + 4);
}

/** Threads of a workgroup: half as many where the results of all would not fit workgroup memory. */
function sizeOf(shape: OutputTransform): number {
  return 4 * THREADS * resultsOf(shape) <= stagedBytes(shape) ? THREADS : THREADS / 2;
}

/** Four results of a row leave in one store where all or none of them are inside. */
function storeOf(shape: OutputTransform): Store {
  const { tensor, matrices, masked, stack, start } = shape;
  const [outer, inner] = tensor.axes;
  if (inner.stride !== 1 || resultsOf(shape) === 1) return "single";
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
  shape: OutputTransform,
  mode: SizeMode,
  epilogue: EpilogueFactory,
  splits: { matrices: TensorSplit; result: TensorSplit },
  element: Scalar,
): SizedKernel {
  const { tensor, stack, split, matrices: [matrix0, matrix1] } = shape;
  const module = moduleBuilder(mode);
  const store = storeOf(shape);
  const vector = store === "vector" ? 4 : 1;
  const staged = store === "rows" || store === "filters";
  const from = module.tensor("matrices", "read", 1, splits.matrices, shape.stored);
  const to = module.tensor("result", "write", vector, splits.result, element);
  const size = module.size;
  const channels = size("channels", tensor.channels);
  const steps = epilogue(module, vector, (row) => `group * ${channels} + ${row}`);
  const [axis0, axis1] = tensor.axes;
  const [alpha0, alpha1] = [matrix0[0]!.length, matrix1[0]!.length];
  const [n0, n1] = [matrix0.length, matrix1.length];
  const workgroup = sizeOf(shape);
  const plain = split && plainSums(module, split.plain, workgroup);
  const threads = threadsOf(tensor);
  const total = size("threads", threadCount(tensor.groups, threads));
  const index = tileIndexText(module, tensor, stack, threads, shape.start);
  const lines: string[] = [];
  const inside = (what: "x" | "y", e: number) =>
    `${what} + ${e}u < ${what === "y" ? size("size0", axis0.size) : size("size1", axis1.size)}`;
  const place = (y: string, x: string) =>
    `base + (${y}) * ${size("stride0", axis0.stride)} + (${x}) * ${size("stride1", axis1.stride)}`;
  const corner = [
    `let y = tile0 * ${size("step0", axis0.step)};`,
    `let x = tile1 * ${size("step1", axis1.step)};`,
  ];

  if (split) lines.push("if (t == 0u) { atomicStore(&doubts, 0u); }", "workgroupBarrier();");
  const block = staged || split !== undefined;
  if (block) lines.push("{");
  lines.push("let i = first + t;");
  if (!block) lines.push(`if (i >= ${total}) { return; }`);
  lines.push(index);
  if (split) lines.push("var spread = 0.0f;");
  const transformed: string[][] = matrix0.map(() => []);
  const program0 = linearProgram(matrix0);
  for (let j = 0; j < alpha1; j++) {
    const names = Array.from({ length: alpha0 }, (_, i) => `m${i}_${j}`);
    names.forEach((name, i) => {
      const at = stackPlace(module, stack, tensor.groups, i * alpha1 + j);
      lines.push(`let ${name} = ${from.load(at)};`);
      if (split) {
        const most = literalOf("f32", largestOf(matrix0, i) * largestOf(matrix1, j));
        lines.push(`spread = max(spread, abs(${name}) * ${most});`);
      }
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
    lines.push(...rescaled(split, made.map(({ outputs }) => outputs)));
    if (!staged) lines.push(`if (i < ${total}) {`);
    made = made.map((_, i) => ({
      statements: [],
      outputs: Array.from({ length: n1 }, (_, j) => `y${i}_${j}`),
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
    if (shape.masked) lines.push(`if (${inside("y", i)}) {`);
    for (let j = 0; j < n1; j += vector) {
      const value = vector === 1 ? outputs[j]! : `vec4f(${outputs.slice(j, j + 4).join(", ")})`;
      const line = finished(value, place(`y + ${i}u`, `x + ${j}u`));
      lines.push(shape.masked ? `if (${inside("x", j)}) { ${line} }` : line);
    }
    if (shape.masked) lines.push("}");
  }
  if (split) lines.push(...staged ? [] : ["}"], "}", "}", ...doubtful(split));
  if (staged) lines.push(...split ? [] : ["}"], "workgroupBarrier();", ...slots());

  const name = [
    `winograd_output_${shape.name}_${element}_${tilesTrait(tensor, stack)}`,
    ...(shape.stored === "quad" ? ["quads"] : []),
    ...(split
      ? [`halves_${split.plain.op.replace("-", "_")}_${split.marks.map(({ by }) => by).join("_")}`]
      : []),
    ...(shape.masked ? [] : ["whole"]),
    ...(vector === 4 ? ["x4"] : staged ? ["staged"] : []),
  ].join("_") + epilogueTrait(steps) + splitTrait(
    splits.matrices,
    splits.result,
    ...(split ? [split.plain.splits.data, split.plain.splits.filter] : []),
  );
  const memory = store === "rows" ? n0 : 1;
  const stage = `var<workgroup> staged: array<array<f32, ${workgroup * columnsOf()}>, ${memory}>;`;
  const wgsl = render(template, {
    name,
    matrices: alpha0 * alpha1,
    threads: total,
    size: workgroup,
    body: lines.map((line) => `  ${line}`).join("\n"),
    functions: steps.map(({ declarations }) => declarations).join("\n") +
      (plain ? SPLIT_RESULTS + plain.text : ""),
    declarations: `${module.declarations()}\n${staged ? stage : ""}${
      split ? doubts(workgroup) : ""
    }`,
  });
  const bytes = (staged ? 4 * workgroup * n0 * n1 : 0) + (split ? splitBytes(workgroup) : 0);
  // A doubtful thread is one of those of a workgroup; all of them are as many rounds.
  const iterations = (staged ? loopIterations(columnsOf()) : 0) +
    (plain ? loopIterations(workgroup, loopIterations(n0 * n1, plain.iterations)) : 0);
  return sizedKernel(name, mode, wgsl, module, [workgroup, 1, 1], bytes, iterations);

  /** Takes a tile's results back to their size as `y{i}_{j}`, in a block that is left open, or lists the thread. */
  function rescaled(
    { marks, plain: { op } }: OutputSplit,
    outputs: readonly (readonly string[])[],
  ) {
    const known = module.tensor("marks", "read", 1, WHOLE, "u32");
    const [a, b] = [
      markPlaces(module, "split_a", marks[0], "channel"),
      markPlaces(module, "split_b", marks[1], op === "bwd-filter" ? "image" : "channel"),
    ] as const;
    const enlarged = largestNorm(matrix0) * largestNorm(matrix1);
    return [
      `let bits_a = ${known.load(a.key)};`,
      `let bits_b = ${known.load(b.key)};`,
      `let dark = f32(${known.load(a.row)}) + f32(${known.load(b.row)});`,
      "let beyond = beyond_halves(bits_a) || beyond_halves(bits_b);",
      `if (i < ${total} && (beyond || (${doubtText("dark", "spread", enlarged)}))) {`,
      "  doubtful[atomicAdd(&doubts, 1u)] = t;",
      "} else {",
      "// In two steps: each factor is a normal number.",
      "let exponent = split_exponent(bits_a) + split_exponent(bits_b);",
      "let part = power_of_two(exponent >> 1u);",
      "let rest = power_of_two(exponent - (exponent >> 1u));",
      ...outputs.flatMap((row, i) =>
        row.map((value, j) => `let y${i}_${j} = ${value} * part * rest;`)
      ),
    ];
  }

  /** All threads sum the results of those that are listed, one after the other. */
  function doubtful({ plain: { op }, marks: [{ before: { images } }] }: OutputSplit): string[] {
    const outer = op === "bwd-filter"
      ? "image"
      : `image + ${module.parameter("split_images_before", images)}`;
    const at = (e: string, from: string) => shape.masked ? `${from} + ${e}` : e;
    const sum = (k: number) =>
      `plain_sum(group, ${outer}, channel, ${at("down", "y")}, ${at(`across + ${k}u`, "x")}, t)`;
    const value = vector === 1 ? sum(0) : `vec4f(${[0, 1, 2, 3].map(sum).join(", ")})`;
    const [row, column] = store === "rows" ? ["down", "across"] : ["0u", "e"];
    const within = shape.masked
      ? ` && y + down < ${size("size0", axis0.size)} && x + across < ${size("size1", axis1.size)}`
      : "";
    return [
      "workgroupBarrier();",
      "if (t == 0u) { all_doubts = atomicLoad(&doubts); }",
      "let listed = workgroupUniformLoad(&all_doubts);",
      "for (var d = 0u; d < listed; d++) {",
      "  let thread = doubtful[d];",
      "  let i = first + thread;",
      index,
      ...corner,
      `  for (var e = 0u; e < ${n0 * n1}u; e += ${vector}u) {`,
      `    let down = e / ${n1}u;`,
      `    let across = e % ${n1}u;`,
      `    let value = ${value};`,
      staged
        ? `    if (t == 0u) { staged[${row}][thread * ${columnsOf()}u + ${column}] = value; }`
        : `    if (t == 0u${within}) { ${
          finished("value", place(at("down", "y"), at("across", "x")))
        } }`,
      "  }",
      "}",
    ];
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
          `if (${inside("y", i)}) { ${
            finished(`staged[${i}][slot]`, place(`y + ${i}u`, "x + e"))
          } }`
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
