/** Faults of results that are scaled to bytes. */
import { activate } from "../reference/activate.ts";
import { scaledWhole } from "../reference/integers.ts";
import type { HostOperands, Subject } from "../run/subject.ts";
import { elementCount } from "../tensor/tensor.ts";
import type { Hypothesis } from "./hypothesis.ts";

/** What may have become of the bytes at some canonical indices; nothing of results that are none. */
export async function byteHypotheses(
  { asked, linear, activation, shape, result: { dtype } }: Subject,
  operands: HostOperands,
  indices: readonly number[],
): Promise<readonly Hypothesis[]> {
  if ("gemm" in asked || linear === undefined || (dtype !== "i8" && dtype !== "u8")) return [];
  const { scale = 1, zeroPoint = 0 } = asked.conv.epilogue ?? {};
  const order = [...indices].sort((a, b) => a - b);
  const { values } = await linear.reference.of(operands, { indices: Float64Array.from(order) });
  const sums = new Map(order.map((index, i) => [index, activate(activation, values[i]!)]));
  const area = elementCount(shape.slice(2));
  const scaleAt = (index: number) =>
    typeof scale === "number"
      ? Math.fround(scale)
      : operands.scale![Math.floor(index / area) % shape[1]!]!;
  const [least, most] = dtype === "i8" ? [-128, 127] : [0, 255];
  const clipped = (value: number) => Math.max(least, Math.min(most, value));
  const wrapped = (value: number) => (((value - least) % 256) + 256) % 256 + least;
  const one = (name: string, of: (sum: number, scale: number) => number): Hypothesis => ({
    name,
    values: (places) => Float64Array.from(places, (index) => of(sums.get(index)!, scaleAt(index))),
  });
  return [
    one(
      "results wrapped around in place of saturated",
      (sum, by) => wrapped(scaledWhole(sum, by) + zeroPoint),
    ),
    one(
      "results cut off in place of rounded",
      (sum, by) => clipped(Math.trunc(sum * by) + zeroPoint),
    ),
    one("results rounded down", (sum, by) => clipped(Math.floor(sum * by) + zeroPoint)),
    ...(zeroPoint === 0
      ? []
      : [one("the output's zero point left out", (sum, by) => clipped(scaledWhole(sum, by)))]),
    one("the scale left out", (sum) => clipped(sum + zeroPoint)),
  ];
}
