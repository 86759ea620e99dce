import { InputTypeError } from "../errors.ts";
import { expectFields, expectObject, said } from "../expect.ts";
import type { ConvProblem } from "../problem/conv_problem.ts";
import type { Epilogue } from "../problem/epilogue.ts";
import type { GemmProblem } from "../problem/gemm_problem.ts";
import type { Checked } from "../run/check.ts";
import { convSubject } from "../run/conv_subject.ts";
import { gemmSubject } from "../run/gemm_subject.ts";
import type { HostData, HostOperands, Subject } from "../run/subject.ts";
import { type FilterLayout, filterLayoutFor, type Layout } from "../tensor/layout.ts";
import { elementCount } from "../tensor/tensor.ts";
import { claimDtype } from "./claims.ts";
import { diagnose, diagnosisText } from "./diagnose.ts";
import { verifySubject } from "./verify.ts";

const DOING = "Cannot verify";

/** How a result of another program is verified. */
export interface VerifyResultOptions {
  /**
   * What it claims to be computed in: `f32`, `f32-any`, `tf32`, `bf16`, `f16`, `f16-f32`, `bf16-f32`, `i8`, `f64`, `f16x3`, `fft`,
   * `winograd F(4x4,3x3)`, or `auto` (where absent), which finds out.
   */
  readonly arithmetic?: string;
  /** Of a convolution's input, output and their gradients; nchw where absent. */
  readonly layout?: Layout;
  /** Of its filter; what goes with `layout` where absent. */
  readonly filterLayout?: FilterLayout;
  /** What follows a convolution's sums; a bias, where there is one, where absent. */
  readonly epilogue?: Partial<Epilogue>;
  /** `bf16` where the result's numbers were stored so; f16 of a Float16Array. */
  readonly results?: "f16" | "bf16";
  /** Of samples and projections; 1 where absent. */
  readonly seed?: number;
}

/** What the gate makes of a result of another program. */
export interface VerifiedResult extends Checked {
  /** The arithmetic that explains its errors, or comes nearest: `f32, one sum`. */
  readonly arithmetic: string;
  /** Of one that fails: where it is wrong, and what it is in place of what it should be, where that is known. */
  readonly diagnosis?: string;
}

/**
 * Verifies a result of any kernel by an FP64 reference, and by what correct arithmetic of the kind that it claims errs by on the same
 * data: no tolerance is to be chosen. It needs no device.
 *
 * @param result In the order of memory, as long as the problem's result is.
 * @param problem A convolution or gradient, or a product.
 * @param operands As `convolve()` and `multiply()` take them, of any number type: `input`, `filter`, `output` (a gradient), `bias`, or
 * `a`, `b`, `c`, `bias`, `residual`. Types wider than the claimed arithmetic are rounded as its kernel would.
 * @throws {TypeError} where an operand is missing or of another size, and for an arithmetic that is none.
 * @example
 * ```ts
 * import { convProblem, fillTensor, verify } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * const problem = convProblem({
 *   batch: 1, inChannels: 1, outChannels: 1, inputSize: [32], filterSize: [3],
 * });
 * const input = fillTensor("f32", [1, 1, 32], "normal", 1).data;
 * const filter = new Float32Array([0.5, 0.25, -1]);
 * const result = new Float32Array(30);
 * for (let p = 0; p < 30; p++) {
 *   for (let r = 0; r < 3; r++) result[p]! += input[p + r]! * filter[r]!;
 * }
 * const right = await verify(result, problem, { input, filter }, { arithmetic: "f32" });
 * assert.equal(right.verdict, "pass");
 * const flipped = filter.toReversed();
 * const wrong = await verify(result, problem, { input, filter: flipped }, { arithmetic: "f32" });
 * assert.match(wrong.diagnosis ?? "", /matches with the filter flipped/);
 * ```
 */
export async function verify(
  result: HostData,
  problem: ConvProblem | GemmProblem,
  operands: HostOperands,
  options: VerifyResultOptions = {},
): Promise<VerifiedResult> {
  expectObject(DOING, "the problem", problem, "sizes");
  expectObject(DOING, "operands", operands, "arrays");
  expectObject(DOING, "options", options, "options");
  const { arithmetic = "auto", seed = 1 } = options;
  if (typeof arithmetic !== "string") {
    throw new InputTypeError(`${DOING}: arithmetic is ${said(arithmetic)}, expected a word`);
  }
  const subject = subjectOf(result, problem, operands, options);
  expectFields(DOING, "operand", operands, subject.operands.map(({ role }) => role));
  for (const { role, shape } of subject.operands) expectLength(role, operands[role], shape);
  expectLength("the result", result, subject.result.shape);
  const asked = {
    ...{ arithmetic, seed },
    results: options.results ?? (result instanceof Float16Array ? "f16" : undefined),
  };
  const { rounding, ...verified } = await verifySubject(subject, operands, result, asked);
  if (verified.verdict !== "fail") return verified;
  const failed = { subject, operands, result, verified: { ...verified, rounding }, ...asked };
  return { ...verified, diagnosis: diagnosisText(await diagnose(failed)) };
}

/** The subject of a result: of i8 where operands are bytes and sums whole numbers, in f64 where a product is. */
function subjectOf(
  result: HostData,
  problem: ConvProblem | GemmProblem,
  operands: HostOperands,
  { arithmetic = "auto", layout = "nchw", ...options }: VerifyResultOptions,
): Subject {
  const gemm = "m" in problem;
  const values = Object.entries(operands).filter(([role]) => role !== "bias").map(([, data]) =>
    data
  );
  const isByte = (data: unknown) => data instanceof Int8Array || data instanceof Uint8Array;
  const whole = isByte(result) || result instanceof Int32Array;
  const named = claimDtype(arithmetic.trim());
  const dtype = arithmetic.trim() !== "auto"
    ? named
    : whole && values.slice(0, 2).every(isByte)
    ? "i8"
    : [...values, result].every((data) => data instanceof Float64Array)
    ? "f64"
    : "f32";
  if (gemm) return gemmSubject(problem, { dtype });
  const { input, filter, bias, scale } = operands;
  const bytes = result instanceof Int8Array
    ? "i8"
    : result instanceof Uint8Array
    ? "u8"
    : undefined;
  return convSubject({
    problem,
    layout,
    filterLayout: options.filterLayout ?? filterLayoutFor(layout),
    epilogue: {
      bias: bias !== undefined,
      activation: "none",
      ...(scale === undefined ? {} : { scale: "channel" } as const),
      ...options.epilogue,
    },
    ...(dtype === "i8"
      ? {
        dtype,
        outDtype: bytes,
        integers: {
          ...(input instanceof Uint8Array ? { inputDtype: "u8" } as const : {}),
          ...(filter instanceof Uint8Array ? { filterDtype: "u8" } as const : {}),
        },
      }
      : {}),
  });
}

function expectLength(what: string, data: HostData | undefined, shape: readonly number[]): void {
  if (data === undefined) throw new InputTypeError(`${DOING}: ${what} is missing`);
  if (!ArrayBuffer.isView(data)) {
    throw new InputTypeError(`${DOING}: ${what} is ${said(data)}, expected a typed array`);
  }
  const count = elementCount(shape);
  if (data.length === count) return;
  throw new InputTypeError(
    `${DOING}: ${what} has ${data.length} elements, its shape [${shape.join(", ")}] has ${count}`,
  );
}
