import { InputRangeError, InputTypeError, isOutOfHostMemory } from "../errors.ts";
import { openNpy, readNpy, writeNpy, writeOutput } from "../npy/mod.ts";
import { proveRoom } from "../npy/write.ts";
import { formatBytes } from "../report/format.ts";
import { type DType, dtypeBytes } from "../tensor/dtype.ts";
import { type FillKind, fillTensor } from "../tensor/fill.ts";
import {
  convertLayout,
  FILE_FILTER_LAYOUTS,
  type FileFilterLayout,
  type Layout,
  LAYOUTS,
} from "../tensor/layout.ts";
import { elementCount, type Tensor } from "../tensor/tensor.ts";
import { proveOutputs } from "./outputs.ts";
import { picture, type PictureOptions } from "./tensor_picture.ts";

/** A file that was written: the fields of its JSON report, and `text`, the same for people. */
export interface Written {
  readonly path: string;
  readonly text: string;
}

/** Fills a tensor and writes it. */
export async function makeTensor(
  path: string,
  { shape, fill, dtype, seed, force }: {
    readonly shape: readonly number[];
    readonly fill: FillKind;
    readonly dtype: DType;
    readonly seed: number;
    readonly force?: boolean | undefined;
  },
): Promise<Written & { readonly fill: FillKind; readonly seed: number }> {
  await proveOutputs([{ option: "<out>", path, kind: "npy" }], { force });
  await proveRoom(path, { dtype, shape });
  const made = fillRoom(path, dtype, shape, () => fillTensor(dtype, shape, fill, seed));
  await writeNpy(path, made, { replace: force ?? false });
  return { ...written(path, made, `, ${fill}, seed ${seed}`), fill, seed };
}

/** @throws {RangeError} that names the shape, where no machine has memory for it. */
function fillRoom<T>(path: string, dtype: DType, shape: readonly number[], make: () => T): T {
  try {
    return make();
  } catch (error) {
    if (!isOutOfHostMemory(error)) throw error;
    const bytes = formatBytes(elementCount(shape) * dtypeBytes(dtype));
    throw new InputRangeError(
      `Cannot make ${path}: --shape ${
        shape.join(",")
      } takes ${bytes}, more than memory has room for`,
    );
  }
}

/** Reads a tensor, converts its dtype and layout, and writes it. */
export async function convertTensor(
  input: string,
  path: string,
  { dtype, fromLayout, toLayout, force }: {
    readonly dtype?: DType | undefined;
    readonly fromLayout?: Layout | FileFilterLayout | undefined;
    readonly toLayout?: Layout | FileFilterLayout | undefined;
    readonly force?: boolean | undefined;
  },
): Promise<Written & { readonly layout?: string | undefined }> {
  if ((fromLayout === undefined) !== (toLayout === undefined)) {
    throw new InputTypeError(`Cannot convert ${input}: --from-layout and --to-layout go together`);
  }
  await proveOutputs([{ option: "<out>", path, kind: "npy" }], { inputs: [input], force });
  using source = await openNpy(input);
  if (fromLayout !== undefined && toLayout !== undefined) {
    checkLayouts(input, source.shape, fromLayout, toLayout);
  }
  const { shape } = source;
  await proveRoom(path, { dtype: dtype ?? source.dtype, shape });
  const read = await source.readAs(dtype ?? source.dtype);
  const converted = fromLayout && toLayout ? convertLayout(read, fromLayout, toLayout) : read;
  await writeNpy(path, converted, { replace: force ?? false });
  return { ...written(path, converted, toLayout ? `, ${toLayout}` : ""), layout: toLayout };
}

function checkLayouts(
  path: string,
  shape: readonly number[],
  from: Layout | FileFilterLayout,
  to: Layout | FileFilterLayout,
): void {
  const families: readonly (readonly string[])[] = [LAYOUTS, FILE_FILTER_LAYOUTS];
  if (!families.some((family) => family.includes(from) && family.includes(to))) {
    throw new InputTypeError(
      `Cannot convert ${path}: ${from} and ${to} are not both layouts of activations, or of filters`,
    );
  }
  if (shape.length < 3 || shape.length > 5) {
    throw new InputTypeError(
      `Cannot convert ${path}: layout ${from} has 3 to 5 axes, the tensor has ${shape.length}`,
    );
  }
}

/** Makes a PNG file of a tensor. */
export async function showTensor(
  input: string,
  path: string,
  options: PictureOptions & { readonly force?: boolean | undefined },
): Promise<Written> {
  const { force } = options;
  await proveOutputs([{ option: "<out>", path, kind: "picture" }], { inputs: [input], force });
  const [source, { encode }] = await Promise.all([readNpy(input), import("fast-png")]);
  const { range, ...image } = picture(source, input, options);
  const png = encode({ ...image, depth: 8 });
  await writeOutput(path, async (write) => await write(png));
  const { width, height, channels } = image;
  const fields = { path, width, height, channels, range };
  const colours = channels === 3 ? "RGB" : "grey";
  const text = `${path}: ${width} x ${height} ${colours}, values ${range[0]} to ${range[1]}`;
  return { ...fields, text };
}

function written(path: string, { dtype, shape, data }: Tensor, more: string) {
  const name = path === "-" ? "stdout" : path;
  const text = `${name}: ${dtype} [${shape.join(", ")}]${more}, ${formatBytes(data.byteLength)}`;
  return { path, dtype, shape, bytes: data.byteLength, text };
}
