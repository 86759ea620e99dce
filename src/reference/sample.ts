/** A seeded stream of numbers in [0, 1): the 32-bit mulberry generator, which is all that choosing places needs. */
export function randomStream(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * Chooses `count` different places of a grid [outer, spatial...], as flat indices in ascending order; all
 * of them where there are no more. A quarter are corners of the spatial axes (at the first and the last
 * outer index in turn), a quarter lie on a border, the rest are spread evenly: one to a stratum.
 *
 * @param turn Which corners come first; the caller counts up, so that many small samples see them all.
 */
export function samplePlaces(
  shape: readonly number[],
  count: number,
  turn: number,
  random: () => number,
): Float64Array {
  const total = shape.reduce((product, size) => product * size, 1);
  if (count >= total) return Float64Array.from({ length: total }, (_, place) => place);
  const chosen = new Set<number>();
  for (let i = 0; i < count; i++) {
    const stratum = Math.min(total - 1, Math.floor(((i + random()) * total) / count));
    let place = stratum;
    const kind = (i + turn) % 4;
    if (kind === 0) place = corner(shape, Math.floor((i + turn) / 4), random);
    else if (kind === 1) place = border(shape, stratum, random);
    // A place taken already, as the few corners soon are: its stratum's, then the next free one.
    if (chosen.has(place)) place = stratum;
    while (chosen.has(place)) place = (place + 1) % total;
    chosen.add(place);
  }
  return Float64Array.from(chosen).sort();
}

/** The corner whose bits `which` counts through, the last corner first. */
function corner(shape: readonly number[], which: number, random: () => number): number {
  let place = 0;
  shape.forEach((size, axis) => {
    const last = (which >> (axis - 1)) % 2 === 0;
    const outer = which < 2 ** shape.length ? size - 1 : Math.floor(random() * size);
    place = place * size + (axis === 0 ? outer : last ? size - 1 : 0);
  });
  return place;
}

/** `place` moved to the first or last element of one spatial axis. */
function border(shape: readonly number[], place: number, random: () => number): number {
  const axis = 1 + Math.floor(random() * (shape.length - 1));
  let stride = 1;
  for (let inner = shape.length - 1; inner > axis; inner--) stride *= shape[inner]!;
  const size = shape[axis]!;
  const at = Math.floor(place / stride) % size;
  return place + ((random() < 0.5 ? 0 : size - 1) - at) * stride;
}
