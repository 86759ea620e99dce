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

/** Pictures of one size side by side, `columns` to a row, on black with a gap of 4 pixels. */
export function contactSheet(tiles: readonly Picture[], columns: number): Picture {
  const gap = 4;
  const tile = tiles[0];
  if (!tile) throw new RangeError("Cannot make a contact sheet of no pictures");
  const rows = Math.ceil(tiles.length / columns);
  const width = columns * (tile.width + gap) - gap;
  const height = rows * (tile.height + gap) - gap;
  const data = new Uint8Array(width * height * 3);
  tiles.forEach((picture, index) => {
    const left = (index % columns) * (tile.width + gap);
    const top = Math.floor(index / columns) * (tile.height + gap);
    for (let y = 0; y < tile.height; y++) {
      const line = picture.data.subarray(y * tile.width * 3, (y + 1) * tile.width * 3);
      data.set(line, ((top + y) * width + left) * 3);
    }
  });
  return { width, height, channels: 3, data };
}
