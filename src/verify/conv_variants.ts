/** Outputs of a convolution as a faulty kernel may compute them, in FP64. */
import type { ConvProblem } from "../problem/conv_problem.ts";
import type { Activation } from "../problem/epilogue.ts";
import { activate } from "../reference/activate.ts";
import type { Geometry, HostArray } from "../reference/geometry.ts";
import { type ConvOperands, convOperands } from "../simulate/conv_operands.ts";
import { convSource } from "../simulate/conv_source.ts";
import { blockOf, gridOf } from "../simulate/conv_yardstick.ts";
import { simulateSums } from "../simulate/sums.ts";
import type { ReferenceInputs } from "../reference/reference.ts";

/** A convolution whose outputs are looked into. */
export interface ConvCase extends ConvOperands {
  readonly bias: ArrayLike<number> | undefined;
  readonly activation: Activation;
  /** Canonical, of the result. */
  readonly shape: readonly number[];
}

/** What a kernel does otherwise than it should; as it should where absent. */
export interface ConvVariant {
  readonly geometry?: Geometry;
  readonly first?: HostArray;
  readonly second?: HostArray;
  /** The group whose operands on the left, and the channel of all groups together whose ones on the right, an output takes. */
  readonly groupOf?: (channel: number) => number;
  /** How many times the bias is added. */
  readonly biases?: number;
  readonly activation?: Activation;
  /** Whether the bias is added behind the activation. */
  readonly late?: boolean;
}

/** A convolution as a case. */
export function convCase(
  problem: ConvProblem,
  inputs: ReferenceInputs,
  shape: readonly number[],
  activation: Activation,
): ConvCase {
  return { ...convOperands(problem, inputs), bias: inputs.bias, activation, shape };
}

/** The outputs at canonical indices. */
export function convVariant(
  of: ConvCase,
  indices: readonly number[],
  variant: ConvVariant,
): Float64Array {
  const { geometry: own, bias, shape } = of;
  const { biases = 1, activation = of.activation, late = false, groupOf } = variant;
  const operands: ConvOperands = {
    problem: of.problem,
    geometry: variant.geometry ?? own,
    first: variant.first ?? of.first,
    second: variant.second ?? of.second,
  };
  const grid = gridOf(of, {});
  const area = shape.slice(2).reduce((all, one) => all * one, 1);
  return Float64Array.from(indices, (index) => {
    const { group, place, channel } = blockOf(of, grid, index);
    const whole = group * grid.channels + channel;
    const from = groupOf?.(whole) ?? group;
    // Channels are counted from the group's first one on.
    const rights = [whole - from * grid.channels];
    const source = convSource(operands, { group: from, lefts: [place], rights }, undefined, {});
    const sum = simulateSums(source, {}).exact[0]!;
    if (bias === undefined) return activate(activation, sum);
    const shift = biases * bias[Math.floor(index / area) % shape[1]!]!;
    return late ? activate(activation, sum) + shift : activate(activation, sum + shift);
  });
}
