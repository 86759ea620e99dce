import { InputRangeError, InputSyntaxError } from "../errors.ts";
import { MAX_ALPHA } from "./points.ts";

/** An output tile and the filter it is for, an entry a spatial axis: F(n,r), or F(n0xn1,r0xr1). */
export interface WinogradTile {
  readonly n: readonly number[];
  readonly r: readonly number[];
}

/**
 * Parses "F(6,3)", "F(2x2,3x3)" or "F(4x2,3x5)"; blanks and the letter's case do not matter.
 *
 * @param axes How many a tile may have.
 * @throws {SyntaxError} for other text
 * @throws {RangeError} where an axis has sizes below 1 or n + r − 1 above 16
 */
export function parseTile(text: string, axes = 2): WinogradTile {
  const fail = (what: string) => new InputSyntaxError(`Cannot read tile "${text}": ${what}`);
  const match = /^f\(([\dx]+),([\dx]+)\)$/i.exec(text.replace(/\s/g, ""));
  const [n, r] = [match?.[1], match?.[2]].map((part) => sizes(part, axes));
  if (n === undefined || r === undefined) throw fail("expected F(6,3) or F(2x2,3x3)");
  if (n.length !== r.length) throw fail(`n has ${n.length} axes, r has ${r.length}`);
  n.forEach((size, axis) => {
    const length = r[axis]!;
    const alpha = size + length - 1;
    if (size < 1 || length < 1) throw rangeError(text, `F(${size},${length}) has a size below 1`);
    if (alpha > MAX_ALPHA) {
      throw rangeError(
        text,
        `n + r - 1 of F(${size},${length}) is ${alpha}, above ${MAX_ALPHA}`,
      );
    }
  });
  return { n, r };
}

/** The text that `parseTile` reads: "F(2x2,3x3)". */
export function formatTile({ n, r }: WinogradTile): string {
  return `F(${n.join("x")},${r.join("x")})`;
}

function sizes(text: string | undefined, axes: number): number[] | undefined {
  const parts = text?.split("x") ?? [];
  const valid = parts.length >= 1 && parts.length <= axes &&
    parts.every((part) => /^\d{1,9}$/.test(part));
  return valid ? parts.map(Number) : undefined;
}

function rangeError(text: string, what: string): InputRangeError {
  return new InputRangeError(`Cannot use tile ${text}: ${what}`);
}
