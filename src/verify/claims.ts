/** What a kernel of others claims to compute in, as ways that its sums may be rounded. */
import { InputTypeError } from "../errors.ts";
import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";

/** A way to compute a result that a claim allows. */
export interface Way {
  /** What it is called in messages: `f32, in one sum`. */
  readonly name: string;
  readonly arithmetic: PlanArithmetic;
}

/** Orders in which others may sum: those of plain loops, of the innermost blocks of libraries, of split sums. */
const ORDERS: readonly Way[] = [
  { name: "one sum", arithmetic: {} },
  { name: "one sum, taps innermost", arithmetic: { inner: "taps" } },
  ...[4, 16, 64, 256].map((chain) => ({ name: `sums of ${chain}`, arithmetic: { chain } })),
  { name: "sums of 32 in segments of 512", arithmetic: { chain: 32, segment: 512 } },
];

/**
 * The ways that `--arithmetic` allows, those first that allow most for their time.
 *
 * @throws {TypeError} for a name that is none.
 */
export function parseClaim(text: string): readonly Way[] {
  if (text !== "f32") {
    throw new InputTypeError(`Cannot verify: there is no arithmetic "${text}", expected f32`);
  }
  return ORDERS.map(({ name, arithmetic }) => ({ name: `f32, ${name}`, arithmetic }));
}
