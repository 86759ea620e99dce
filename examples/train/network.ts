import { type ConvProblem, convProblem, fillTensor, tensorShape } from "../../mod.ts";
import { SIDE } from "./digits.ts";

/** Pictures of a step; it divides those that are tested. */
export const BATCH = 60;
/** What a digit can be. */
export const CLASSES = 10;
/** Of steepest descent with momentum. */
export const RATE = 0.05;
export const MOMENTUM = 0.9;

/** A convolution with a bias, and ReLU behind all but the last, whose mean over its places are the classes' logits. */
export interface NetworkLayer {
  readonly problem: ConvProblem;
  readonly relu: boolean;
}

/** Channels in and out, pixels along a side, filter, stride. */
const SHAPES = [
  [1, 16, SIDE, 5, 1],
  [16, 32, SIDE, 3, 2],
  [32, 32, SIDE / 2, 3, 1],
  [32, CLASSES, SIDE / 2, 1, 1],
] as const;

/** 5 x 5, 3 x 3 with stride 2, 3 x 3, and a head of 1 x 1. */
export const NETWORK: readonly NetworkLayer[] = SHAPES.map((
  [inChannels, outChannels, size, filter, stride],
  i,
) => ({
  problem: convProblem({
    batch: BATCH,
    inChannels,
    outChannels,
    inputSize: [size, size],
    filterSize: [filter, filter],
    stride: [stride, stride],
    paddingBegin: [(filter - 1) / 2, (filter - 1) / 2],
  }),
  relu: i < SHAPES.length - 1,
}));

/** Places whose mean a logit is. */
export const PLACES = (SIDE / 2) ** 2;

/** The same first weights for every run, kcrs: of a variance of 2 over the values that a result sums (He et al., 2015). */
export function firstWeights(layer: number, seed: number): Float32Array<ArrayBuffer> {
  const [k, ...rest] = tensorShape(NETWORK[layer]!.problem, "filter") as [number, ...number[]];
  const deviation = Math.sqrt(2 / rest.reduce((all, size) => all * size, 1));
  const { data } = fillTensor("f32", [k, ...rest], "normal", 100 * seed + layer);
  return data.map((value) => value * deviation);
}

/** A way to train the network. */
export interface Trainer extends Disposable {
  /** Takes a step for each whole batch of the order; the mean loss of its pictures, as they were met. */
  train(order: Int32Array<ArrayBuffer>): Promise<number>;
  /** Which of the pictures it knows: the share. */
  test(order: Int32Array<ArrayBuffer>): Promise<number>;
}
