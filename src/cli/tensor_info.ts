import { type AccuracyReport, compareTensors } from "../accuracy/mod.ts";
import { InputTypeError } from "../errors.ts";
import { openEach, openNpy, type OtherMember, type TensorSource } from "../npy/mod.ts";
import { formatBytes, formatCount, formatError, significant } from "../report/format.ts";
import { verdictWord } from "../report/record.ts";
import { textTable } from "../report/table.ts";
import { type DType, dtypeBytes } from "../tensor/dtype.ts";
import { elementCount } from "../tensor/tensor.ts";
import { refuseUnusedAs } from "./shared_options.ts";

interface TensorInfo {
  readonly path: string;
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly elements: number;
  readonly bytes: number;
  readonly byte_order: "little" | "big";
  readonly order: "C" | "Fortran";
  readonly version: string;
  readonly data_offset: number;
}

/** What it says of an archive's member that is no tensor. */
interface OtherInfo {
  readonly path: string;
  readonly dtype: null;
  readonly bytes: number;
  /** What it is, or what is wrong with it. */
  readonly message: string;
}

/** What files hold, and what is wrong with damaged tensors among them. */
interface Described {
  readonly infos: readonly (TensorInfo | OtherInfo)[];
  readonly faults: readonly Error[];
}

/** Reads the headers of `.npy` files and of all members of `.npz` files. */
export async function describeFiles(paths: readonly string[]): Promise<Described> {
  const infos: (TensorInfo | OtherInfo)[] = [];
  const faults: Error[] = [];
  for (const path of paths) {
    for await (const one of openEach(path)) {
      infos.push("source" in one ? describe(one.source) : describeOther(one.other));
      if ("other" in one && one.other.fault !== undefined) faults.push(one.other.fault);
    }
  }
  return { infos, faults };
}

/** The table of `wgconv tensor info`. */
export function infoTable(infos: readonly (TensorInfo | OtherInfo)[], room?: number): string {
  const right = "right" as const;
  return textTable(
    [
      { title: "file" },
      { title: "dtype" },
      { title: "shape" },
      { title: "elements", align: right },
      { title: "data", align: right },
      { title: "stored" },
    ],
    infos.map((info) =>
      info.dtype === null ? otherRow(info) : [
        info.path,
        info.dtype,
        `[${info.shape.join(", ")}]`,
        formatCount(info.elements),
        formatBytes(info.bytes),
        `${info.byte_order}-endian, ${info.order} order, ${
          /^\d/.test(info.version) ? `version ${info.version}` : info.version
        }`,
      ]
    ),
    undefined,
    room,
  );
}

function otherRow({ path, bytes, message }: OtherInfo): string[] {
  return [path, "-", "-", "-", formatBytes(bytes), `no array: ${message}`];
}

function describeOther({ path, bytes, message, fault }: OtherMember): OtherInfo {
  const said = fault === undefined ? message : `damaged: ${message}`;
  return { path, dtype: null, bytes, message: said };
}

function describe(source: TensorSource): TensorInfo {
  const { path, shape, header } = source;
  const dtype = source.dtype;
  const elements = shape.includes(0) ? 0 : elementCount(shape);
  return {
    path,
    dtype,
    shape,
    elements,
    bytes: elements * dtypeBytes(dtype),
    byte_order: header?.littleEndian === false ? "big" : "little",
    order: header?.fortranOrder ? "Fortran" : "C",
    version: header?.format ?? header?.version.join(".") ?? "1.0",
    data_offset: header?.dataOffset ?? 0,
  };
}

interface TensorDiff {
  readonly got: string;
  readonly reference: string;
  readonly shape: readonly number[];
  readonly accuracy: AccuracyReport;
  readonly max_rel_l2: number;
  /** `none` of tensors that are empty, or all NaN. */
  readonly verdict: "pass" | "fail" | "none";
  /** Why it is not `pass`. */
  readonly message?: string;
}

/**
 * Compares two tensors in FP64. A NaN or an infinity that the other has not fails; tensors that are empty, or all NaN, are not
 * checked.
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
  const nothing = uncompared(accuracy);
  const message = nothing ?? failure(accuracy, maxRelL2);
  return {
    got: gotPath,
    reference: referencePath,
    shape,
    accuracy,
    max_rel_l2: maxRelL2,
    verdict: nothing !== undefined ? "none" : message === undefined ? "pass" : "fail",
    ...(message === undefined ? {} : { message }),
  };
}

function uncompared({ checked, nan, mismatched }: AccuracyReport): string | undefined {
  if (checked === 0) return "the tensors are empty";
  return nan === checked && mismatched === 0 ? "all elements of both tensors are NaN" : undefined;
}

function failure(accuracy: AccuracyReport, maxRelL2: number): string | undefined {
  const { mismatched, rel_l2: relL2 } = accuracy;
  if (mismatched > 0) {
    return `${
      formatCount(mismatched)
    } elements are NaN or infinite in one tensor, and not the same in the other`;
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
