import template from "../../shaders/reduce_splits.wgsl" with { type: "text" };
import type { Epilogue } from "../problem/epilogue.ts";
import { activationText } from "./activation.ts";
import {
  moduleBuilder,
  render,
  type SizedKernel,
  sizedKernel,
  type SizeMode,
  type TensorSplit,
} from "./module.ts";
import { splitTrait } from "./pack_filter.ts";

export interface ReduceShape {
  /** Elements of the result; partial results lie one after the other. */
  readonly elements: number;
  readonly splits: number;
  /** Channel of element i: ⌊i / channelStride⌋ mod channels; for the bias. */
  readonly channels: number;
  readonly channelStride: number;
}

/** Sums the splits' partial results in a fixed order with compensation, adds bias, applies the activation. */
export function reduceSplitsKernel(
  shape: ReduceShape,
  mode: SizeMode,
  epilogue: Epilogue,
  splits: { partials: TensorSplit; output: TensorSplit },
): SizedKernel {
  const module = moduleBuilder(mode);
  const vector = !epilogue.bias && shape.elements % 4 === 0 ? 4 : 1;
  const partials = module.tensor("partials", "read", vector, splits.partials);
  const output = module.tensor("output", "write", vector, splits.output);
  const bias = epilogue.bias
    ? module.tensor("bias", "read", 1, { parts: 1, partBytes: 0 })
    : undefined;
  const name = `reduce_splits_f32x${vector}${bias ? "_bias" : ""}${
    epilogue.activation === "none" ? "" : `_${epilogue.activation}`
  }${splitTrait(splits.partials, splits.output)}`;
  const count = module.size("count", shape.elements / vector);
  const channel = `(i / ${module.size("channel_stride", shape.channelStride)}) % ${
    module.size("channels", shape.channels)
  }`;
  const sum = bias ? `sum + ${bias.load(channel)}` : "sum";
  const activate = vector === 4 ? "activate4" : "activate";
  const values = {
    name,
    count,
    zero: vector === 4 ? "vec4f()" : "0.0f",
    splits: module.size("splits", shape.splits),
    load: partials.load(`split * ${count} + i`),
    store: output.store("i", epilogue.activation === "none" ? sum : `${activate}(${sum})`),
    activation: activationText(epilogue.activation),
  };
  const wgsl = render(template, { ...values, declarations: module.declarations() });
  return sizedKernel(name, mode, wgsl, module, [256, 1, 1], 0);
}

/** Threads of a {@linkcode reduceSplitsKernel}: one per vector. */
export function reduceThreads(shape: ReduceShape, epilogue: Epilogue): number {
  return !epilogue.bias && shape.elements % 4 === 0 ? shape.elements / 4 : shape.elements;
}
