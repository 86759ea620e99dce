import { readNpz } from "../../mod.ts";

/** Pictures with what they show. */
export interface Digits {
  readonly count: number;
  /** 8 x 8 values from 0 to 1 each, one picture after the other. */
  readonly images: Float32Array<ArrayBuffer>;
  /** 0 to 9. */
  readonly labels: Int32Array<ArrayBuffer>;
}

/** Pixels along a side of a picture. */
export const SIDE = 8;
/** Values of a picture. */
export const PIXELS = SIDE * SIDE;
/** Pictures that nothing is trained on: the last ones, which other writers wrote. */
export const TESTED = 360;

/**
 * 1797 handwritten digits: the test set of "Optical Recognition of Handwritten Digits" (E. Alpaydin and C. Kaynak, UCI
 * Machine Learning Repository, 1998, CC BY 4.0), as scikit-learn ships it.
 */
export async function readDigits(
  file = `${import.meta.dirname}/../../fixtures/digits_8x8.npz`,
): Promise<Digits> {
  const { images, labels } = await readNpz(file);
  const count = labels!.data.length;
  return {
    count,
    images: Float32Array.from(images!.data as Uint8Array, (value) => value / 16),
    labels: Int32Array.from(labels!.data as Uint8Array),
  };
}

/** Indices from `first` on. */
export function range(first: number, count: number): Int32Array<ArrayBuffer> {
  return Int32Array.from({ length: count }, (_, i) => first + i);
}

/** A stream of numbers in [0, 1) that a seed begins: the same shuffles for every run (mulberry32). */
function randomStream(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let value = Math.imul(state ^ (state >>> 15), state | 1);
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The first `count` indices in an order of their own for each seed (Fisher and Yates). */
export function shuffled(count: number, seed: number): Int32Array<ArrayBuffer> {
  const random = randomStream(seed);
  const order = range(0, count);
  for (let i = count - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [order[i], order[j]] = [order[j]!, order[i]!];
  }
  return order;
}
