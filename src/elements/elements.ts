import { type Scalar, scalarFeature, sumScalar } from "./scalar.ts";

/** Element type of a problem's operands. */
type OperandType = "f32" | "f16" | "bf16" | "i8" | "f64";

/** Element type of a result; int8 operands give i32, i8 or u8. */
type ResultType = "f32" | "f16" | "bf16" | "i32" | "i8" | "u8";

/** In what products are summed: `f16` in short chains that are added to f32; `i32` of int8, four products a step. */
export type Accumulation = "f32" | "f16" | "i32" | "f64";

/** What the tensors, tiles and sums of a product or a convolution are made of: CUTLASS' element types of a kernel. */
export interface Elements {
  /** Operands in memory; `u32` are words of four int8 that follow each other along the depth, `i8` single ones. */
  readonly storage: Scalar;
  /** Operands in workgroup memory. */
  readonly tile: Scalar;
  readonly accumulate: Accumulation;
  /** Results in memory, and what is added to them: C, residual, and a bias but of i8 (`biasOf()`). */
  readonly result: Scalar;
}

/** What a user says of elements. */
export interface ElementChoice {
  /** Of the operands. */
  readonly dtype: OperandType;
  /** Of f16 only; f32 where absent. */
  readonly accumulate?: "f32" | "f16";
  /** Of the results; as the operands where absent, i32 of int8. */
  readonly outDtype?: ResultType;
  /** Whether f16 stays f16 in workgroup memory, and is converted as it is multiplied. */
  readonly schedule?: { readonly halfTile?: boolean };
}

/** The elements of a choice; tiles hold what sums are in where nothing else is said. */
export function elementsOf({ dtype, accumulate, outDtype, schedule }: ElementChoice): Elements {
  if (dtype === "i8") {
    return { storage: "u32", tile: "u32", accumulate: "i32", result: scalarOf(outDtype ?? "i32") };
  }
  const chained = dtype === "f16" && accumulate === "f16";
  return {
    storage: dtype,
    tile: dtype === "f16" && (chained || schedule?.halfTile) ? "f16" : sumScalar(dtype),
    accumulate: chained ? "f16" : dtype === "f64" ? "f64" : "f32",
    result: scalarOf(outDtype ?? dtype),
  };
}

/** The storage type of results: u8 is stored as i8 is. */
function scalarOf(type: ResultType | OperandType): Scalar {
  return type === "u8" ? "i8" : type;
}

/** What sums leave the loop in: of the epilogue, and of partial results where the depth is split. */
export function sumOf({ accumulate }: Pick<Elements, "accumulate">): Scalar {
  return sumScalar(accumulate);
}

/** What a bias is in: as the results, of int8 as the sums. */
export function biasOf({ accumulate, result }: Pick<Elements, "accumulate" | "result">): Scalar {
  return accumulate === "i32" ? "i32" : result;
}

/** Products along the depth that one value in memory holds. */
export function depthOfValue({ storage }: Pick<Elements, "storage">): 1 | 4 {
  return storage === "u32" ? 4 : 1;
}

/** As it stands in kernels' names: `f32`, `f16_sum16`, `f16_to_f32`. */
export function elementsTrait({ storage, accumulate, result }: Elements): string {
  const [operand, own] = accumulate === "i32" ? ["i8", "i32"] : [storage, storage];
  return operand + (accumulate === "f16" ? "_sum16" : "") +
    (result === own ? "" : `_to_${result}`);
}

/** WebGPU features that kernels of a choice need. */
export function elementFeatures(choice: ElementChoice): string[] {
  const { storage, result } = elementsOf(choice);
  return [...new Set([storage, result].flatMap((scalar) => scalarFeature(scalar) ?? []))];
}
