/**
 * The search that src/winograd/point_table.ts comes from, and the errors that docs/accuracy.md quotes.
 *
 *   deno run -A bench/winograd_points.ts search [alpha ...]   the best points of every F(n,r), a line each
 *   deno run -A bench/winograd_points.ts scalings             the same points with other scalings and orders
 *   deno run -A bench/winograd_points.ts amplification        amplification and errors of a tile
 *
 * All errors are of simulated f32 kernels (bench/simulated_tiles.ts): transforms as the simplified programs
 * compute them, one accumulator.
 */
import { markdownTable } from "../src/report/table.ts";
import { amplification, amplification2d } from "../src/winograd/amplification.ts";
import { expandPoints, MAX_ALPHA } from "../src/winograd/points.ts";
import { SCALINGS } from "../src/winograd/scaling.ts";
import {
  algorithm1d,
  algorithm2d,
  reportOf,
  type SimulatedResults,
  simulateWinograd,
  UNIT_ROUNDOFF,
} from "./simulated_tiles.ts";
import {
  makeTransform,
  type WinogradTransform,
  winogradTransform,
} from "../src/winograd/transform.ts";

const MAGNITUDES = ["1", "1/2", "2", "1/4", "4", "3/4", "4/3", "2/3", "3/2", "1/3", "3"];
/** Sets of points that are simulated, of those with the least spread. */
const SHORTLIST = 6;
/** Sets whose errors are within this factor are equal; the one with fewer instructions is taken. */
const EQUAL = 1.04;
/** An F(n,r) gets points of its own where they have this many times less error. */
const EXCEPTION = 1.25;

/** Sets of α points: 0, ∞, pairs, and one single point where α is odd. */
function candidates(alpha: number): string[] {
  const pairs = (alpha - 2) >> 1;
  return subsets(MAGNITUDES, pairs).flatMap((chosen) => {
    const text = ["0", ...chosen.map((magnitude) => `±${magnitude}`)];
    if (alpha % 2 === 0) return [[...text, "inf"].join(" ")];
    return MAGNITUDES.filter((magnitude) => !chosen.includes(magnitude))
      .map((single) => [...text, single, "inf"].join(" "));
  });
}

function subsets<T>(items: readonly T[], size: number): T[][] {
  if (size === 0) return [[]];
  return items.flatMap((item, i) =>
    subsets(items.slice(i + 1), size - 1).map((rest) => [item, ...rest])
  );
}

/** `spread` in doubles, without making the matrices: for thousands of sets. */
function quickSpread(n: number, r: number, points: readonly string[]): number {
  const values = points.map((point) => {
    const [over, under = "1"] = point.split("/");
    return point === "inf" ? Infinity : Number(over) / Number(under);
  });
  const finite = values.filter(Number.isFinite);
  const length = (value: number, size: number) => {
    if (value === Infinity) return 1;
    let sum = 0;
    for (let i = 0; i < size; i++) sum += value ** (2 * i);
    return sum;
  };
  const products = values.map((value) => {
    const roots = finite.filter((other) => other !== value);
    let polynomial = [1];
    for (const root of roots) {
      polynomial = [0, ...polynomial].map((c, i) => c - root * (polynomial[i] ?? 0));
    }
    const scale = value === Infinity ? 1 : roots.reduce((all, root) => all * (value - root), 1);
    const square = polynomial.reduce((sum, c) => sum + c * c, 0);
    return length(value, r) * square / (scale * scale);
  });
  let worst = 0;
  for (let i = 0; i < n; i++) {
    const variance = products.reduce((sum, product, a) => {
      const value = values[a]!;
      return sum + product * (value === Infinity ? Number(i === n - 1) : value ** (2 * i));
    }, 0);
    worst = Math.max(worst, variance);
  }
  return Math.sqrt(worst / r);
}

interface Score {
  readonly text: string;
  /** ‖error‖ / (u · ‖Σ|a||b|‖) on uniform01 and normal data, and their geometric mean. */
  readonly uniform: number;
  readonly normal: number;
  readonly error: number;
  readonly instructions: number;
}

function score(text: string, transform: WinogradTransform): Score {
  const algorithm = algorithm1d(transform);
  const measure = (fill: "uniform01" | "normal") =>
    geometricMean(
      [1, 11, 21, 31, 41].map((seed) =>
        relativeError(
          simulateWinograd(algorithm, { fill, depth: 64, filters: 16, tiles: 16, seed }),
        )
      ),
    );
  const [uniform, normal] = [measure("uniform01"), measure("normal")];
  const error = geometricMean([uniform, normal]);
  return { text, uniform, normal, error, instructions: algorithm.instructions };
}

/** Scores of the sets that are short-listed for some F(n,r) of one α, for each of them. */
function scoresOf(alpha: number): Map<string, Score[]> {
  const sets = candidates(alpha).map((text) => ({ text, points: expandPoints(text) }));
  const sizes = Array.from({ length: alpha - 2 }, (_, i) => [i + 2, alpha - 1 - i] as const);
  const dyadic = sets.filter(({ text }) => !text.includes("3"));
  const shortlist = new Set<string>();
  for (const [n, r] of sizes) {
    for (const [some, count] of [[sets, SHORTLIST], [dyadic, 1]] as const) {
      const ranked = some.map(({ text, points }) => ({ text, spread: quickSpread(n, r, points) }));
      ranked.sort((a, b) => a.spread - b.spread);
      for (const { text } of ranked.slice(0, count)) shortlist.add(text);
    }
  }
  return new Map(sizes.map(([n, r]) => [
    `F(${n},${r})`,
    [...shortlist].map((text) => score(text, makeTransform(n, r, () => expandPoints(text), "none")))
      .sort((a, b) => a.error - b.error),
  ]));
}

/** One set for all F(n,r) of an α, the best on the whole, and those for which another is much better. */
function search(alpha: number): void {
  const scores = scoresOf(alpha);
  const lists = [...scores.values()];
  const totals = lists[0]!.map(({ text, instructions }) => {
    const losses = lists.map((list) =>
      list.find((other) => other.text === text)!.error / list[0]!.error
    );
    return { text, instructions, loss: geometricMean(losses), worst: Math.max(...losses) };
  }).sort((a, b) => a.loss - b.loss);
  const chosen = totals.filter(({ loss }) => loss < EQUAL * totals[0]!.loss)
    .reduce((best, other) => other.instructions < best.instructions ? other : best);
  console.log(`alpha ${alpha}: ${chosen.text}`);
  for (const { text, loss, worst, instructions } of totals) {
    console.log(
      `  ${text.padEnd(46)} ${loss.toFixed(2)} x the best, at most ${
        worst.toFixed(2)
      }; ${instructions}`,
    );
  }
  for (const [name, list] of scores) {
    const common = list.find(({ text }) => text === chosen.text)!;
    const line = ({ text, uniform, normal, instructions }: Score) =>
      `${text.padEnd(46)} uniform01 ${uniform.toFixed(2)} normal ${
        normal.toFixed(2)
      }; ${instructions}`;
    console.log(`  ${name.padEnd(8)} ${line(common)}`);
    if (common.error > EXCEPTION * list[0]!.error) {
      console.log(`  ${"better".padEnd(8)} ${line(list[0]!)}`);
    }
  }
}

function geometricMean(values: readonly number[]): number {
  return Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);
}

/** ‖y − ref‖ / (u · ‖Σ|a||b|‖) */
function relativeError({ results, reference: { values, magnitudes } }: SimulatedResults): number {
  const norm = (vector: Float64Array) =>
    Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
  return norm(values.map((value, i) => results[i]! - value)) / norm(magnitudes) / UNIT_ROUNDOFF;
}

const SHOWN: readonly (readonly [number, number])[] =
  // deno-fmt-ignore
  [[2, 2], [3, 2], [7, 2], [2, 3], [4, 3], [6, 3], [14, 3], [3, 4], [5, 4], [13, 4], [2, 5], [4, 5], [12, 5],
    [3, 6], [11, 6], [2, 7], [10, 7], [9, 8], [8, 9]];

/** What scalings and orders of the points change. */
function scalings(): void {
  console.log("error on uniform01 and normal data in u·‖Σ|a||b|‖; instructions");
  for (const [n, r] of SHOWN) {
    const { points } = winogradTransform(n, r);
    const [first, last] = [points.slice(0, 1), points.slice(-1)];
    const reversed = [...first, ...points.slice(1, -1).toReversed(), ...last];
    const variants = [
      ...SCALINGS.map((scaling) => [scaling, winogradTransform(n, r, { scaling })] as const),
      ["reversed", makeTransform(n, r, () => reversed, "none")] as const,
    ];
    const cells = variants.map(([name, transform]) => {
      const { uniform, normal, instructions } = score(name, transform);
      return `${name} ${uniform.toFixed(2)} ${normal.toFixed(2)}; ${instructions}`.padEnd(32);
    });
    console.log(`F(${n},${r})`.padEnd(9) + cells.join(""));
  }
}

/** The table of docs/accuracy.md. */
function amplifications(): void {
  const right = "right" as const;
  const row = (name: string, axes: readonly WinogradTransform[]) => {
    const [rows, columns] = axes;
    const algorithm = columns ? algorithm2d(rows!, columns) : algorithm1d(rows!);
    const amplified = columns ? amplification2d(rows!, columns) : amplification(rows!);
    const given = { fill: "uniform01", depth: 512, filters: 16, tiles: 16 } as const;
    const mare = (flush: number) =>
      reportOf(simulateWinograd(algorithm, { ...given, flush })).mare!.toExponential(1);
    const normal = reportOf(simulateWinograd(algorithm, { ...given, fill: "normal" })).rel_l2;
    return [
      name,
      columns ? "" : rows!.points.join(" ").replaceAll(/(\S+) -\1/g, "±$1"),
      `${algorithm.instructions}`,
      amplified.toFixed(2),
      mare(Infinity),
      mare(96),
      normal.toExponential(1),
    ];
  };
  const rows = SHOWN.map(([n, r]) => row(`F(${n},${r})`, [winogradTransform(n, r)]));
  for (const [n, r] of [[2, 3], [4, 3], [6, 3], [2, 5], [4, 5], [3, 4], [5, 4]] as const) {
    const axis = winogradTransform(n, r);
    rows.push(row(`F(${n}x${n},${r}x${r})`, [axis, axis]));
  }
  console.log(markdownTable([
    { title: "tile" },
    { title: "points" },
    { title: "instructions", align: right },
    { title: "A", align: right },
    { title: "MARE, C = 512", align: right },
    { title: "flushed", align: right },
    { title: "rel. L2, normal", align: right },
  ], rows));
}

const [command, ...rest] = Deno.args;
if (command === "search") {
  const all = Array.from({ length: MAX_ALPHA - 2 }, (_, i) => i + 3);
  (rest.length > 0 ? rest.map(Number) : all).forEach(search);
} else if (command === "scalings") scalings();
else if (command === "amplification") amplifications();
else throw new RangeError("Cannot start: expected search, scalings or amplification");
