import template from "../../shaders/winograd_output.wgsl" with { type: "text" };
import { linearProgram } from "../winograd/linear_program.ts";
import type { Matrix } from "../winograd/matrix.ts";
import { applyEpilogue, type EpilogueFactory, epilogueTrait } from "./epilogue.ts";
import {
  moduleBuilder,
  render,
  type SizedKernel,
  sizedKernel,
  type SizeMode,
  splitTrait,
  type TensorSplit,
} from "./module.ts";
import {
  type MatrixStack,
  stackPlace,
  threadCount,
  tileCount,
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
}

/** Workgroups of an {@linkcode outputTransformKernel}. */
export function outputWorkgroups({ tensor, stack }: OutputTransform): number {
  return Math.ceil(threadCount(tensor.groups, stack.along, threadsOf(tensor)) / 128);
}

function threadsOf(tensor: TiledTensor) {
  return { tiles: tileCount(tensor), channels: tensor.channels, lanes: "line" } as const;
}

/** Four results of a row leave in one store where all or none of them are inside. */
function outputVectorOf({ tensor, matrices, masked, start }: OutputTransform): 1 | 4 {
  const [outer, inner] = tensor.axes;
  const multiples = [
    start,
    inner.size,
    matrices[1].length,
    outer.stride,
    tensor.channelStride,
    tensor.batchStride,
    tensor.groupStride,
  ];
  const fits = inner.stride === 1 && multiples.every((value) => value % 4 === 0);
  return fits && masked ? 4 : 1;
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
): SizedKernel {
  const { tensor, stack, matrices: [matrix0, matrix1] } = shape;
  const module = moduleBuilder(mode);
  const vector = outputVectorOf(shape);
  const from = module.tensor("matrices", "read", 1, splits.matrices);
  const to = module.tensor("result", "write", vector, splits.result);
  const size = module.size;
  const channels = size("channels", tensor.channels);
  const steps = epilogue(module, vector, (row) => `group * ${channels} + ${row}`);
  const [axis0, axis1] = tensor.axes;
  const [alpha0, alpha1] = [matrix0[0]!.length, matrix1[0]!.length];
  const threads = threadsOf(tensor);

  const columnLines: string[] = [];
  const transformed: string[][] = matrix0.map(() => []);
  const program0 = linearProgram(matrix0);
  for (let j = 0; j < alpha1; j++) {
    const names = Array.from({ length: alpha0 }, (_, i) => `m${i}_${j}`);
    names.forEach((name, i) => {
      const place = stackPlace(module, stack, tensor.groups, i * alpha1 + j);
      columnLines.push(`let ${name} = ${from.load(place)};`);
    });
    const { statements, outputs } = program0.text(`c${j}_`, names, "f32");
    columnLines.push(...statements);
    outputs.forEach((value, i) => transformed[i]!.push(value));
  }

  const rowLines = [
    `let y = tile0 * ${size("step0", axis0.step)};`,
    `let x = tile1 * ${size("step1", axis1.step)};`,
  ];
  const program1 = linearProgram(matrix1);
  const inside = (what: "x" | "y", e: number) =>
    `${what} + ${e}u < ${what === "y" ? size("size0", axis0.size) : size("size1", axis1.size)}`;
  for (let i = 0; i < matrix0.length; i++) {
    const { statements, outputs } = program1.text(`r${i}_`, transformed[i]!, "f32");
    if (shape.masked) rowLines.push(`if (${inside("y", i)}) {`);
    rowLines.push(
      ...statements,
      `let row${i} = base + (y + ${i}u) * ${size("stride0", axis0.stride)};`,
    );
    for (let j = 0; j < outputs.length; j += vector) {
      const value = vector === 1 ? outputs[j]! : `vec4f(${outputs.slice(j, j + 4).join(", ")})`;
      const offset = `row${i} + (x + ${j}u) * ${size("stride1", axis1.stride)}`;
      const place = vector === 4 ? `(${offset}) / 4u` : offset;
      const result = applyEpilogue(steps, value, {
        width: vector,
        side: "columns",
        row: "channel",
        column: "tile",
        offset: place,
      });
      const store = to.store(place, result);
      rowLines.push(shape.masked ? `if (${inside("x", j)}) { ${store} }` : store);
    }
    if (shape.masked) rowLines.push("}");
  }
  const name = [
    `winograd_output_${shape.name}_f32_${tilesTrait(tensor, stack, threads.lanes)}`,
    ...(shape.masked ? [] : ["whole"]),
    ...(vector === 4 ? ["x4"] : []),
  ].join("_") + epilogueTrait(steps) + splitTrait(splits.matrices, splits.result);
  const wgsl = render(template, {
    name,
    matrices: alpha0 * alpha1,
    threads: size("threads", threadCount(tensor.groups, stack.along, threads)),
    index: tileIndexText(module, tensor, stack, threads, shape.start),
    columns: columnLines.map((line) => `  ${line}`).join("\n"),
    rows: rowLines.map((line) => `  ${line}`).join("\n"),
    functions: steps.map(({ declarations }) => declarations).join("\n"),
    declarations: module.declarations(),
  });
  return sizedKernel(name, mode, wgsl, module, [128, 1, 1], 0);
}
