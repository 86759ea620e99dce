import template from "../../shaders/zero_sums.wgsl" with { type: "text" };
import type { Scalar } from "../elements/scalar.ts";
import { applyEpilogue, type EpilogueFactory, epilogueTrait } from "./epilogue.ts";
import {
  eachElement,
  moduleBuilder,
  render,
  type SizedKernel,
  sizedKernel,
  type SizeMode,
  splitTrait,
  type TensorSplit,
  WHOLE,
} from "./module.ts";

/** Sums of places, channels innermost: of each group those of its filters, and those of a filter of ones. */
export interface ZeroSumsShape {
  readonly places: number;
  readonly channels: number;
  readonly groups: number;
  /** Of the filters, as their sums have it: one for all, or `channel`, one for each less `offset`. */
  readonly zeroPoint: number | "channel";
  /** 128 of u8. */
  readonly offset: number;
}

/** Workgroups of {@linkcode zeroSumsKernel}. */
export function zeroSumsWorkgroups({ places, channels }: ZeroSumsShape, result: Scalar): number {
  return Math.ceil(places * channels / (result === "i8" ? 4 : 1) / 256);
}

/**
 * Takes zeroPoint·Σx of the sums of x·w, modulo 2^32, which leaves those of x·(w − zeroPoint), and finishes them. Binds `sums`,
 * `filterZeroPoint` where channels have their own, `result` and what the epilogue reads.
 *
 * @param stored Of the result: i32, or i8 for bytes, four a word.
 */
export function zeroSumsKernel(
  shape: ZeroSumsShape,
  mode: SizeMode,
  epilogue: EpilogueFactory,
  splits: { readonly sums: TensorSplit; readonly result: TensorSplit },
  stored: "i32" | "i8",
): SizedKernel {
  const { places, groups, zeroPoint, offset } = shape;
  const module = moduleBuilder(mode);
  const sums = module.tensor("sums", "read", 1, splits.sums, "i32");
  const zeros = zeroPoint === "channel"
    ? module.tensor("filterZeroPoint", "read", 1, WHOLE, "i32")
    : undefined;
  const width = stored === "i8" ? 4 : 1;
  const result = module.tensor("result", "write", width, splits.result, stored);
  const steps = epilogue(module, 1, (row) => row);
  const zero = zeros === undefined
    ? `bitcast<i32>(${module.size("zero_point", Number(zeroPoint) >>> 0)})`
    : `(${zeros.load("channel")} - bitcast<i32>(${module.size("offset", offset)}))`;
  const name = `zero_sums_${stored}${zeros ? "_channel" : ""}${epilogueTrait(steps)}${
    splitTrait(splits.sums, splits.result)
  }`;
  const channels = module.size("channels", shape.channels);
  const count = module.size("count", places * shape.channels);
  const finished = (at: string) =>
    applyEpilogue(steps, `whole(${at})`, {
      width: 1,
      side: "rows",
      row: `(${at} % ${channels})`,
      column: `(${at} / ${channels})`,
      offset: at,
    });
  const four = [0, 1, 2, 3].map((j) => finished(`min(i * 4u + ${j}u, ${count} - 1u)`));
  const each = module.size("each", shape.channels / groups);
  const row = module.size("row", shape.channels + groups);
  const values = {
    name,
    functions: steps.map(({ declarations }) => declarations).join("\n"),
    channels,
    each,
    row,
    sum: sums.load("first + channel + group"),
    ones: sums.load(`first + group * (${each} + 1u) + ${each}`),
    zero,
    begin: eachElement(module.size("results", Math.ceil(places * shape.channels / width))),
    store: result.store("i", width === 4 ? `vec4<i32>(${four.join(", ")})` : finished("i")),
  };
  const wgsl = render(template, { ...values, declarations: module.declarations() });
  return sizedKernel(name, mode, wgsl, module, [256, 1, 1], 0);
}
