import { type AccuracyReport, compareTensors } from "../accuracy/mod.ts";
import { InputTypeError } from "../errors.ts";
import { openNpy } from "../npy/mod.ts";
import { refuseUnusedAs } from "./shared_options.ts";
import { formatCount, formatError, significant } from "../report/format.ts";
import { verdictWord } from "../report/record.ts";

interface TensorDiff {
  readonly got: string;
  readonly reference: string;
  readonly shape: readonly number[];
  readonly accuracy: AccuracyReport;
  readonly max_rel_l2: number;
  /** `none` of empty tensors. */
  readonly verdict: "pass" | "fail" | "none";
  /** Why it is not `pass`. */
  readonly message?: string;
}

/**
 * Compares two tensors in FP64. What is NaN or infinite in one alone fails; empty tensors are not checked.
 *
 * @throws {TypeError} when their shapes differ, known before their data is read.
 */
export async function diffTensors(
  gotPath: string,
  referencePath: string,
  { maxRelL2, as }: { readonly maxRelL2: number; readonly as?: "bf16" | undefined },
): Promise<TensorDiff> {
  using got = await openNpy(gotPath, { as });
  using reference = await openNpy(referencePath, { as });
  refuseUnusedAs("Cannot compare", as, [got, reference]);
  const { shape } = reference;
  if (got.shape.length !== shape.length || got.shape.some((size, axis) => size !== shape[axis])) {
    throw new InputTypeError(
      `Cannot compare: ${gotPath} has shape [${got.shape}], ${referencePath} has [${shape}]`,
    );
  }
  const accuracy = compareTensors(await got.read(), await reference.read());
  const empty = accuracy.checked === 0;
  const message = empty ? "the tensors are empty" : failure(accuracy, maxRelL2);
  return {
    got: gotPath,
    reference: referencePath,
    shape,
    accuracy,
    max_rel_l2: maxRelL2,
    verdict: empty ? "none" : message === undefined ? "pass" : "fail",
    ...(message === undefined ? {} : { message }),
  };
}

function failure(accuracy: AccuracyReport, maxRelL2: number): string | undefined {
  const { mismatched, rel_l2: relL2 } = accuracy;
  if (mismatched > 0) {
    return `${formatCount(mismatched)} elements are NaN or infinite in one tensor alone`;
  }
  return relL2 <= maxRelL2
    ? undefined
    : `relative L2 error ${formatError(relL2)} is above ${formatError(maxRelL2)}`;
}

/** The report of `wgconv tensor diff`. */
export function diffReport({ shape, accuracy, max_rel_l2, verdict, message }: TensorDiff): string {
  const lines: [label: string, value: string][] = [
    ["compared", `${formatCount(accuracy.checked)} elements, [${shape.join(", ")}]`],
    ["relative L2", `${formatError(accuracy.rel_l2)} of ${formatError(max_rel_l2)} allowed`],
    ["MARE", formatError(accuracy.mare)],
    ["median relative", formatError(accuracy.median_rel)],
    ["p99 relative", formatError(accuracy.p99_rel)],
    ["max relative", formatError(accuracy.max_rel)],
    ["max ulp (f32)", accuracy.max_ulp === null ? "-" : significant(accuracy.max_ulp)],
    ["mean signed", formatError(accuracy.mean_signed)],
    ["NaN, Inf", `${formatCount(accuracy.nan)}, ${formatCount(accuracy.inf)}`],
    ["zero references", formatCount(accuracy.zero_ref)],
    ...accuracy.worst.map(({ index, got, ref }, i): [string, string] => [
      i === 0 ? "worst" : "",
      `[${index.join(", ")}] got ${got}, reference ${ref}`,
    ]),
    ["verdict", `${verdictWord(verdict)}${message === undefined ? "" : `: ${message}`}`],
  ];
  return lines.map(([label, value]) => `${label.padEnd(17)}${value}`).join("\n");
}
