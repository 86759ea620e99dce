import { InputRangeError } from "../../errors.ts";

/**
 * A kernel Ω_α(n, r) of WinRS: n neighbouring columns of ∇W from r neighbouring columns of ∇Y by the
 * one-dimensional Winograd convolution F(n, r).
 */
export interface Omega {
  /** Multiplications of a tile, n + r − 1; Ω2(1,1) is called 2, and is the direct product. */
  readonly alpha: number;
  /** Columns of ∇W that a tile yields; divides the filter's width. */
  readonly n: number;
  /** Columns of ∇Y that a tile takes. */
  readonly r: number;
}

/** The 13 kernels, by α and then n. */
export const OMEGAS: readonly Omega[] = [
  { alpha: 2, n: 1, r: 1 },
  { alpha: 4, n: 2, r: 3 },
  { alpha: 4, n: 3, r: 2 },
  { alpha: 8, n: 3, r: 6 },
  { alpha: 8, n: 4, r: 5 },
  { alpha: 8, n: 5, r: 4 },
  { alpha: 8, n: 6, r: 3 },
  { alpha: 8, n: 7, r: 2 },
  { alpha: 16, n: 5, r: 12 },
  { alpha: 16, n: 6, r: 11 },
  { alpha: 16, n: 7, r: 10 },
  { alpha: 16, n: 8, r: 9 },
  { alpha: 16, n: 9, r: 8 },
];

/** Ω2(1,1), which fits every filter and every width. */
export const DIRECT: Omega = OMEGAS[0]!;

/** `a8n3r6` for Ω8(3,6). */
export function omegaName({ alpha, n, r }: Omega): string {
  return `a${alpha}n${n}r${r}`;
}

/**
 * The kernel that {@linkcode omegaName} calls so.
 *
 * @throws {RangeError} if there is none.
 */
export function parseOmega(text: string): Omega {
  const found = OMEGAS.find((omega) => omegaName(omega) === text);
  if (found) return found;
  throw new InputRangeError(
    `Cannot choose a WinRS kernel: "${text}" is none of ${OMEGAS.map(omegaName).join(", ")}`,
  );
}

/** How many multiplications of the direct product one multiplication of the kernel replaces: n·r / α, 1 for Ω2(1,1). */
export function acceleration({ n, r }: Omega): number {
  return n * r / (n + r - 1);
}

/** Kernels whose n divides the filter's width; at least Ω2(1,1). */
export function admissible(filterWidth: number): Omega[] {
  return OMEGAS.filter(({ n }) => filterWidth % n === 0);
}
