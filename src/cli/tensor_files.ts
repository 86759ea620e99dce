import { InputRangeError, InputTypeError, isOutOfHostMemory } from "../errors.ts";
import { openNpy, writeNpy, writeOutput } from "../npy/mod.ts";
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
import { elementCount, type Tensor, tensor } from "../tensor/tensor.ts";
import { refuseUnusedAs } from "./shared_options.ts";
import { proveOutputs } from "./outputs.ts";
import { IMAGE_LAYOUTS, type ImageLayout, picture, type PictureOptions } from "./tensor_picture.ts";

type ConvertedLayout = Layout | FileFilterLayout | ImageLayout;

/** A file that was written: the fields of its JSON report, and `text`, the same for people. */
interface Written {
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
  return { ...written(path, shape, dtype, `, ${fill}, seed ${seed}`), fill, seed };
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
  { dtype, as, fromLayout, toLayout, force }: {
    readonly dtype?: DType | undefined;
    readonly as?: "bf16" | undefined;
    readonly fromLayout?: ConvertedLayout | undefined;
    readonly toLayout?: ConvertedLayout | undefined;
    readonly force?: boolean | undefined;
  },
): Promise<Written & { readonly layout?: string | undefined }> {
  if ((fromLayout === undefined) !== (toLayout === undefined)) {
    throw new InputTypeError(`Cannot convert ${input}: --from-layout and --to-layout go together`);
  }
  await proveOutputs([{ option: "<out>", path, kind: "npy" }], { inputs: [input], force });
  using source = await openNpy(input, { as });
  refuseUnusedAs(`Cannot convert ${input}`, as, [source]);
  if (fromLayout !== undefined && toLayout !== undefined) {
    checkLayouts(input, source.shape, fromLayout, toLayout);
  }
  const { shape } = source;
  const target = dtype ?? source.dtype;
  await proveRoom(path, { dtype: target, shape });
  const read = await source.readAs(target);
  const converted = fromLayout && toLayout ? convertedTensor(read, fromLayout, toLayout) : read;
  await writeNpy(path, converted, { replace: force ?? false });
  const more = toLayout ? `, ${toLayout}` : "";
  return { ...written(path, converted.shape, target, more), layout: toLayout };
}

function convertedTensor(read: Tensor, from: ConvertedLayout, to: ConvertedLayout): Tensor {
  const whole = isImage(from) ? tensor(read.dtype, [1, ...read.shape], read.data) : read;
  const converted = convertLayout(whole, batchedLayout(from), batchedLayout(to));
  const { dtype, shape, data } = converted;
  return isImage(from) ? tensor(dtype, shape.slice(1), data) : converted;
}

function batchedLayout(layout: ConvertedLayout): Layout | FileFilterLayout {
  return isImage(layout) ? `n${layout}` : layout;
}

function isImage(layout: ConvertedLayout): layout is ImageLayout {
  return IMAGE_LAYOUTS.some((one) => one === layout);
}

function checkLayouts(
  path: string,
  shape: readonly number[],
  from: ConvertedLayout,
  to: ConvertedLayout,
): void {
  const families: readonly (readonly string[])[] = [LAYOUTS, FILE_FILTER_LAYOUTS, IMAGE_LAYOUTS];
  if (!families.some((family) => family.includes(from) && family.includes(to))) {
    throw new InputTypeError(
      `Cannot convert ${path}: ${from} and ${to} are not both layouts of activations, of filters, ` +
        "or of an image",
    );
  }
  if (isImage(from)) {
    if (shape.length === 3) return;
    throw new InputTypeError(
      `Cannot convert ${path}: layout ${from} has 3 axes, the tensor has ${shape.length}`,
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
  options: PictureOptions & {
    readonly as?: "bf16" | undefined;
    readonly force?: boolean | undefined;
  },
): Promise<Written> {
  const { force } = options;
  await proveOutputs([{ option: "<out>", path, kind: "picture" }], { inputs: [input], force });
  using source = await openNpy(input, { as: options.as });
  refuseUnusedAs(`Cannot show ${input}`, options.as, [source]);
  const [values, { encode }] = await Promise.all([source.read(), import("fast-png")]);
  const { range, layout, ...image } = picture(values, input, options);
  const png = encode({ ...image, depth: 8 });
  await writeOutput(path, async (write) => await write(png));
  const { width, height, channels } = image;
  const fields = { path, width, height, channels, range };
  const colours = channels === 3 ? "RGB" : "grey";
  const guessed = options.layout === undefined && layout !== "hw";
  const text = `${path}: ${width} x ${height} ${colours}${guessed ? ` of ${layout}` : ""}, ` +
    (range === null ? "no value is finite" : `values ${range[0]} to ${range[1]}`);
  return { ...fields, text };
}

function written(path: string, shape: readonly number[], dtype: DType, more: string) {
  const name = path === "-" ? "stdout" : path;
  const bytes = shape.includes(0) ? 0 : elementCount(shape) * dtypeBytes(dtype);
  const text = `${name}: ${dtype} [${shape.join(", ")}]${more}, ${formatBytes(bytes)}`;
  return { path, dtype, shape, bytes, text };
}
