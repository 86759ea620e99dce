import { RandomWords } from "../../src/tensor/random.ts";

/** Random choices of one case: the same for the same seed, kind and number on every machine. */
export class Draw {
  readonly #random: RandomWords;
  readonly #word = new Uint32Array(1);

  constructor(seed: number, kind: string, number: number) {
    let hash = 2166136261;
    for (const character of `${seed} ${kind}`) {
      hash = Math.imul(hash ^ character.codePointAt(0)!, 16777619) >>> 0;
    }
    // 21 bits of the seed and kind, 32 of the number.
    this.#random = new RandomWords((hash >>> 11) * 2 ** 32 + number);
  }

  /** A whole number from 0 to 2³² − 1. */
  word(): number {
    this.#random.fill(this.#word);
    return this.#word[0]!;
  }

  /** A whole number from `least` to `most`. */
  int(least: number, most: number): number {
    return least + this.word() % (most - least + 1);
  }

  /** Whether something of this probability happens. */
  chance(probability: number): boolean {
    return this.word() < probability * 2 ** 32;
  }

  pick<T>(list: readonly T[]): T {
    return list[this.word() % list.length]!;
  }

  /** `count` of what `make` makes. */
  times<T>(count: number, make: (index: number) => T): T[] {
    return Array.from({ length: count }, (_, index) => make(index));
  }
}
