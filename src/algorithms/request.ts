import { expectObject } from "../expect.ts";
import type { MatrixUnits } from "../kernels/matrix_units.ts";
import type { ConvDType, ConvOutDType, ConvProblem } from "../problem/conv_problem.ts";
import type { Epilogue } from "../problem/epilogue.ts";
import type { GemmProblem } from "../problem/gemm_problem.ts";
import type { IntegerOperands } from "../problem/conv_elements.ts";
import type { FilterLayout, Layout } from "../tensor/layout.ts";
import type { DeviceModel } from "./device/model.ts";
import type { AlgorithmName, DeviceLimits } from "./plan.ts";
import type { Balance, Schedule } from "./schedule.ts";

/** In what f32 operands may be multiplied: f32 itself, or three products of their halves on matrix units. */
export const MATHS = ["auto", "f32", "f16x3"] as const;

/** One of {@linkcode MATHS}. */
export type MathChoice = (typeof MATHS)[number];

/** What was the fastest for a problem, measured on the device. */
export interface TunedChoice {
  /** The problem that was measured: a convolution or a product. */
  readonly problem: ConvProblem | GemmProblem;
  /** Its name in the registry; `gemm` of a product. */
  readonly algorithm: AlgorithmName;
  /** The planner's choice where absent. */
  readonly policy?: string;
  /** Tile of a Winograd algorithm; the planner's choice where absent. */
  readonly tile?: string;
  /** Kernels of WinRS; the planner's choice where absent. */
  readonly pair?: string;
  /** Segments of WinRS, as `--segments` takes them; the planner's choice where absent. */
  readonly segments?: number;
  /** How a product was cut; the planner's choice where absent. */
  readonly splits?: number;
  /** The same. */
  readonly balance?: Balance;
  /** Planned as for a device with so many multiprocessors; the device's where absent. */
  readonly multiprocessors?: number;
  /** Names of its plan's kernels: their hashes stand for the text that was measured. */
  readonly kernels: readonly string[];
}

/** Choices by {@linkcode problemClass}, those of products by {@linkcode productClass}. */
export type TuningTable = ReadonlyMap<string, TunedChoice>;

/** All a planner needs to know: the problem, how its tensors lie in memory, what the device can hold. */
export interface PlanRequest {
  /** Sizes and operation. */
  readonly problem: ConvProblem;
  /** The problem of whose tensors this one's are parts, all channels but some; the planner's own, absent where they are whole. */
  readonly within?: ConvProblem;
  /** Element type of the operands. */
  readonly dtype: ConvDType;
  /** Of the result and the bias; the operands' where absent. i8 operands give i32, i8 or u8, with a bias in i32. */
  readonly outDtype?: ConvOutDType;
  /** Layout of activations: input and output, and their gradients. */
  readonly layout: Layout;
  /** Layout of the filter and its gradient. */
  readonly filterLayout: FilterLayout;
  /** With dtype i8: which operands are u8, and their zero points. */
  readonly integers?: IntegerOperands | undefined;
  /** What follows the sums, forward. */
  readonly epilogue: Epilogue;
  /** An algorithm by name; `auto` takes the fastest by tuning or by the model. */
  readonly algorithm: AlgorithmName | "auto";
  /** Of f32: how operands are multiplied; `auto` where absent. Of convolutions Winograd in separate passes alone has `f16x3`. */
  readonly math?: MathChoice;
  /** How its kernels run, in place of the planner's choice. */
  readonly schedule?: Schedule;
  /** Tile of a Winograd algorithm, e.g. `F(4x4,3x3)`, in place of the planner's choice. */
  readonly tile?: string;
  /** Kernels of WinRS, e.g. `a8n3r6,a4n3r2`, or `exact` for the fastest that end at the gradient's edge, in place of the planner's choice. */
  readonly pair?: string;
  /** Bytes of workspace a plan may allocate; algorithms work in chunks of the batch to stay below. */
  readonly maxWorkspaceBytes?: number;
  /** The same as a share of the problem's tensors. */
  readonly maxWorkspaceShare?: number;
  /** Only algorithms that sum products as they are: no Winograd. */
  readonly exact?: boolean;
  /** Limit of |y − ref| / (u · Σ|a||b|) that algorithms enlarging rounding errors must keep. */
  readonly maxBoundRatio?: number;
  /** The device's. */
  readonly limits: DeviceLimits;
  /** What the device's subgroups multiply at once; products run on threads alone where absent. */
  readonly matrixUnits?: MatrixUnits;
  /** What the device is and reaches: what cuts and predicted times depend on. An NVIDIA H200 where absent. */
  readonly device?: DeviceModel;
  /** What was measured to be fastest on the device; `auto` takes it. */
  readonly tuning?: TuningTable;
  /** `uniform` keeps sizes out of the WGSL, so that one pipeline serves many problems (tests). */
  readonly sizes?: "constant" | "uniform";
}

/** @throws {TypeError} where a request or its limits are no objects: programs without types may pass anything. */
export function expectRequest(given: Pick<PlanRequest, "limits">): void {
  expectObject("Cannot plan", "the request", given, "what is to be planned");
  expectObject("Cannot plan", "limits", given.limits, "numbers, such as a device's");
}

/** Whether a request is for a CPU: loops must be short there, and large kernels take seconds to compile. */
export function isSoftware({ device }: PlanRequest): boolean {
  return device?.software ?? false;
}
