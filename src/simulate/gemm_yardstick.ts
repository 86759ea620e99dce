import { type Precision, stored } from "../accuracy/precision.ts";
import type { Yardstick } from "../accuracy/yardstick.ts";
import type { GemmProblem } from "../problem/gemm_problem.ts";
import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";
import { activate } from "../problem/activations.ts";
import { finishExact, type GemmInputs, summedProduct } from "../reference/gemm.ts";
import type { HostArray } from "../reference/geometry.ts";
import { activatedMagnitude } from "../reference/reference.ts";
import { randomStream } from "../reference/sample.ts";
import {
  distinct,
  rounds,
  scaledBy,
  type SimulatedOutputs,
  simulatedYardstick,
  type SimulationOrder,
  simulationOrders,
} from "./simulated_yardstick.ts";
import { addedRounding, type SumSource } from "./sum_source.ts";
import { simulateSums } from "./sums.ts";

/** What a product's yardstick is made of. */
interface GemmYardstickRequest {
  readonly problem: GemmProblem;
  readonly operands: GemmInputs;
  readonly arithmetic: PlanArithmetic;
  readonly precision: Precision;
  readonly seed: number;
}

/** Outputs of one of the batch: every row with every column. */
interface Block {
  readonly one: number;
  readonly rows: readonly number[];
  readonly columns: readonly number[];
}

/** The yardstick of a product: outputs sampled from all of the batch, rows and columns. */
export function gemmYardstick(asked: GemmYardstickRequest): Yardstick {
  const request = { ...asked, ...summedProduct(asked.problem, asked.operands) };
  const { problem: { m, n, k, batch }, precision, seed } = request;
  const sampled = function* (): Generator<readonly [Block, SimulationOrder]> {
    const random = randomStream(seed);
    const plan = rounds({
      groups: batch,
      places: n,
      channels: m,
      results: 1,
      units: k,
      products: 1,
      tiled: false,
    });
    if (plan.count === 0) return;
    const orders = simulationOrders(plan.count, k, random, plan.whole);
    const ones = distinct(plan.count, batch, random);
    for (let round = 0; round < plan.count; round++) {
      yield [{
        one: ones[round % ones.length]!,
        rows: distinct(plan.channels, m, random),
        columns: distinct(plan.places, n, random),
      }, orders[round]!];
    }
  };
  return simulatedYardstick({
    precision,
    seed,
    size: { units: k, products: 1, tiled: false },
    sampled,
    blockOf(index) {
      const column = index % n;
      const row = (index - column) / n % m;
      return { one: Math.floor(index / (m * n)), rows: [row], columns: [column] };
    },
    simulate: (block, order) => simulateBlock(request, block, order),
  });
}

/** The source of a block's sums: rows are left, columns right. */
function gemmSource(
  { m, n, k, transpose }: GemmProblem,
  a: HostArray,
  b: HostArray,
  { one, rows, columns }: Block,
): SumSource {
  const [aRow, aStep] = transpose[0] === "n" ? [k, 1] : [1, m];
  const [bColumn, bStep] = transpose[1] === "n" ? [1, n] : [k, 1];
  return {
    units: k,
    lefts: rows.length,
    rights: columns.length,
    load(unit, lefts, rights) {
      const aFirst = one * m * k + unit * aStep, bFirst = one * k * n + unit * bStep;
      for (let i = 0; i < rows.length; i++) lefts[i] = a[aFirst + rows[i]! * aRow]!;
      for (let j = 0; j < columns.length; j++) rights[j] = b[bFirst + columns[j]! * bColumn]!;
    },
  };
}

/** Simulates a block, output by output. */
function* simulateBlock(
  { problem, operands, arithmetic, precision }: GemmYardstickRequest,
  block: Block,
  order: SimulationOrder,
): Generator<SimulatedOutputs> {
  const { m, n, beta, activation } = problem;
  const round = arithmetic.sums === "f64" ? (value: number) => value : Math.fround;
  const keep = addedRounding(arithmetic.operands);
  // Kernels of f32 and f16 hold the factors in f32.
  const [alpha, factor] = [round(problem.alpha), round(beta)];
  const added = (row: number, column: number) => {
    const place = (block.one * m + row) * n + column;
    return {
      own: beta === 0 ? 0 : operands.c![place]!,
      shift: problem.bias === "none" ? 0 : operands.bias![problem.bias === "row" ? row : column]!,
      skip: problem.residual ? operands.residual![place]! : 0,
    };
  };
  const begun = arithmetic.begin === "added" && alpha !== 0;
  const bare = gemmSource(problem, operands.a!, operands.b!, block);
  const initial = begun
    ? Float64Array.from(block.rows.flatMap((row) =>
      block.columns.map((column) => {
        const { own, shift } = added(row, column);
        return round((factor * keep(own) + keep(shift)) / alpha);
      })
    ))
    : undefined;
  const source = { ...bare, ...(initial && { initial }) };
  const sums = simulateSums(scaledBy(source, order.scale, round), arithmetic, order);
  let i = 0;
  for (const row of block.rows) {
    for (const column of block.columns) {
      const { own, shift, skip } = added(row, column);
      let value = alpha === 1 ? sums.values[i]! : round(sums.values[i]! * alpha);
      if (own !== 0 && !begun) value = round(value + round(factor * keep(own)));
      if (shift !== 0 && !begun) value = round(value + keep(shift));
      value = activate(activation, value);
      if (skip !== 0) value = round(value + keep(skip));
      const sum = { value: sums.exact[i]!, rest: sums.rests[i]! };
      const factors = { alpha, beta: factor, activation };
      const exact = finishExact(factors, sum, own, shift, skip);
      yield {
        values: [stored(precision, value)],
        exact: [exact.value],
        rests: [exact.rest],
        magnitudes: [
          activatedMagnitude(activation, {
            argument: exact.argument,
            value: exact.active,
            magnitude: Math.abs(alpha) * sums.magnitudes[i]! + Math.abs(factor * own) +
              Math.abs(shift),
            skip,
          }),
        ],
        squares: [alpha * alpha * sums.squares[i]!],
        rounded: sums.rounded,
      };
      i++;
    }
  }
}
