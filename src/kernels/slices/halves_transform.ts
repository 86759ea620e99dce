import { type Matrix, type Rational, rational } from "../../winograd/matrix.ts";
import { linearProgram } from "../../winograd/linear_program.ts";
import type { LinearProgram, ProgramText } from "../../winograd/program.ts";
import { f32Literal } from "../../winograd/program_text.ts";

/** Rows of a transform that are summed in f16, and what is left of it for f32. */
interface Parts {
  readonly inHalves: readonly boolean[];
  readonly others: LinearProgram;
}

const HALF = rational("1/2");

const cache = new WeakMap<Matrix, Parts>();

/**
 * The statements of a transform y = M x of halves, and its results, in halves too. Rows of up to two values or halves of values, as all
 * of F(2,3) and F(3,2) but the sums of three of a filter, are computed in f16: their sum is rounded once, as one in f32 that
 * becomes f16 is. They are halved before they are added, so that no sum overflows that its result does not; halving rounds
 * values below 2^-13, and is all that differs from f32. Other rows are in f32.
 *
 * @param halves WGSL of each element, of type vec4<f16>.
 */
export function halvesTransformText(
  matrix: Matrix,
  prefix: string,
  halves: readonly string[],
): ProgramText {
  const { inHalves, others } = partsOf(matrix);
  const wide = others.outputs === 0 ? { statements: [], outputs: [] } : others.text(
    `${prefix}r`,
    halves.map((_, j) => `${prefix}x${j}`),
    "vec4f",
  );
  const rest = wide.outputs.values();
  return {
    statements: [
      ...(others.outputs === 0
        ? []
        : halves.map((value, j) => `let ${prefix}x${j} = vec4f(${value});`)),
      ...wide.statements,
    ],
    outputs: matrix.map((row, i) =>
      inHalves[i] ? sumText(row, halves) : `vec4<f16>(${rest.next().value!})`
    ),
  };
}

function partsOf(matrix: Matrix): Parts {
  let parts = cache.get(matrix);
  if (parts === undefined) {
    const inHalves = matrix.map(roundsOnce);
    parts = { inHalves, others: linearProgram(matrix.filter((_, row) => !inHalves[row])) };
    cache.set(matrix, parts);
  }
  return parts;
}

/** Whether f16 sums a row's values as f32 would before it is rounded. */
function roundsOnce(row: readonly Rational[]): boolean {
  const factors = row.filter((factor) => !factor.equals(0)).map((factor) => factor.abs());
  return factors.length > 0 && factors.length <= 2 &&
    factors.every((factor) => factor.equals(1) || factor.equals(HALF));
}

/** WGSL of a row's one or two values. */
function sumText(row: readonly Rational[], halves: readonly string[]): string {
  const [first, second] = row.flatMap((factor, j) =>
    factor.equals(0) ? [] : [{ factor, value: halves[j]! }]
  );
  const literal = (factor: Rational) => f32Literal({ factor }).replace(/f$/, "h");
  const product = ({ factor, value }: { factor: Rational; value: string }) =>
    factor.equals(1) ? value : factor.equals(-1) ? `-${value}` : `${literal(factor)} * ${value}`;
  if (second === undefined) return product(first!);
  return `fma(vec4<f16>(${literal(second.factor)}), ${second.value}, ${product(first!)})`;
}
