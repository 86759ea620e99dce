/**
 * Products as text: `m n k [ta tb] [xB] [n"name"]`, where ta and tb are n or t (how A and B are stored), and xB is a
 * batch of B.
 */
import { InputSyntaxError, placedError } from "../errors.ts";
import { type GemmProblem, gemmProblem, type Transpose } from "./gemm_problem.ts";

/** What a line says of a product. */
export type GemmSize = Pick<GemmProblem, "m" | "n" | "k" | "transpose" | "batch" | "name">;

/**
 * Parses one product.
 *
 * @throws {SyntaxError} with column and caret.
 * @example
 * ```ts
 * import { parseGemm } from "@wgconv/wgconv/internals";
 * import assert from "node:assert/strict";
 *
 * const { m, n, k, transpose, batch } = parseGemm("300 200 100 t n x3");
 * assert.deepEqual([m, n, k, transpose, batch], [300, 200, 100, "tn", 3]);
 * ```
 */
export function parseGemm(text: string): GemmProblem {
  const named = /\sn"([^"]*)"\s*$/.exec(text);
  const sizes = named === null ? text : text.slice(0, named.index);
  const words = [...sizes.matchAll(/\S+/g)].map(({ 0: word, index }) => ({ word, index }));
  const fail = (index: number, what: string) =>
    new InputSyntaxError(
      `Cannot parse product: ${what}, at column ${index + 1}\n  ${text}\n  ${" ".repeat(index)}^`,
    );
  const [m, n, k] = (["m", "n", "k"] as const).map((name, place) => {
    const found = words[place];
    if (!found) throw fail(sizes.trimEnd().length, `${name} is missing, expected m n k [ta tb]`);
    if (!isCount(found.word)) throw fail(found.index, `${name} is no whole number >= 0`);
    if (Number(found.word) > Number.MAX_SAFE_INTEGER) {
      throw fail(found.index, `${name} is too large, expected ${Number.MAX_SAFE_INTEGER} or less`);
    }
    return Number(found.word);
  }) as [number, number, number];
  let rest = words.slice(3);
  let batch = 1;
  const last = rest.at(-1);
  if (last?.word.startsWith("x")) {
    if (!isCount(last.word.slice(1))) throw fail(last.index, "expected a batch such as x3");
    batch = Number(last.word.slice(1));
    if (batch > Number.MAX_SAFE_INTEGER) {
      throw fail(last.index, `the batch is too large, expected ${Number.MAX_SAFE_INTEGER} or less`);
    }
    rest = rest.slice(0, -1);
  }
  let transpose: Transpose = "nn";
  if (rest.length > 0) {
    const wrong = rest.slice(0, 2).find(({ word }) => word !== "n" && word !== "t");
    if (wrong) throw fail(wrong.index, `"${wrong.word}" is no transpose, expected n or t`);
    if (rest.length < 2) throw fail(sizes.trimEnd().length, "the transpose of B is missing");
    if (rest.length > 2) throw fail(rest[2]!.index, "expected the end of the line");
    transpose = `${rest[0]!.word}${rest[1]!.word}` as Transpose;
  }
  return gemmProblem({ m, n, k, transpose, batch, ...(named ? { name: named[1]! } : {}) });
}

function isCount(word: string): boolean {
  return /^\d+$/.test(word);
}

/** Prints what {@linkcode parseGemm} reads back; `n n` and a batch of 1 go without saying. */
export function printGemm({ m, n, k, transpose, batch, name }: GemmSize): string {
  const stored = transpose === "nn" && batch === 1 ? [] : [...transpose];
  const said = name === undefined ? [] : [`n"${name}"`];
  return [m, n, k, ...stored, ...(batch === 1 ? [] : [`x${batch}`]), ...said].join(" ");
}

/** A line of a suite up to its comment, which a `#` within a name's quotes does not begin. */
export function withoutComment(line: string): string {
  return /^(?:[^#"]|"[^"]*"?)*/.exec(line)![0].trimEnd();
}

/** More products than this are no suite. */
const MAX_PRODUCTS = 100_000;

/**
 * Products of a suite file's text: one a line, `#` starts a comment, blank lines are skipped.
 *
 * @param source The file's name, for messages.
 * @throws {SyntaxError} with file, line, column and a caret; also where there are too many.
 */
export function parseGemmSuite(text: string, source: string): GemmProblem[] {
  let count = 0;
  return text.split(/\r?\n/).flatMap((line, index) => {
    const product = withoutComment(line);
    if (product.trim() === "") return [];
    if (++count > MAX_PRODUCTS) {
      throw new InputSyntaxError(
        `${source}:${
          index + 1
        }: Cannot read the suite: there are more than ${MAX_PRODUCTS} products`,
      );
    }
    try {
      return [parseGemm(product)];
    } catch (error) {
      throw placedError(error, `${source}:${index + 1}`);
    }
  });
}
