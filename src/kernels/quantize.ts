import template from "../../shaders/quantize.wgsl" with { type: "text" };
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
} from "./module.ts";

/** Sums that become int8, channels innermost. */
export interface QuantizeShape {
  readonly elements: number;
  readonly channels: number;
}

/** Workgroups of {@linkcode quantizeKernel}. */
export function quantizeWorkgroups({ elements }: QuantizeShape): number {
  return Math.ceil(elements / 4 / 256);
}

/**
 * Turns sums in i32 into int8, four a word, whose channels need not be whole words: what a product's own store cannot write.
 * Binds `sums`, `result` and what the epilogue reads.
 */
export function quantizeKernel(
  shape: QuantizeShape,
  mode: SizeMode,
  epilogue: EpilogueFactory,
  splits: { readonly sums: TensorSplit; readonly result: TensorSplit },
): SizedKernel {
  const module = moduleBuilder(mode);
  const sums = module.tensor("sums", "read", 1, splits.sums, "i32");
  const result = module.tensor("result", "write", 4, splits.result, "i8");
  const steps = epilogue(module, 1, (row) => row);
  const name = `quantize${epilogueTrait(steps)}${splitTrait(splits.sums, splits.result)}`;
  const channels = module.size("channels", shape.channels);
  const count = module.size("count", shape.elements);
  const four = [0, 1, 2, 3].map((j) => {
    const at = `min(i * 4u + ${j}u, ${count} - 1u)`;
    return applyEpilogue(steps, sums.load(at), {
      width: 1,
      side: "rows",
      row: `(${at} % ${channels})`,
      column: `(${at} / ${channels})`,
      offset: at,
    });
  });
  const values = {
    name,
    begin: eachElement(module.size("words", Math.ceil(shape.elements / 4))),
    store: result.store("i", `vec4<i32>(${four.join(", ")})`),
    functions: steps.map(({ declarations }) => declarations).join("\n"),
  };
  const wgsl = render(template, { ...values, declarations: module.declarations() });
  return sizedKernel(name, mode, wgsl, module, [256, 1, 1], 0);
}
