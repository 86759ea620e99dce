/** Ticks, units and labels of charts' axes. */
import { significant } from "../format.ts";
import { median } from "../stats.ts";

/** A tick of an axis, and what stands beside it: a text a line. */
interface Tick {
  readonly value: number;
  readonly label: string | readonly string[];
}

/**
 * An axis whose ticks are given one by one: a parameter for the chart and what says so to Vega-Lite.
 *
 * @param name Of the parameter, which the axis looks its labels up in.
 */
export function tickedAxis(name: string, ticks: readonly Tick[]) {
  return {
    param: { name, value: Object.fromEntries(ticks.map(({ value, label }) => [value, label])) },
    axis: {
      values: ticks.map(({ value }) => value),
      labelExpr: `${name}[datum.value]`,
      labelOverlap: false,
      labelFlush: false,
    },
  };
}

/** A unit and what it is of the base unit. */
interface Unit {
  readonly name: string;
  readonly scale: number;
}

/** Units of rates that are given in GFLOP/s, those of headlines and tables. */
export const RATE_UNITS: readonly Unit[] = [
  { name: "GFLOP/s", scale: 1 },
  { name: "TFLOP/s", scale: 1000 },
];

/** The largest unit that most of the values above zero have at least one of; the smallest where there are none. */
export function fittingUnit(values: readonly number[], units: readonly Unit[]): Unit {
  const positive = values.filter((value) => value > 0);
  const usual = positive.length === 0 ? 0 : median(positive);
  return units.findLast(({ scale }) => usual >= scale) ?? units[0]!;
}

/** Multiples within a decade that ticks are tried at, from many to few. */
const MULTIPLES = [[1, 1.5, 2, 3, 4, 5, 6, 8], [1, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]];
/** Share of an axis that a tick's label needs, with air. */
const LABEL_ROOM = 0.1;
const LEAST_TICKS = 3;

/** Round values within a range, for an axis of logarithms: three or more, however narrow it is, and none too near the next. */
export function logTicks(low: number, high: number, print: (value: number) => string): Tick[] {
  const decades = Math.log10(high / low);
  const skip = Math.ceil(decades * LABEL_ROOM);
  for (const multiples of MULTIPLES) {
    const values = decadesOf(low, high, skip)
      .flatMap((power) => multiples.map((multiple) => Number(`${multiple}e${power}`)))
      .filter((value) => value >= low && value <= high);
    const apart = values.every((value, i) =>
      i === 0 || Math.log10(value / values[i - 1]!) >= LABEL_ROOM * decades
    );
    if (apart && values.length >= LEAST_TICKS) return ticksAt(values, print);
  }
  return ticksAt(evenValues(low, high), print);
}

function decadesOf(low: number, high: number, skip: number): number[] {
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  return Array.from({ length: last - first + 1 }, (_, i) => first + i)
    .filter((power) => power % skip === 0);
}

/** Multiples of 1, 2 or 5 times a power of ten: three to eight of them. */
function evenValues(low: number, high: number): number[] {
  const rough = (high - low) / LEAST_TICKS;
  const power = Math.floor(Math.log10(rough));
  const step = [5, 2, 1].find((digit) => digit * 10 ** power <= rough)!;
  const unit = Number(`${step}e${power}`);
  const [first, last] = [Math.ceil(low / unit), Math.floor(high / unit)];
  return Array.from(
    { length: last - first + 1 },
    (_, i) => Number(((first + i) * unit).toPrecision(12)),
  );
}

function ticksAt(values: readonly number[], print: (value: number) => string): Tick[] {
  return values.map((value) => ({ value, label: print(value) }));
}

/** A logarithmic domain that leaves air around values, and is never narrower than asked. */
export function logDomain(
  values: readonly number[],
  least: number,
  air = 1.3,
): [low: number, high: number] {
  const [low, high] = [Math.min(...values) / air, Math.max(...values) * air];
  const missing = Math.max(1, Math.sqrt(least * low / high));
  return [low / missing, high * missing];
}

/** A number as an axis has it: `0.5`, `20`, `3k`, `1e-7`. */
export function axisNumber(value: number): string {
  if (value === 0) return "0";
  if (value < 0.01) return Number(value.toPrecision(4)).toExponential();
  return value >= 1e6
    ? `${Number((value / 1e6).toPrecision(4))}M`
    : value >= 1e4
    ? `${Number((value / 1000).toPrecision(4))}k`
    : String(Number(significant(value)));
}

/** An axis of logarithms: the parameter that holds its labels, and the encoding of a field. */
export function logEncoding(
  field: string,
  { title, domain: [low, high] }: {
    readonly title: string;
    readonly domain: readonly [number, number];
  },
) {
  const { param, axis } = tickedAxis(`${field}Labels`, logTicks(low, high, axisNumber));
  return {
    param,
    encoding: {
      field,
      type: "quantitative" as const,
      title,
      scale: { type: "log" as const, domain: [low, high], nice: false },
      axis,
    },
  };
}
