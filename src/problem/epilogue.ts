/** What follows the sum of products: out = activation(sum + bias[channel]). Forward only. */
export interface Epilogue {
  /** Whether a bias of K values is added. */
  readonly bias: boolean;
  readonly activation: Activation;
}

export type Activation =
  | "none"
  | "relu"
  | "leaky-relu"
  | "sigmoid"
  | "tanh"
  | "gelu"
  | "silu";

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

export const NO_EPILOGUE: Epilogue = { bias: false, activation: "none" };
