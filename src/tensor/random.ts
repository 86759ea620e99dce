/**
 * Seeded random numbers that are the same bits on every machine: integer arithmetic, and of floating
 * point only + - * / and sqrt, which IEEE 754 leaves no choice in (`Math.log` and kin differ).
 */

import { InputRangeError } from "../errors.ts";

const MASK = 0xffff_ffff_ffff_ffffn;

/** Spreads a seed over 64-bit words: SplitMix64 (Steele, Lea, Flood 2014). */
function splitMix64(seed: bigint): () => bigint {
  let state = seed;
  return () => {
    state = (state + 0x9e37_79b9_7f4a_7c15n) & MASK;
    let mixed = state;
    mixed = ((mixed ^ (mixed >> 30n)) * 0xbf58_476d_1ce4_e5b9n) & MASK;
    mixed = ((mixed ^ (mixed >> 27n)) * 0x94d0_49bb_1331_11ebn) & MASK;
    return mixed ^ (mixed >> 31n);
  };
}

/** A stream of 32-bit words: xoshiro128** (Blackman, Vigna 2018), period 2^128 - 1. */
export class RandomWords {
  readonly #state = new Int32Array(4);

  /** @throws {RangeError} for a seed that is no whole number from 0 to 2^53 - 1. */
  constructor(seed: number) {
    if (!Number.isSafeInteger(seed) || seed < 0) {
      throw new InputRangeError(`Cannot draw random numbers: seed ${seed} is no whole number >= 0`);
    }
    const next = splitMix64(BigInt(seed));
    // Two words in a row of SplitMix64 are never both zero, so neither is the state.
    for (let i = 0; i < 4; i += 2) {
      const word = next();
      this.#state[i] = Number(word & 0xffff_ffffn);
      this.#state[i + 1] = Number(word >> 32n);
    }
  }

  /** Fills `words` with the next words of the stream. */
  fill(words: Uint32Array): void {
    let [s0, s1, s2, s3] = this.#state as unknown as [number, number, number, number];
    for (let i = 0; i < words.length; i++) {
      const scrambled = Math.imul(s1, 5);
      words[i] = Math.imul((scrambled << 7) | (scrambled >>> 25), 9);
      const shifted = s1 << 9;
      s2 ^= s0;
      s3 ^= s1;
      s1 ^= s2;
      s0 ^= s3;
      s2 ^= shifted;
      s3 = (s3 << 11) | (s3 >>> 21);
    }
    this.#state.set([s0, s1, s2, s3]);
  }
}

const LN2 = 0.6931471805599453;
const SQRT_HALF = 0.7071067811865476;
/** 2^0 to 2^32, exact where `**` need not be. */
const POWERS = new Float64Array(33).fill(1);
for (let i = 1; i <= 32; i++) POWERS[i] = 2 * POWERS[i - 1]!;

/**
 * The normal quantile at (word + 1/2) / 2^32: a 32-bit word becomes a standard normal value of
 * magnitude at most 6.3, with an error near 1e-7. Rational approximations of PPND7 (Wichura, Algorithm
 * AS 241, 1988).
 */
export function normalQuantile(word: number): number {
  // Exact: 33 bits.
  const q = (word - 0x7fff_ffff - 0.5) / 0x1_0000_0000;
  if (q >= -0.425 && q <= 0.425) {
    const r = 0.180625 - q * q;
    const above = ((59.109374720 * r + 159.29113202) * r + 50.434271938) * r + 3.3871327179;
    const below = ((67.187563600 * r + 78.757757664) * r + 17.895169469) * r + 1;
    return q * above / below;
  }
  const tail = 0.5 - (q < 0 ? -q : q);
  const r = Math.sqrt(-logarithm(tail)) - 1.6;
  const above = ((0.17023821103 * r + 1.3067284816) * r + 2.7568153900) * r + 1.4234372777;
  const below = (0.12021132975 * r + 0.73700164250) * r + 1;
  return q < 0 ? -above / below : above / below;
}

/** Natural logarithm of a multiple of 2^-33 in (0, 1), to about 1e-11: the series of 2 artanh. */
function logarithm(value: number): number {
  // The shift that brings the value to [1/2, 1), found in its first 32 bits or its last one.
  const shift = Math.clz32(value * 0x1_0000_0000);
  let mantissa = value * POWERS[shift]!;
  let exponent = -shift;
  if (mantissa < SQRT_HALF) {
    mantissa *= 2;
    exponent--;
  }
  const s = (mantissa - 1) / (mantissa + 1);
  const t = s * s;
  const series = 1 +
    t * (1 / 3 + t * (1 / 5 + t * (1 / 7 + t * (1 / 9 + t * (1 / 11 + t * (1 / 13))))));
  return exponent * LN2 + 2 * s * series;
}
