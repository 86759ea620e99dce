import { acceleration, type Omega, omegaName, OMEGAS } from "./omega.ts";

/** Direct TFLOP/s of kernels by {@linkcode omegaName}: only their ratios choose a pair. */
export type ThroughputTable = Readonly<Record<string, number>>;

/** What products alone reach, in TFLOP/s of f32. */
const PRODUCTS = 30;

/** The rates that follow from the numbers of multiplications alone: 30·n·r/α. */
export const NOMINAL_THROUGHPUT: ThroughputTable = Object.fromEntries(
  OMEGAS.map((omega) => [omegaName(omega), PRODUCTS * acceleration(omega)]),
);

/**
 * Those of an H200 in nhwc, used where nothing else is given: what {@linkcode throughputTable} makes of
 * `bench/winrs_sweep.ts 95 nhwc '^(F2c256|F3c64|F3c256|F4c256|F5c128|F5c512|F6c256|F7c128|F8c64|F9c128|Conv[2345]N64)$'`,
 * whose records are in `bench/results/h200-2026-11-20/winrs_sweep.txt`.
 */
export const DEFAULT_THROUGHPUT: ThroughputTable = {
  a2n1r1: 33.8,
  a4n2r3: 54.2,
  a4n3r2: 52.3,
  a8n3r6: 73.1,
  a8n4r5: 82.5,
  a8n5r4: 81.8,
  a8n6r3: 81.5,
  a8n7r2: 59.0,
  a16n5r12: 101.9,
  a16n6r11: 114.5,
  a16n7r10: 127.3,
  a16n8r9: 133.1,
  a16n9r8: 125.5,
};

/**
 * A table's rate of a kernel, as {@linkcode fastestPair} takes it; the default rate where the table is silent.
 *
 * @throws {RangeError} from the function returned, if the rate is not positive.
 */
export function throughputOf(
  table: ThroughputTable = DEFAULT_THROUGHPUT,
): (omega: Omega) => number {
  return (omega) => {
    const name = omegaName(omega);
    const rate = table[name] ?? DEFAULT_THROUGHPUT[name]!;
    if (rate > 0) return rate;
    throw new RangeError(`Cannot choose WinRS kernels: the throughput of ${name} is ${rate}`);
  };
}

/**
 * The table that lines of `bench/winrs_sweep.ts` hold; others are passed over.
 *
 * @throws {SyntaxError} if a line that begins as a record is no JSON.
 */
export function throughputTable(lines: string): ThroughputTable {
  const table: Record<string, number> = {};
  for (const line of lines.split("\n").filter((text) => text.startsWith("{"))) {
    const record: unknown = JSON.parse(line);
    if (typeof record !== "object" || record === null) continue;
    const { kind, algorithm, kernel, gflops } = record as Readonly<Record<string, unknown>>;
    if (kind !== "tuning" || algorithm !== "winrs") continue;
    if (typeof kernel === "string" && typeof gflops === "number") table[kernel] = gflops / 1000;
  }
  return table;
}
