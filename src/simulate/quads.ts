/** Steps of a value up to its scale: 14 bits, its sign among them. */
const STEPS = 2 ** 13;

const word = new Uint32Array(1);
const float = new Float32Array(word.buffer);

/** Values as a quad in memory has them (`src/kernels/quads.ts`). */
export function roundedQuad(values: readonly number[]): number[] {
  float[0] = Math.max(...values.map(Math.abs));
  const code = Math.max(128, (word[0]! >>> 22) + 1);
  if (Number.isNaN(float[0]) || code >= 383) return values.map(() => NaN);
  word[0] = code * 2 ** 22;
  const step = float[0] / STEPS;
  return values.map((value) =>
    step * Math.max(-STEPS, Math.min(STEPS - 1, Math.round(value / step)))
  );
}
