import type { MainLoopVariant } from "../../kernels/main_loop_variant.ts";
import type { MatrixUnits } from "../../kernels/matrix_units.ts";
import type { SizeMode } from "../../kernels/module.ts";
import type {
  GemmAccumulate,
  GemmDType,
  GemmOutDType,
  GemmProblem,
} from "../../problem/gemm_problem.ts";
import type { DeviceModel } from "../device/model.ts";
import type { DeviceLimits } from "../plan.ts";
import type { Balance, MathChoice } from "../request.ts";

/** All that planning a product needs to know. */
export interface GemmRequest {
  /** Sizes, transposes and epilogue. */
  readonly problem: GemmProblem;
  /** Of A and B. */
  readonly dtype: GemmDType;
  /** Of f16 only; f32 where absent. */
  readonly accumulate?: GemmAccumulate;
  /** Of f16's result, bias, C and residual; f16 where absent. */
  readonly outDtype?: GemmOutDType;
  /** Of f32: how operands are multiplied, `auto` where absent. */
  readonly math?: MathChoice;
  /** Name of a `TilePolicy` in place of the planner's choice. */
  readonly policy?: string;
  /** Workgroups that share the depth of a tile, in place of the planner's choice. */
  readonly splits?: number;
  /**
   * Of f16 and f32 in halves on matrix units: products that one accumulator sums at most, a step at least, before they are added to
   * others; 0 for all. Where absent 3072 of results in f32, 16,384 of results in f16; of halves a quarter of the depth, 512 to 2,048,
   * where units are known to cut off, else 112.
   */
  readonly flush?: number;
  /** How tiles are spread over the device, in place of the planner's choice. */
  readonly balance?: Balance;
  /** Optimisations of the main loop that are not as tuned, for ablations. */
  readonly variant?: MainLoopVariant;
  /** The device's. */
  readonly limits: DeviceLimits;
  /** What the device's subgroups multiply at once; products run on threads alone where absent. */
  readonly matrixUnits?: MatrixUnits;
  /** What the device reaches; an NVIDIA H200 where absent. */
  readonly device?: DeviceModel;
  /** `uniform` keeps sizes out of the WGSL, so that one pipeline serves many problems. */
  readonly sizes?: SizeMode;
}
