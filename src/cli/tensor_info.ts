import { fileDType, openEach, type OtherMember, type TensorSource } from "../npy/mod.ts";
import { formatBytes, formatCount } from "../report/format.ts";
import { textTable } from "../report/table.ts";
import { dtypeBytes, type FileDType } from "../tensor/dtype.ts";
import { elementCount } from "../tensor/tensor.ts";

interface TensorInfo {
  readonly path: string;
  readonly dtype: FileDType;
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
  const dtype = fileDType(source);
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
