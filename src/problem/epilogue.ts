import {
  type Activation,
  ACTIVATION_OPERANDS,
  type ActivationOperand,
  activationOperand,
  ACTIVATIONS,
} from "./activations.ts";
import { InputTypeError } from "../errors.ts";
import { expectFields, expectObject, expectWord, said } from "../expect.ts";

/**
 * What follows the sum of products: out = activation(sum + bias[channel]), where an activation may read a tensor of one value an
 * output channel (`slope` of `prelu`). Forward only. Of int8 that is summed in i32, and
 * where results are int8 or uint8, too, out = saturate(round(f32(activation(sum + bias[channel])) * scale) + zeroPoint).
 */
export interface Epilogue {
  /** Whether a bias of K values is added. */
  readonly bias: boolean;
  /** What is applied last. */
  readonly activation: Activation;
  /** Of int8 and uint8 results: what sums are multiplied by, one f32 for all or one an output channel. */
  readonly scale?: number | "channel";
  /** Of the same: the result that stands for zero; 0 where absent. */
  readonly zeroPoint?: number;
}

/** A tensor of one value an output channel that an epilogue reads. */
export type ChannelOperand = "bias" | ActivationOperand | "scale";

/** One of each that is there. */
export type ChannelTensors<T> = { readonly [role in ChannelOperand]?: T };

/** All of them. */
export const CHANNEL_OPERANDS: readonly ChannelOperand[] = [
  ...["bias", ...ACTIVATION_OPERANDS.keys(), "scale"] as const,
];

/** Those that an epilogue reads, in the order of a plan's buffers. */
export function channelOperands({ bias, activation, scale }: Epilogue): ChannelOperand[] {
  const operand = activationOperand(activation);
  return [
    ...(bias ? ["bias"] as const : []),
    ...(operand === undefined ? [] : [operand]),
    ...(scale === "channel" ? ["scale"] as const : []),
  ];
}

/**
 * The sums as they are.
 * @example
 * ```ts
 * import { convolve, NO_EPILOGUE, openDevice, parseDescriptor } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * using gpu = await openDevice();
 * const operands = { input: new Float32Array(4).fill(1), filter: new Float32Array([-2]) };
 * const epilogue = { ...NO_EPILOGUE, activation: "relu" } as const;
 * const { result } = await convolve(gpu, parseDescriptor("mb1ic1ih2oc1kh1"), operands, { epilogue });
 * assert.deepEqual([...result], [0, 0, 0, 0]);
 * ```
 */
export const NO_EPILOGUE: Epilogue = { bias: false, activation: "none" };

/**
 * An epilogue of which a part is said: no bias and no activation where nothing is.
 *
 * @throws {TypeError | RangeError} where it is none.
 */
export function fullEpilogue(doing: string, part: Partial<Epilogue> = {}): Epilogue {
  expectObject(doing, "epilogue", part, "what follows the sums");
  expectFields(doing, "field of epilogue", part, ["bias", "activation", "scale", "zeroPoint"]);
  const { bias = false, activation = "none", ...others } = part;
  if (typeof bias !== "boolean") {
    throw new InputTypeError(`${doing}: epilogue.bias is ${said(bias)}, expected true or false`);
  }
  expectWord(doing, "activation", activation, ACTIVATIONS);
  return { bias, activation, ...others };
}

/** What a scale of int8 results may be, for messages. */
export const SCALE_RANGE = "2^-126 to 2^96";

/** Whether a number is a scale: with no sum of 32 bits it leaves f32, nor is it so small that a GPU flushes it to zero. */
export function isScale(value: number): boolean {
  return value >= 2 ** -126 && value <= 2 ** 96;
}
