import { TEXT_HEIGHT, textPixels } from "./demo_font.ts";

/** A picture of 8-bit red, green and blue. */
export interface Picture {
  readonly width: number;
  readonly height: number;
  readonly channels: 3;
  readonly data: Uint8Array;
}

/** Values of one pixel, 0 to 1, of red, green and blue. */
type Shade = (pixel: number) => readonly [number, number, number];

/** Pictures of the photo and of what the filter made of it, by name. Both tensors are H W C. */
export function pictures(
  photo: Float32Array,
  filtered: Float32Array,
  width: number,
  height: number,
): [string, Picture][] {
  const outputs = filtered.length / (width * height);
  const color = (data: Float32Array, channels: number, first: number): Shade => (pixel) => [
    data[pixel * channels + first]!,
    data[pixel * channels + first + 1]!,
    data[pixel * channels + first + 2]!,
  ];
  const grey = (value: (pixel: number) => number): Shade => (pixel) => {
    const shade = value(pixel);
    return [shade, shade, shade];
  };
  const at = (pixel: number, channel: number) => filtered[pixel * outputs + channel]!;
  const shades: [string, Shade][] = [
    ["photo", color(photo, 3, 0)],
    ["blur", color(filtered, outputs, 0)],
    ["sharpen", color(filtered, outputs, 3)],
    ["sobel_x", grey((pixel) => 0.5 + at(pixel, 6))],
    ["sobel_y", grey((pixel) => 0.5 + at(pixel, 7))],
    ["sobel", grey((pixel) => 2 * Math.hypot(at(pixel, 6), at(pixel, 7)))],
    ["edges", grey((pixel) => 0.5 + at(pixel, 8))],
    ["emboss", grey((pixel) => 0.5 + 0.5 * at(pixel, 9))],
  ];
  return shades.map(([name, shade]) => [name, paint(shade, width, height)]);
}

function paint(shade: Shade, width: number, height: number): Picture {
  const data = new Uint8Array(width * height * 3);
  for (let pixel = 0; pixel < width * height; pixel++) {
    shade(pixel).forEach((value, channel) => {
      data[pixel * 3 + channel] = Math.round(255 * Math.min(1, Math.max(0, value)));
    });
  }
  return { width, height, channels: 3, data };
}

/** Pixels between pictures, and the height of the strip that a caption stands in. */
const GAP = 4;
const CAPTION = TEXT_HEIGHT + 2 * GAP;

/** Pictures of one size side by side, `columns` to a row, on black, each below its name. */
export function contactSheet(
  tiles: readonly (readonly [name: string, picture: Picture])[],
  columns: number,
): Picture {
  const first = tiles[0]?.[1];
  if (!first) throw new RangeError("Cannot make a contact sheet of no pictures");
  const rows = Math.ceil(tiles.length / columns);
  const width = columns * (first.width + GAP) - GAP;
  const height = rows * (CAPTION + first.height);
  const data = new Uint8Array(width * height * 3);
  tiles.forEach(([name, picture], index) => {
    const left = (index % columns) * (first.width + GAP);
    const top = Math.floor(index / columns) * (CAPTION + first.height);
    const text = textPixels(name.replaceAll("_", " "));
    for (let y = 0; y < TEXT_HEIGHT; y++) {
      for (let x = 0; x < text.width; x++) {
        const at = ((top + GAP + y) * width + left + GAP + x) * 3;
        data.fill(text.set[y * text.width + x]! * 255, at, at + 3);
      }
    }
    for (let y = 0; y < first.height; y++) {
      const line = picture.data.subarray(y * first.width * 3, (y + 1) * first.width * 3);
      data.set(line, ((top + CAPTION + y) * width + left) * 3);
    }
  });
  return { width, height, channels: 3, data };
}
