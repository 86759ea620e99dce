import type { Fraction } from "../deps/fraction.ts";
import { isExactF32, type Matrix, ONE } from "./matrix.ts";

/** Type of the values that a program computes with. */
export type WgslFloat = "f32" | "vec2f" | "vec4f";

/** A program as WGSL. */
export interface ProgramText {
  readonly statements: string[];
  readonly outputs: string[];
}

/** A value times a factor. */
export interface Term {
  /** An input where below `inputs`, else the result of step `node - inputs`. */
  readonly node: number;
  readonly factor: Fraction;
}

/** One instruction: a product, a sum, or both in one. At most one factor is not ±1. */
export interface Step {
  readonly left: Term;
  readonly right?: Term;
}

/** Straight-line code of y = M x. */
export interface LinearProgram {
  readonly inputs: number;
  readonly outputs: number;
  readonly steps: readonly Step[];
  /** A node of each output with factor 1 or -1, or nothing for a row of zeros. */
  readonly results: readonly (Term | undefined)[];
  readonly additions: number;
  readonly multiplications: number;
  /** Steps: a product and the sum it goes into are one fused multiply-add. */
  readonly instructions: number;
  /**
   * WGSL: statements (`let` temporaries named `prefix` and a number) that read the expressions `inputs`, and an
   * expression for each output. Constants are f32 literals nearest to the exact numbers.
   */
  text(prefix: string, inputs: readonly string[], type: WgslFloat): ProgramText;
}

/** A sum of nodes times factors that are not 0. */
type Row = ReadonlyMap<number, Fraction>;
type Simplified = Pick<LinearProgram, "steps" | "results">;

const MINUS_ONE = ONE.neg();

/**
 * Straight-line code of y = M x with few instructions: the best of some orders in which its simplifications
 * can be tried.
 */
export function buildSteps(matrix: Matrix): Simplified {
  const rows = matrix.map((row): Row =>
    new Map(row.flatMap((value, i) => value.equals(0) ? [] : [[i, value]]))
  );
  const inputs = matrix[0]?.length ?? 0;
  const orders: Reduction[][] = [
    [mergeRows, mergeColumns, pairRows, shareSums],
    [mergeRows, pairRows, mergeColumns, shareSums],
    [mergeRows, shareSums, pairRows, mergeColumns],
    [mergeRows, pairRows, mergeColumns],
  ];
  const found = orders.map((order) => {
    const code = new Code(inputs);
    const results = reduce(rows, order, code).map((term) => term && code.finish(term));
    return prune({ steps: code.steps, results }, inputs);
  });
  return found.reduce((best, other) => compareCost(other, best) < 0 ? other : best);
}

function compareCost(a: Simplified, b: Simplified): number {
  const products = ({ steps }: Simplified) =>
    steps.filter(({ left, right }) => !isUnit(left) || (right && !isUnit(right))).length;
  return a.steps.length - b.steps.length || products(a) - products(b);
}

/** Steps in the making. The same step twice is one. */
class Code {
  readonly steps: Step[] = [];
  readonly #known = new Map<string, number>();

  constructor(readonly inputs: number) {}

  /** A node of left + right, or of a product. */
  add(left: Term, right?: Term): Term {
    // One instruction has one product: the left one gets a step of its own, which others may share.
    if (right && !isUnit(left) && !isUnit(right)) {
      const positive = { node: left.node, factor: left.factor.abs() };
      return this.add({ ...this.add(positive), factor: sign(left.factor) }, right);
    }
    const key = [left, right].map((term) => term && `${term.node}*${term.factor.toFraction()}`)
      .join("+");
    let node = this.#known.get(key);
    if (node === undefined) {
      node = this.inputs + this.steps.length;
      this.steps.push(right ? { left, right } : { left });
      this.#known.set(key, node);
    }
    return { node, factor: ONE };
  }

  /** A node with factor 1 or -1. */
  finish(term: Term): Term {
    if (isUnit(term)) return term;
    return { ...this.add({ ...term, factor: term.factor.abs() }), factor: sign(term.factor) };
  }

  /** The sum of a row, up to a factor. */
  sum(row: Row): Term | undefined {
    const terms = [...row].map(([node, factor]): Term => ({ node, factor }));
    if (terms.length <= 1) return terms[0];
    const groups = new Map<string, Term[]>();
    for (const term of terms) {
      const key = term.factor.abs().toFraction();
      groups.set(key, [...groups.get(key) ?? [], term]);
    }
    const scale = groups.has("1") ? ONE : commonFactor(terms.map(({ factor }) => factor.abs()));
    const scaled = [...groups.values()].map((group): Term => {
      const factor = group[0]!.factor.abs().div(scale);
      const units = group.map(({ node, factor }) => ({ node, factor: sign(factor) }));
      const sum = units.slice(1).reduce((total, term) => this.add(total, term), units[0]!);
      return { ...sum, factor: sum.factor.mul(factor) };
    });
    // What is not multiplied comes first, so that each product joins a sum.
    scaled.sort((a, b) => Number(isUnit(b)) - Number(isUnit(a)));
    const sum = scaled.slice(1).reduce((total, term) => this.add(total, term), scaled[0]!);
    return { ...sum, factor: sum.factor.mul(scale) };
  }
}

/**
 * A simplification: from rows to terms, with the help of `next` for the rows it leaves. Nothing where it does
 * not apply.
 */
type Reduction = (
  rows: readonly Row[],
  code: Code,
  next: (rows: readonly Row[]) => (Term | undefined)[],
) => (Term | undefined)[] | undefined;

/** Applies the first reduction that does something, again and again, then sums what is left. */
function reduce(
  rows: readonly Row[],
  order: readonly Reduction[],
  code: Code,
): (Term | undefined)[] {
  for (const reduction of order) {
    const done = reduction(rows, code, (left) => reduce(left, order, code));
    if (done !== undefined) return done;
  }
  return rows.map((row) => code.sum(row));
}

/** Rows that are multiples of another are computed once. */
const mergeRows: Reduction = (rows, _code, next) => {
  for (const [i, row] of rows.entries()) {
    if (row.size < 2) continue;
    for (let j = i + 1; j < rows.length; j++) {
      const ratio = rowRatio(row, rows[j]!);
      if (ratio === undefined) continue;
      const terms = next(rows.filter((_, k) => k !== j));
      const term = terms[i]!;
      return terms.toSpliced(j, 0, { ...term, factor: term.factor.mul(ratio) });
    }
  }
  return undefined;
};

/** Points ±p in A: two columns are equal in some rows and opposite in the others, so their sum and difference serve. */
const mergeColumns: Reduction = (rows, code, next) => {
  const columns = [...new Set(rows.flatMap((row) => [...row.keys()]))].sort((a, b) => a - b);
  for (const [i, a] of columns.entries()) {
    for (const b of columns.slice(i + 1)) {
      const users = rows.filter((row) => row.has(a) || row.has(b));
      const alike = users.every((row) =>
        row.has(a) && row.has(b) && row.get(a)!.abs().equals(row.get(b)!.abs())
      );
      const equal = users.filter((row) => row.get(b)?.equals(row.get(a) ?? 0)).length;
      if (!alike || equal === 0 || equal === users.length) continue;
      const sum = code.add({ node: a, factor: ONE }, { node: b, factor: ONE }).node;
      const difference = code.add({ node: a, factor: ONE }, { node: b, factor: MINUS_ONE }).node;
      return next(rows.map((row) => {
        const factor = row.get(a);
        if (factor === undefined) return row;
        const node = row.get(b)!.equals(factor) ? sum : difference;
        return new Map([[node, factor], ...without(row, a, b)]);
      }));
    }
  }
  return undefined;
};

/** Points ±p in G and Dᵀ: two rows are e + o and e − o. */
const pairRows: Reduction = (rows, code, next) => {
  for (const [i, row] of rows.entries()) {
    for (let j = i + 1; j < rows.length; j++) {
      const other = rows[j]!;
      if (row.size < 2 || row.size !== other.size) continue;
      if (![...row].every(([node, factor]) => other.get(node)?.abs().equals(factor.abs()))) {
        continue;
      }
      const even = new Map([...row].filter(([node, factor]) => other.get(node)!.equals(factor)));
      const odd = new Map([...row].filter(([node]) => !even.has(node)));
      if (even.size === 0 || odd.size === 0) continue;
      const terms = next([...rows.filter((_, k) => k !== i && k !== j), even, odd]);
      const [e, o] = [terms.at(-2)!, terms.at(-1)!];
      const minus = { ...o, factor: o.factor.neg() };
      return terms.slice(0, -2).toSpliced(i, 0, code.add(e, o)).toSpliced(j, 0, code.add(e, minus));
    }
  }
  return undefined;
};

/** The sum of two nodes in a fixed ratio that occurs in most rows is computed once. */
const shareSums: Reduction = (rows, code, next) => {
  const best = commonPair(rows);
  if (best === undefined) return undefined;
  const { a, b, ratio } = best;
  const matches = rows.map((row) =>
    row.has(a) && row.has(b) && row.get(b)!.equals(row.get(a)!.mul(ratio))
  );
  // Of a + ratio·b and b + a/ratio the one that leaves more factors ±1, if it is exact.
  const units = (node: number) =>
    rows.filter((row, i) => matches[i] && row.get(node)!.abs().equals(1)).length;
  const onB = isExactF32(ratio.inverse()) && (!isExactF32(ratio) || units(b) > units(a));
  const [main, scaled, factor] = onB ? [b, a, ratio.inverse()] : [a, b, ratio];
  const { node } = code.add({ node: main, factor: ONE }, { node: scaled, factor });
  return next(
    rows.map((row, i) =>
      matches[i] ? new Map([[node, row.get(main)!], ...without(row, a, b)]) : row
    ),
  );
};

/** The two nodes that most rows have in one ratio (of b to a), which must be exact one way or the other. */
function commonPair(rows: readonly Row[]): { a: number; b: number; ratio: Fraction } | undefined {
  // Doubles serve to count: ratios of small fractions differ by more than their rounding.
  const found = new Map<string, { a: number; b: number; row: Row; rank: number }>();
  let best: { a: number; b: number; row: Row; rank: number } | undefined;
  for (const row of rows) {
    const terms = [...row].map(([node, factor]) => ({ node, value: factor.valueOf() }))
      .sort((x, y) => x.node - y.node);
    for (const [i, a] of terms.entries()) {
      for (const b of terms.slice(i + 1)) {
        const ratio = b.value / a.value;
        const key = `${a.node},${b.node},${ratio}`;
        const entry = found.get(key);
        if (entry === undefined) {
          const rank = 2 + Number(Math.abs(ratio) === 1);
          found.set(key, { a: a.node, b: b.node, row, rank });
          continue;
        }
        entry.rank += 2;
        if (entry.rank <= (best?.rank ?? 0)) continue;
        const exact = row.get(b.node)!.div(row.get(a.node)!);
        if (isExactF32(exact) || isExactF32(exact.inverse())) best = entry;
      }
    }
  }
  return best && { a: best.a, b: best.b, ratio: best.row.get(best.b)!.div(best.row.get(best.a)!) };
}

/** The factor by which `other` is a multiple of `row`. */
function rowRatio(row: Row, other: Row): Fraction | undefined {
  if (row.size !== other.size) return undefined;
  const [first, factor] = [...row][0]!;
  const ratio = other.get(first)?.div(factor);
  return ratio && [...row].every(([node, value]) => other.get(node)?.equals(value.mul(ratio)))
    ? ratio
    : undefined;
}

/** A factor to take out of a sum, so that one product of it is saved: the others must not become less exact. */
function commonFactor(factors: readonly Fraction[]): Fraction {
  const inexact = (scale: Fraction) =>
    factors.filter((factor) => !isExactF32(factor.div(scale))).length;
  const before = inexact(ONE);
  return factors.find((factor) => inexact(factor) === 0) ??
    factors.find((factor) => inexact(factor) < before) ?? ONE;
}

/** Leaves steps out that nothing uses. */
function prune({ steps, results }: Simplified, inputs: number): Simplified {
  const used = new Set(results.flatMap((term) => term ? [term.node] : []));
  for (let i = steps.length - 1; i >= 0; i--) {
    if (!used.has(inputs + i)) continue;
    const { left, right } = steps[i]!;
    for (const term of [left, right]) if (term) used.add(term.node);
  }
  const renamed = new Map<number, number>();
  for (let i = 0; i < inputs; i++) renamed.set(i, i);
  const rename = (term: Term): Term => ({ ...term, node: renamed.get(term.node)! });
  const kept: Step[] = [];
  steps.forEach(({ left, right }, i) => {
    if (!used.has(inputs + i)) return;
    renamed.set(inputs + i, inputs + kept.length);
    kept.push({ left: rename(left), ...(right ? { right: rename(right) } : {}) });
  });
  return { steps: kept, results: results.map((term) => term && rename(term)) };
}

function without(row: Row, a: number, b: number): [number, Fraction][] {
  return [...row].filter(([node]) => node !== a && node !== b);
}

function sign(value: Fraction): Fraction {
  return value.compare(0) < 0 ? MINUS_ONE : ONE;
}

function isUnit({ factor }: Term): boolean {
  return factor.abs().equals(1);
}
