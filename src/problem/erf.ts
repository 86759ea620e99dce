/** Error function, to about 1e-15; Abramowitz and Stegun 7.1.6, and 7.1.14 from 3 on. */
export function erf(x: number): number {
  return Math.abs(x) < 3 ? erfSeries(x) : 1 - erfc(x);
}

/** Complementary error function, 1 − erf(x), to about 1e-14 of itself. */
export function erfc(x: number): number {
  if (Number.isNaN(x)) return NaN;
  if (x < 0) return 2 - erfc(-x);
  if (x < SERIES_END) return 1 - erfSeries(x);
  return x > 27.3 ? 0 : Math.exp(-x * x) / Math.sqrt(Math.PI) * tailFraction(x);
}

/** Beyond it 1 − erf(x) would cancel, and the continued fraction is quick. */
const SERIES_END = 1.5;

/** 2/√π · e^(−x²) · Σ 2ⁿ x^(2n+1) / (2n+1)!!: all terms of one sign, so nothing cancels. */
function erfSeries(x: number): number {
  let term = x;
  let sum = x;
  for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); n++) {
    term *= 2 * x * x / (2 * n + 1);
    sum += term;
  }
  return 2 / Math.sqrt(Math.PI) * Math.exp(-x * x) * sum;
}

/** Continued fraction 1/(x + (1/2)/(x + 1/(x + (3/2)/(x + …)))), evaluated from its far end. */
function tailFraction(x: number): number {
  let rest = x;
  for (let n = Math.ceil(20 + 120 / (x * x)); n > 0; n--) rest = x + (n / 2) / rest;
  return 1 / rest;
}
