import { range } from "./lists.ts";
import type { Scalar, Stored } from "../elements/scalar.ts";
import type { ModuleBuilder } from "./module.ts";
import { mainText, type SizedKernel, textKernel } from "./sized_kernel.ts";
import {
  type MatrixStack,
  stackPlace,
  tensorTiles,
  threadCount,
  type TiledTensor,
  tileIndexText,
  tileStartText,
  tilesTrait,
  type TileThreads,
} from "./winograd_tiles.ts";
import { splitPatches, type SplitStore } from "./split_marks.ts";
import { linearProgram } from "../winograd/linear_program.ts";
import type { Matrix } from "../winograd/matrix.ts";

/** Patches of a tensor on their way to an operand of α0·α1 products. */
export interface DataTransform {
  /** Names the matrices, e.g. `data_m4x4r3x3`: enters the kernel's name. */
  readonly name: string;
  readonly tensor: TiledTensor;
  /** α x patch size of each axis. */
  readonly matrices: readonly [Matrix, Matrix];
  readonly stack: MatrixStack;
  readonly threads: TileThreads;
  /** Offset of the tensor in its binding, in elements. */
  readonly start: number;
  /** What the matrices are in; along the contiguous side threads come in whole pairs of halves. */
  readonly stored: Stored;
  /** Of halves. */
  readonly split?: SplitStore | undefined;
}

/** Threads of a workgroup where each stores by itself. */
const THREADS = 256;

/** Rows of patches are read four elements at a time where none of the vectors can be half outside. */
function patchVector({ tensor, start }: DataTransform): 1 | 4 {
  const [outer, inner] = tensor.axes;
  const multiples = [
    start,
    inner.size,
    inner.step,
    outer.stride,
    tensor.channelStride,
    tensor.batchStride,
    tensor.groupStride,
  ];
  const fits = inner.stride === 1 && inner.dilation === 1 && inner.step > 0 &&
    multiples.every((value) => value % 4 === 0);
  return fits ? 4 : 1;
}

/**
 * Transforms patches, L0·patch·L1ᵀ, and stores each element of the result in its own matrix. Padding of the depth
 * becomes zeros; places beyond the last are not written. Binds `patches` and `matrices`.
 */
export function patchTransformKernel(
  module: ModuleBuilder,
  shape: DataTransform,
  element: Scalar,
): SizedKernel {
  const { tensor, stack, threads, stored, matrices: [matrix0, matrix1] } = shape;
  // Of halves by tile all channels of a tile meet in a workgroup's memory.
  const { channels } = threads;
  const workgroup = shape.split?.marks.by === "tile"
    ? channels * Math.max(1, Math.floor(THREADS / channels))
    : THREADS;
  const vector = patchVector(shape);
  const from = module.bind("patches", "read", vector, element);
  const words = stored === "halves" ? "u32" : stored;
  const to = module.bind("matrices", "write", 1, words);
  const split = shape.split && splitPatches(module, stack, shape.split, {
    channels: threads.channels,
    workgroup,
  });
  const [axis0, axis1] = tensor.axes;
  const [rows, columns] = [matrix0[0]!.length, matrix1[0]!.length];
  const count = tensorTiles(tensor);
  const padded = split !== undefined || module.mode === "uniform" ||
    threads.channels > tensor.channels || threads.tiles > count;
  const { size } = module;
  const all = threadCount(tensor.groups, threads);
  const total = () => size("threads", all);
  // What lies before the first element wraps around.
  const origin = (axis: number, value: number) => size(`origin${axis}`, value >>> 0);
  const vectors = columnVectors(axis1.origin, columns);
  const index = [
    tileIndexText(module, tensor, stack, threads, shape.start),
    split && [`let live = i < ${total()};`, split.begin],
    padded &&
    `let real = channel < ${size("channels", tensor.channels)} && tile < ${size("tiles", count)}${
      split ? " && live" : ""
    };`,
    // Unsigned: what lies before the first element is huge.
    `let y = ${tileStartText(module, tensor, 0)} + ${origin(0, axis0.origin)};`,
    columnIndex(),
  ];
  const program1 = linearProgram(matrix1);
  const rowTexts = range(rows).map((e) => {
    const row = `y + ${e * axis0.dilation}u`;
    const inside = `${row} < ${size("size0", axis0.size)}${padded ? " && real" : ""}`;
    const offset = `base + (${row}) * ${size("stride0", axis0.stride)}`;
    const values = range(vector === 4 ? vectors.places.length : columns).map((f) =>
      `let v${e}_${f} = ${from.load(`y${e} + x${f}`, [`in_y${e}`, `in_x${f}`])};`
    );
    const names = vector === 4
      ? vectors.elements.map((at) => `v${e}_${at}`)
      : range(columns).map((f) => `v${e}_${f}`);
    const { statements, outputs } = program1.text(`r${e}_`, names, "f32");
    const text = [
      `let in_y${e} = ${inside};`,
      `let y${e} = ${vector === 4 ? `(${offset}) / 4u` : offset};`,
      values,
      split?.sized(names),
      statements,
    ];
    return { text, outputs };
  });
  const program0 = linearProgram(matrix0);
  const columnTexts = range(matrix1.length).map((j) => {
    const inputs = rowTexts.map(({ outputs }, e) => split ? `s${e}_${j}` : outputs[j]!);
    const { statements, outputs } = program0.text(`c${j}_`, inputs, "f32");
    const stored = outputs.map((value, i) => {
      const which = i * matrix1.length + j;
      if (split === undefined) {
        return {
          word: "",
          store: to.store(stackPlace(module, stack, tensor.groups, which), value),
        };
      }
      const place = stackPlace(module, stack, tensor.groups, which, "word");
      return { word: split.word(which, value), store: to.store(place, `word${which}`) };
    });
    return [
      split && rowTexts.map(({ outputs }, e) => `let s${e}_${j} = ${outputs[j]!} * factor;`),
      statements,
      stored.map(({ word }) => word),
      // As soon as they are known, so that registers are free again.
      split
        ? `if (live) { ${stored.map(({ store }) => store).join(" ")} }`
        : stored.map(({ store }) => store),
    ];
  });
  const name = [
    `winograd_${shape.name}_${element}_${tilesTrait(tensor, stack)}`,
    ...(split ? [split.trait] : []),
    ...(vector === 4 ? [`x4o${-axis1.origin}`] : []),
  ].join("_") + module.splitTrait();
  const wgsl = [
    split?.declarations,
    mainText(workgroup),
    `  let i = (workgroup.x + workgroup.y * grid.x) * ${workgroup}u + t;`,
    // All threads of a subgroup shuffle.
    split ? "  let odd = t % 2u == 1u;" : `  if (i >= ${total()}) { return; }`,
    index,
    rowTexts.map(({ text }) => text),
    split?.scale,
    columnTexts,
    split?.end,
    "}",
  ];
  const products = matrix0.length * matrix1.length;
  const about = `one thread a patch; its transform goes to ${products} matrices, one a product.`;
  return textKernel(module, name, about, wgsl, {
    workgroups: Math.ceil(all / workgroup),
    threads: workgroup,
    bytes: split?.bytes ?? 0,
    features: split ? ["shader-f16", "subgroups"] : [],
  });

  /** Declares where the columns of a patch lie, and whether they are there. */
  function columnIndex(): string[] {
    const stride = size("stride1", axis1.stride);
    if (vector === 4) {
      return [
        `let x = tile1 * ${size("step1", axis1.step / 4)};`,
        ...vectors.places.flatMap((place, i) => [
          `let x${i} = x + ${place >>> 0}u;`,
          `let in_x${i} = x${i} < ${size("size1", axis1.size / 4)};`,
        ]),
      ];
    }
    return [
      `let x = ${tileStartText(module, tensor, 1)} + ${origin(1, axis1.origin)};`,
      ...range(columns).flatMap((e) => [
        `let x${e} = (x + ${e * axis1.dilation}u) * ${stride};`,
        `let in_x${e} = x + ${e * axis1.dilation}u < ${size("size1", axis1.size)};`,
      ]),
    ];
  }
}

/** The aligned vectors that cover elements `origin` to `origin + count`, and where in them each element is. */
function columnVectors(origin: number, count: number): { places: number[]; elements: string[] } {
  const first = Math.floor(origin / 4);
  const last = Math.floor((origin + count - 1) / 4);
  const places = range(last - first + 1).map((i) => first + i);
  const elements = range(count).map((e) => {
    const at = origin + e - 4 * first;
    return `${Math.floor(at / 4)}.${"xyzw"[at % 4]}`;
  });
  return { places, elements };
}
