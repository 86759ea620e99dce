import { openEach, type TensorSource } from "../npy/mod.ts";
import { formatBytes, formatCount } from "../report/format.ts";
import { textTable } from "../report/table.ts";
import { type DType, dtypeBytes } from "../tensor/dtype.ts";
import { elementCount } from "../tensor/tensor.ts";

/** What `wgconv tensor info` says of a tensor. */
export interface TensorInfo {
  readonly path: string;
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly elements: number;
  /** Bytes of data. */
  readonly bytes: number;
  readonly byte_order: "little" | "big";
  readonly order: "C" | "Fortran";
  readonly version: string;
  readonly data_offset: number;
}

/** Reads the headers of `.npy` files and of all members of `.npz` files. */
export async function describeFiles(paths: readonly string[]): Promise<TensorInfo[]> {
  const infos: TensorInfo[] = [];
  for (const path of paths) {
    for await (const { source } of openEach(path)) infos.push(describe(source));
  }
  return infos;
}

/** The table of `wgconv tensor info`. */
export function infoTable(infos: readonly TensorInfo[]): string {
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
    infos.map((info) => [
      info.path,
      info.dtype,
      `[${info.shape.join(", ")}]`,
      formatCount(info.elements),
      formatBytes(info.bytes),
      `${info.byte_order}-endian, ${info.order} order, version ${info.version}`,
    ]),
  );
}

function describe({ path, dtype, shape, header }: TensorSource): TensorInfo {
  const elements = shape.includes(0) ? 0 : elementCount(shape);
  return {
    path,
    dtype,
    shape,
    elements,
    bytes: elements * dtypeBytes(dtype),
    byte_order: header?.littleEndian === false ? "big" : "little",
    order: header?.fortranOrder ? "Fortran" : "C",
    version: header?.version.join(".") ?? "1.0",
    data_offset: header?.dataOffset ?? 0,
  };
}
