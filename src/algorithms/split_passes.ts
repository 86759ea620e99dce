/** The passes that f32 in halves has before its products. */
import type { SizeMode } from "../kernels/module.ts";
import {
  type SplitHalves,
  splitHalvesKernel,
  type SplitMaxima,
  splitMaximaKernel,
} from "../kernels/split_halves.ts";
import { clearMarksKernel } from "../kernels/split_marks.ts";
import { pass } from "./passes.ts";
import type { DeviceLimits, Pass } from "./plan.ts";
import type { BufferList } from "./tensors.ts";

/** What they have in common, and the buffers that they bind. */
export interface SplitPassContext {
  readonly mode: SizeMode;
  readonly buffers: BufferList;
  readonly limits: DeviceLimits;
  readonly places: { readonly marks: number; readonly flags?: number };
}

/** Clears so many words of marks. */
export function clearMarksPass(
  { mode, buffers, limits, places: { marks } }: SplitPassContext,
  words: number,
): Pass {
  return pass(clearMarksKernel(words, mode), buffers, { marks }, limits);
}

/** Finds the largest values of a tensor, a buffer; no pass where there are none. */
export function maximaPasses(
  { mode, buffers, limits, places: { marks } }: SplitPassContext,
  shape: SplitMaxima,
  tensor: number,
): Pass[] {
  if ([...shape.keys, ...shape.rest].some(({ count }) => count === 0)) return [];
  const kernel = splitMaximaKernel(shape, mode, buffers.split(tensor));
  return [pass(kernel, buffers, { tensor, marks }, limits)];
}

/** Splits an operand, a buffer, into halves, another. */
export function splitHalvesPass(
  { mode, buffers, limits, places }: SplitPassContext,
  shape: SplitHalves,
  { operand, halves }: { readonly operand: number; readonly halves: number },
): Pass {
  const kernel = splitHalvesKernel(shape, mode, buffers.split(operand), buffers.split(halves));
  return pass(kernel, buffers, { operand, halves, ...places }, limits);
}
