/** What follows the sum of products: out = activation(sum + bias[channel]). Forward only. */
export interface Epilogue {
  /** Whether a bias of K values is added. */
  readonly bias: boolean;
  /** What is applied last. */
  readonly activation: Activation;
}

/** A function of each output, as PyTorch has it: gelu is the exact one, x·Φ(x), silu is x·sigmoid(x). */
export type Activation =
  | "none"
  | "relu"
  | "leaky-relu"
  | "sigmoid"
  | "tanh"
  | "gelu"
  | "silu";

/** All of them, in the order of help texts. */
export const ACTIVATIONS: readonly Activation[] = [
  "none",
  "relu",
  "leaky-relu",
  "sigmoid",
  "tanh",
  "gelu",
  "silu",
];

/** Slope of leaky ReLU below zero: PyTorch's default. */
export const LEAKY_RELU_SLOPE = 0.01;

/** The sums as they are. */
export const NO_EPILOGUE: Epilogue = { bias: false, activation: "none" };
