/** Steps of a value up to its scale: 14 bits, its sign among them. */
const STEPS = 2 ** 13;

const word = new Uint32Array(1);
const float = new Float32Array(word.buffer);

/** Makes `members` values, `each` apart from `first` on, what a quad in memory has of them (`src/kernels/quads.ts`). */
export function roundQuad(
  values: Float64Array,
  first: number,
  each: number,
  members: number,
): void {
  const end = first + members * each;
  let largest = 0;
  for (let i = first; i < end; i += each) {
    const size = Math.abs(values[i]!);
    // NaN is larger than anything.
    if (!(size <= largest)) largest = size;
    if (size !== size) break;
  }
  float[0] = largest;
  const code = Math.max(128, (word[0]! >>> 22) + 1);
  if (code >= 383) {
    for (let i = first; i < end; i += each) values[i] = NaN;
    return;
  }
  word[0] = code * 2 ** 22;
  const step = float[0] / STEPS;
  for (let i = first; i < end; i += each) {
    values[i] = step * Math.max(-STEPS, Math.min(STEPS - 1, Math.round(values[i]! / step)));
  }
}

/** The same of values `each` apart, so many of them after each other. */
export function roundQuads(values: Float64Array, each: number, members: number): void {
  for (let first = 0; first < values.length; first += members * each) {
    for (let i = 0; i < each; i++) roundQuad(values, first + i, each, members);
  }
}
