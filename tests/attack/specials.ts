/** What takes the place of a case's data now and then: sums that cancel to 0, infinities, NaN, f64 far from 1. */
import { type GemmProblem, gemmProblem } from "../../src/problem/gemm_problem.ts";
import type { Epilogue } from "../../src/problem/epilogue.ts";
import type { HostData, HostOperands } from "../../src/run/subject.ts";
import { Draw } from "./draw.ts";
import type { ConvCase, GemmCase } from "./problem_cases.ts";

/** `none` for most cases. */
type Special = "none" | "cancel" | "infinite" | "far";

/** What is special of a case, drawn apart from the case itself. */
export function specialOf(seed: number, number: number, one: ConvCase | GemmCase): Special {
  const draw = new Draw(seed, "special", number);
  if (draw.chance(0.5) || (one.kind === "gemm" && one.dtype === "i8")) return "none";
  const special = draw.pick(["cancel", "infinite", "far"] as const);
  return special === "far" && (one.kind === "conv" || one.dtype !== "f64") ? "infinite" : special;
}

/** The case with the factors, or the bias, that go with what is special of it. */
export function withSpecial<C extends ConvCase | GemmCase>(
  one: C,
  special: Special,
  seed: number,
  number: number,
): C {
  const draw = new Draw(seed, "special epilogue", number);
  if (special === "none" || special === "cancel") {
    // What is added would not cancel.
    const plain: Partial<GemmProblem> = { beta: 0, bias: "none", residual: false };
    return special === "none"
      ? one
      : one.kind === "conv"
      ? { ...one, epilogue: { ...one.epilogue, bias: false } }
      : { ...one, problem: gemmProblem({ ...one.problem, ...plain }) };
  }
  if (one.kind === "gemm") {
    const [alpha, beta] = [draw.pick([1, 2, 0, -0.5]), draw.pick([0, 2, 1])];
    return { ...one, problem: gemmProblem({ ...one.problem, alpha, beta }) };
  }
  const epilogue: Epilogue = one.problem.op === "fwd"
    ? { ...one.epilogue, bias: true }
    : one.epilogue;
  return { ...one, epilogue };
}

const VALUES = [Infinity, -Infinity, NaN];

/** Changes operands in place. */
export function makeSpecial(
  operands: HostOperands,
  special: Special,
  one: ConvCase | GemmCase,
  seed: number,
  number: number,
): void {
  const draw = new Draw(seed, "special data", number);
  const all = Object.entries(operands) as [keyof HostOperands, HostData][];
  if (special === "cancel") {
    // One operand is constant, every pair of the other's neighbours in depth or in place sums to 0.
    const [, first] = all[0]!, [, second] = all[1]!;
    first.fill(draw.pick([0, 1, 0.3, 3.3, 200 / 255]));
    second.forEach((value, i) => {
      if (i % 2 === 1) second[i] = -second[i - 1]!;
      else if (i === second.length - 1) second[i] = 0 * value;
    });
  } else if (special === "far") {
    const [, first] = all[0]!;
    const scale = draw.pick([1e39, 1e150, 1e-150, 1e-39]);
    first.forEach((value, i) => first[i] = value * scale);
  } else if (special === "infinite") {
    // Winograd spreads what is in its operands over tiles, which `auto` may take.
    const plain = one.kind === "gemm" || !/^(auto|win)/.test(one.choice.algorithm);
    const open = all.filter(([role]) => role === "bias" || plain);
    if (open.length === 0) return;
    const [, data] = draw.pick(open);
    for (let count = draw.int(1, 3); count > 0 && data.length > 0; count--) {
      data[draw.int(0, data.length - 1)] = draw.pick(VALUES);
    }
  }
}
