import type { HostData, SubjectTensor } from "../run/subject.ts";
import { permute } from "../tensor/layout.ts";
import { tensor } from "../tensor/tensor.ts";

/** How a result lies in its file, where that differs from how it is computed. */
export interface ResultForm {
  /** The axis of its batch of one, which the file has not. */
  readonly dropped?: number;
  /** Axis i of the file is axis `axes[i]` of the result. */
  readonly axes?: readonly number[];
}

/** Sizes of the file. */
export function formShape({ dropped, axes }: ResultForm, shape: readonly number[]): number[] {
  if (dropped !== undefined) return shape.toSpliced(dropped, 1);
  return axes === undefined ? [...shape] : axes.map((axis) => shape[axis]!);
}

/** The values in the file's order. */
export function formData({ axes }: ResultForm, result: SubjectTensor, data: HostData): HostData {
  if (axes === undefined) return data;
  return permute(tensor(result.dtype, result.shape, data), axes).data as HostData;
}
