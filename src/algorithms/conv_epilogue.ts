import {
  activationStep,
  biasStep,
  type EpilogueFactory,
  quantizeStep,
} from "../kernels/epilogue.ts";
import { biasOf, type ElementChoice, elementsOf, sumOf } from "../elements/elements.ts";
import { WHOLE } from "../kernels/module.ts";
import type { Epilogue } from "../problem/epilogue.ts";

/** The steps of a convolution's epilogue; `rowIndex` turns a row of the product into a channel. */
export function convEpilogue(
  { epilogue: { bias, activation, scale, zeroPoint }, ...choice }: ElementChoice & {
    readonly epilogue: Epilogue;
  },
): EpilogueFactory {
  const types = elementsOf(choice);
  return (module, _width, rowIndex) => [
    ...(bias ? [biasStep(module, "rows", WHOLE, rowIndex, biasOf(types))] : []),
    ...(activation === "none" ? [] : [activationStep(activation, sumOf(types))]),
    ...(scale === undefined ? [] : [
      quantizeStep(
        module,
        scale === "channel" ? { split: WHOLE, index: rowIndex } : scale,
        choice.outDtype === "u8" ? "u8" : "i8",
        zeroPoint,
      ),
    ]),
  ];
}
