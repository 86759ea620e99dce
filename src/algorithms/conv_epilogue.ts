import { activationStep, biasStep, type EpilogueFactory } from "../kernels/epilogue.ts";
import { type ElementChoice, elementsOf } from "../elements/elements.ts";
import { WHOLE } from "../kernels/module.ts";
import type { Epilogue } from "../problem/epilogue.ts";

/** The steps of a convolution's epilogue; `rowIndex` turns a row of the product into a channel. */
export function convEpilogue(
  { epilogue: { bias, activation }, ...choice }: ElementChoice & { readonly epilogue: Epilogue },
): EpilogueFactory {
  const { result } = elementsOf(choice);
  return (module, _width, rowIndex) => [
    ...(bias ? [biasStep(module, "rows", WHOLE, rowIndex, result)] : []),
    ...(activation === "none" ? [] : [activationStep(activation)]),
  ];
}
