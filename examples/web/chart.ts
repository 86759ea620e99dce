/** A chart of speed against error, as SVG text. */

/** A point: what ran, how fast and how wrong. */
export interface ChartPoint {
  readonly name: string;
  /** GFLOP/s */
  readonly speed: number;
  /** Relative L2 error; 0 of exact results. */
  readonly error: number;
  readonly right: boolean;
}

const HEIGHT = 300;
const LEFT = 56;
const RIGHT = 12;
const TOP = 14;
const BOTTOM = 44;
/** Pixels of a line of labels, and of a character. */
const LINE = 14;
const CHARACTER = 6.6;

/** Powers of ten from the one at or below the least value to the one at or above the most. */
export function decades(values: readonly number[]): number[] {
  const low = Math.floor(Math.log10(Math.min(...values)) + 1e-9);
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values)) - 1e-9));
  return Array.from({ length: high - low + 1 }, (_, i) => low + i);
}

/** The chart, as wide as told. Both axes are logarithmic; exact results stand at the left. */
export function speedErrorChart(points: readonly ChartPoint[], width: number): string {
  const timed = points.filter(({ speed }) => speed > 0);
  if (timed.length === 0) return "";
  const errors = timed.map(({ error }) => error).filter((error) => error > 0);
  const across = decades(errors.length > 0 ? errors : [1e-7]);
  const up = decades(timed.map(({ speed }) => speed));
  const scale = (ticks: readonly number[], from: number, to: number) => (value: number) =>
    from + (to - from) * (Math.log10(value) - ticks[0]!) / (ticks.at(-1)! - ticks[0]!);
  const x = scale(across, LEFT, width - RIGHT);
  const y = scale(up, HEIGHT - BOTTOM, TOP);
  const number = (power: number) =>
    power > -3 && power < 5 ? String(Number(`1e${power}`)) : `1e${power}`;
  const axes = [
    ...across.map((power) => {
      const at = x(10 ** power);
      return `<line x1="${at}" x2="${at}" y1="${TOP}" y2="${HEIGHT - BOTTOM}"/>` +
        `<text x="${at}" y="${HEIGHT - BOTTOM + 16}" text-anchor="middle">${number(power)}</text>`;
    }),
    ...up.map((power) => {
      const at = y(10 ** power);
      return `<line x1="${LEFT}" x2="${width - RIGHT}" y1="${at}" y2="${at}"/>` +
        `<text x="${LEFT - 6}" y="${at + 4}" text-anchor="end">${number(power)}</text>`;
    }),
  ];
  const places = timed
    .map((point) => ({ ...point, at: point.error > 0 ? x(point.error) : LEFT, up: y(point.speed) }))
    .sort((a, b) => a.up - b.up);
  // Labels keep away from each other and from all dots.
  const taken = places.map(({ at, up }) => ({ from: at - 6, to: at + 6, line: up + 4 }));
  const dots = places.map(({ name, right, at, up }) => {
    const long = name.length * CHARACTER;
    const left = at + 9 + long > width - RIGHT;
    const from = left ? at - 9 - long : at + 9;
    let line = up + 4;
    while (
      taken.some((one) =>
        one.from < from + long && from < one.to && Math.abs(one.line - line) < LINE
      )
    ) line++;
    taken.push({ from, to: from + long, line });
    const mark = right
      ? `<circle class="dot" cx="${at}" cy="${up}" r="4.5"/>`
      : `<path class="wrong" d="M${at - 5},${up - 5}l10,10m0,-10l-10,10"/>`;
    return `${mark}<text x="${from}" y="${line}">${name}</text>`;
  });
  const middle = (LEFT + width - RIGHT) / 2;
  const said = places.map(({ name, speed }) => `${name} ${speed.toPrecision(3)} GFLOP/s`).join(
    ", ",
  );
  return `<svg role="img" aria-label="Speed against error: ${said}" width="${width}" height="${HEIGHT}" ` +
    `viewBox="0 0 ${width} ${HEIGHT}"><g class="axes">${axes.join("")}` +
    `<text x="${middle}" y="${HEIGHT - 6}" text-anchor="middle">relative L2 error</text>` +
    `<text x="${
      -(TOP + HEIGHT - BOTTOM) / 2
    }" y="12" transform="rotate(-90)" text-anchor="middle">` +
    `GFLOP/s</text></g>${dots.join("")}</svg>`;
}
