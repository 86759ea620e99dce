import { acceleration, type Omega, omegaName, OMEGAS } from "./omega.ts";

/** Direct TFLOP/s of kernels by {@linkcode omegaName}: only their ratios choose a pair. */
export type ThroughputTable = Readonly<Record<string, number>>;

/** Of a kernel's rate: so slow that nothing chooses it. */
export const NEVER = 1e-9;

/** What products alone reach, in TFLOP/s of f32. */
const PRODUCTS = 30;

/** The rates that follow from the numbers of multiplications alone: 30·n·r/α. */
export const NOMINAL_THROUGHPUT: ThroughputTable = Object.fromEntries(
  OMEGAS.map((omega) => [omegaName(omega), PRODUCTS * acceleration(omega)]),
);

/**
 * A table's rate of a kernel, as {@linkcode fastestPair} takes it.
 *
 * @throws {RangeError} from the function returned, if the rate is missing or not positive.
 */
export function throughputOf(table: ThroughputTable): (omega: Omega) => number {
  return (omega) => {
    const name = omegaName(omega);
    const rate = table[name];
    if (rate !== undefined && rate > 0) return rate;
    throw new RangeError(`Cannot choose WinRS kernels: the throughput of ${name} is ${rate}`);
  };
}
