/** Quantiles of errors in one pass, without keeping them. */

/** 512 bins to each power of two: neighbours differ by 0.2 %. */
const SHIFT = 11;
const BINS = 2 ** 20;

/** A histogram of numbers >= 0 over the whole range of doubles, for quantiles in one pass. */
interface Quantiles {
  add(value: number): void;
  /** The value that a fraction `q` of all lies at or below, to 0.2 %; `null` where nothing was added. */
  at(q: number): number | null;
}

/** Makes an empty histogram. */
export function quantiles(): Quantiles {
  const counts = new Uint32Array(BINS);
  const number = new Float64Array(1);
  // A double's upper half: exponent and leading bits, in the order of the values themselves.
  const words = new Uint32Array(number.buffer);
  let count = 0;
  return {
    add(value) {
      number[0] = value;
      counts[words[1]! >>> SHIFT]!++;
      count++;
    },
    at(q) {
      if (count === 0) return null;
      const rank = Math.min(count, Math.max(1, Math.ceil(q * count)));
      let bin = 0;
      for (let below = counts[0]!; below < rank; below += counts[++bin]!);
      words[0] = 0;
      words[1] = bin << SHIFT;
      return number[0]!;
    },
  };
}
