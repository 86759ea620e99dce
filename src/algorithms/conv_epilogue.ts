import { activationStep, biasStep, type EpilogueFactory } from "../kernels/epilogue.ts";
import { WHOLE } from "../kernels/module.ts";
import type { Epilogue } from "../problem/epilogue.ts";

/** The steps of a convolution's epilogue; `rowIndex` turns a row of the product into a channel. */
export function convEpilogue({ bias, activation }: Epilogue): EpilogueFactory {
  return (module, _width, rowIndex) => [
    ...(bias ? [biasStep(module, "rows", WHOLE, rowIndex)] : []),
    ...(activation === "none" ? [] : [activationStep(activation)]),
  ];
}
