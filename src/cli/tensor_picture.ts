import { InputRangeError, InputTypeError } from "../errors.ts";
import { rowMajorStrides, type Tensor } from "../tensor/tensor.ts";

/** Axes of a picture, outermost first: image of a batch, height, width, channel. */
export type PictureLayout = "nchw" | "nhwc" | "hwc" | "chw" | "hw";

/** Layouts of a single image. */
export const IMAGE_LAYOUTS = ["chw", "hwc"] as const;
export type ImageLayout = (typeof IMAGE_LAYOUTS)[number];

export const PICTURE_LAYOUTS: readonly PictureLayout[] = ["nchw", "nhwc", "hwc", "chw", "hw"];

export interface PictureOptions {
  readonly index: number;
  readonly channel?: number | undefined;
  /** Guessed where it is not given: channels last where there are 1 or 3 of them there. */
  readonly layout?: PictureLayout | undefined;
  /** Values that become 0 and 255. */
  readonly range?: readonly [min: number, max: number] | undefined;
}

/** An 8-bit picture, rows from the top, channels innermost. */
export interface Picture {
  readonly width: number;
  readonly height: number;
  readonly channels: number;
  readonly data: Uint8Array;
  /** The values that became 0 and 255; nothing where none is finite. */
  readonly range: readonly [min: number, max: number] | null;
  /** How the tensor's axes were taken. */
  readonly layout: PictureLayout;
}

/**
 * Makes a grey or RGB picture of a tensor. NaN becomes 0, values beyond the range its ends, and an infinity 0 or 255.
 *
 * @throws {TypeError} for a tensor that has not the layout's axes, or more channels than a picture.
 * @throws {RangeError} for an image or channel that is not there, and for pictures of no pixels.
 */
export function picture(source: Tensor, path: string, options: PictureOptions): Picture {
  const refusal = (text: string) => `Cannot show ${path}: ${text}`;
  const { shape } = source;
  const layout = options.layout ?? guessLayout(shape);
  if (layout === undefined || layout.length !== shape.length) {
    const wanted = layout === undefined
      ? "a picture has 2 to 4"
      : `layout ${layout} has ${layout.length}`;
    throw new InputTypeError(refusal(`${wanted} axes, the tensor has ${shape.length}`));
  }
  const strides = rowMajorStrides(shape);
  const axis = (letter: string) => {
    const place = layout.indexOf(letter);
    return place < 0 ? { size: 1, stride: 0 } : { size: shape[place]!, stride: strides[place]! };
  };
  const [n, c, h, w] = [axis("n"), axis("c"), axis("h"), axis("w")];
  if (options.index >= n.size) {
    throw new InputRangeError(
      refusal(`there is no image ${options.index}, only 0 to ${n.size - 1}`),
    );
  }
  const { channel } = options;
  if (channel !== undefined && channel >= c.size) {
    throw new InputRangeError(refusal(`there is no channel ${channel}, only 0 to ${c.size - 1}`));
  }
  if (channel === undefined && c.size !== 1 && c.size !== 3) {
    throw new InputTypeError(
      refusal(
        `${c.size} channels make no picture: pick one with --channel` +
          (options.layout === undefined
            ? `; the axes were taken as ${layout}, --layout says others`
            : ""),
      ),
    );
  }
  if (h.size * w.size === 0) throw new InputRangeError(refusal(`[${shape}] has no pixels`));
  const channels = channel === undefined ? c.size : 1;
  const start = options.index * n.stride + (channel ?? 0) * c.stride;
  const values = new Float64Array(h.size * w.size * channels);
  let out = 0;
  for (let y = 0; y < h.size; y++) {
    for (let x = 0; x < w.size; x++) {
      for (let k = 0; k < channels; k++) {
        values[out++] = Number(source.data[start + y * h.stride + x * w.stride + k * c.stride]);
      }
    }
  }
  const range = options.range ?? (source.dtype === "u8" ? [0, 255] : finiteRange(values));
  return { width: w.size, height: h.size, channels, data: toBytes(values, range), range, layout };
}

function guessLayout(shape: readonly number[]): PictureLayout | undefined {
  const last = shape.at(-1);
  const channelsLast = last === 1 || last === 3;
  switch (shape.length) {
    case 2:
      return "hw";
    case 3:
      return channelsLast ? "hwc" : "chw";
    case 4:
      return channelsLast && shape[1] !== 1 && shape[1] !== 3 ? "nhwc" : "nchw";
    default:
      return undefined;
  }
}

function finiteRange(values: Float64Array): [min: number, max: number] | null {
  let [min, max] = [Infinity, -Infinity];
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    if (value < min) min = value;
    if (value > max) max = value;
  }
  return min <= max ? [min, max] : null;
}

function toBytes(values: Float64Array, range: Picture["range"]): Uint8Array {
  const [min, max] = range ?? [0, 0];
  const scale = max > min ? 255 / (max - min) : 0;
  // Clamps, rounds to nearest, and makes NaN 0.
  return Uint8Array.from(
    Uint8ClampedArray.from(values, (value) => value > max ? 255 : (value - min) * scale),
  );
}
