import type { ErrorStatistics, Floors, Yardstick } from "../accuracy/yardstick.ts";
import type { Grouping } from "../accuracy/groups.ts";
import type { Precision } from "../accuracy/precision.ts";
import type { ProjectionNoise } from "../accuracy/projection.ts";
import type { OptionChoice } from "../algorithms/algorithm.ts";
import type { Entrant } from "../algorithms/cost/shortlist.ts";
import type { BufferRole, Plan } from "../algorithms/plan.ts";
import type { Planned } from "../algorithms/refusal.ts";
import type { PlanRequest } from "../algorithms/request.ts";
import type { ConvDType, ConvOutDType, ConvProblem } from "../problem/conv_problem.ts";
import type { Activation } from "../problem/activations.ts";
import type { ChannelTensors, Epilogue } from "../problem/epilogue.ts";
import type { GemmProblem } from "../problem/gemm_problem.ts";
import type { IntegerOperands } from "../problem/conv_elements.ts";
import type { PlanArithmetic, ResultTiles } from "../problem/plan_arithmetic.ts";
import type { IntegerProjection } from "../reference/gemm_projection.ts";
import type { Projection } from "../reference/projection.ts";
import type { ReferenceResult } from "../reference/reference.ts";
import { type DType, dtypeBytes, type TensorData, type TypedArrayOf } from "../tensor/dtype.ts";
import { elementCount } from "../tensor/tensor.ts";
import type { FilterLayout, Layout } from "../tensor/layout.ts";
import type { CaseTraits } from "./case_record.ts";
import type { CheckMode, ResultSums } from "./coverage.ts";

/** How the tensors of a problem lie in memory. */
export interface Layouts {
  /** Of input, output and their gradients. */
  readonly layout: Layout;
  /** Of the filter and its gradient. */
  readonly filterLayout: FilterLayout;
}

/** A convolution or gradient to be run. */
export interface ConvAsked extends Layouts {
  readonly problem: ConvProblem;
  /** Nothing where absent. */
  readonly epilogue?: Epilogue;
  /** Element type of the operands; f32 where absent. */
  readonly dtype?: ConvDType;
  /** Of the result; what `resultDtypes()` has first where absent. */
  readonly outDtype?: ConvOutDType | undefined;
  /** Of dtype i8: which operands are u8, and their zero points. */
  readonly integers?: IntegerOperands | undefined;
}

/** Numbers of a tensor in the host's memory, of the types that kernels read and write. */
export type HostData = TypedArrayOf<"f16" | "f32" | "f64" | "i8" | "u8" | "i32">;

/**
 * Operands as they lie in memory: a convolution's or a gradient's, or a product's. What is one value an output channel has its
 * own names: `bias` (a product's has one value a row or column), what an activation reads, and the `scale` of int8 results.
 */
export interface HostOperands extends ChannelTensors<HostData> {
  /** X, of forward and backward-filter. */
  readonly input?: HostData;
  /** W, of forward and backward-data. */
  readonly filter?: HostData;
  /** The output's gradient. */
  readonly output?: HostData;
  /** What stands for zero in each filter, in i32, where there is one for each. */
  readonly filterZeroPoint?: HostData;
  /** A product's A, as it is stored. */
  readonly a?: HostData;
  /** B, as it is stored. */
  readonly b?: HostData;
  /** What beta times is added. */
  readonly c?: HostData;
  /** What is added behind the activation. */
  readonly residual?: HostData;
}

/** An operand on its way to the device: whole, or in chunks that follow each other. */
export type OperandData = TensorData | (() => AsyncIterable<TensorData>);

/** What a plan reads. */
export type PlanOperands = { readonly [role in BufferRole]?: OperandData };

/** A tensor of a subject. */
export interface SubjectTensor<D extends DType = DType> {
  readonly role: keyof HostOperands;
  readonly dtype: D;
  /** Sizes in the order of memory. */
  readonly shape: readonly number[];
}

/** What a record says of a loss scale: nothing where the subject reads no gradient of an output. */
export function lossScaleTrait(
  { operands }: Pick<Subject, "operands">,
  lossScale: number | undefined,
): { lossScale?: number } {
  const read = operands.some(({ role }) => role === "output");
  return lossScale === undefined || !read ? {} : { lossScale };
}

/** How a subject is planned: what the device can hold, and choices in place of the planner's. */
export type Planning =
  & Omit<
    PlanRequest,
    | "problem"
    | "dtype"
    | "outDtype"
    | "integers"
    | "layout"
    | "filterLayout"
    | "epilogue"
    | "algorithm"
  >
  & Partial<Pick<PlanRequest, "algorithm">>;

/** Which results a reference has, all where nothing is said, and who is told how far it is. */
export interface ReferenceOptions {
  /** Canonical flat indices, ascending. */
  readonly indices?: Float64Array;
  readonly sample?: { readonly count: number; readonly seed: number };
  readonly onProgress?: (fraction: number) => void;
}

/** How a subject is planned. */
export interface SubjectPlanner {
  plan(planning: Planning): Planned<Plan>;
  /** What is worth timing on a device whose figures are guesses, without what follows the sums: the planner's choice first. */
  shortlist(planning: Planning, count: number): readonly Entrant[];
  /** Options of the named algorithm that are worth measuring beside the planner's choice. */
  rivals(planning: Planning): readonly OptionChoice[];
  /** Why the named algorithm cannot do it. */
  unsupported(planning: Planning): string | undefined;
  /**
   * Refuses operands for which a device would silently return wrong results. Absent where it returns none.
   *
   * @throws {RangeError} which says why.
   */
  readonly admit?: (
    check: CheckMode | "none",
    operands: () => PlanOperands | Promise<PlanOperands>,
  ) => Promise<void>;
}

/** What the results of a subject should be, in FP64 of the operands as kernels hold them. */
export interface SubjectReference {
  of(operands: HostOperands, options: ReferenceOptions): Promise<ReferenceResult>;
  /** All results, in canonical order, where there is no device. */
  compute(
    operands: HostOperands,
    onProgress: (fraction: number) => void,
  ): Promise<Float64Array>;
  /** The projection of the reference; whole numbers' is exact. */
  project(operands: HostOperands, seed: number): Promise<Projection | IntegerProjection>;
  /** What an int8 result makes of a sum of `linear` at a place in memory. Absent of other types. */
  readonly finish?: (operands: HostOperands) => (sum: number, at: number) => number;
}

/** How far results of a plan's arithmetic may be from the reference. */
export interface SubjectTolerance {
  /** In what results are summed and stored. */
  precision(arithmetic: PlanArithmetic): Precision;
  grouping(arithmetic: PlanArithmetic): Grouping;
  /** The least that Σ|a||b| of results counts for; itself where undefined. */
  floors(operands: HostOperands, arithmetic: PlanArithmetic): Floors | undefined;
  /** The errors of the arithmetic on these operands, measured with their floors. */
  yardstick(
    operands: HostOperands,
    arithmetic: PlanArithmetic,
    seed: number,
    floors: Floors | undefined,
  ): Yardstick;
  /** The errors of a projection's sums. */
  noise(
    sample: Pick<ErrorStatistics, "squareRms" | "rms" | "typical">,
    arithmetic: PlanArithmetic,
  ): ProjectionNoise;
  /** Tiles whose results' errors are mixed, where there are such. */
  mixed(arithmetic: PlanArithmetic): ResultTiles | undefined;
  /** Says which sums are at a place of a projection. */
  where(place: readonly number[]): string;
}

/**
 * A convolution or a product to be run: its tensors and what is known of its results, as plain data, and the planner,
 * reference and tolerance of its kind. Whatever runs, times, checks and records a case reads nothing else of it.
 */
export interface Subject {
  /** What it was made of. */
  readonly asked: { readonly conv: ConvAsked } | { readonly gemm: GemmProblem };
  /** What records say of it. */
  readonly traits: CaseTraits;
  readonly operands: readonly SubjectTensor[];
  readonly result: SubjectTensor;
  /** Canonical sizes of the result. */
  readonly shape: readonly number[];
  /** Which canonical size each one of the result's shape in memory is. */
  readonly axes: readonly number[];
  readonly activation: Activation;
  /** The same sums without their activation and what follows that, which can be projected. Absent where nothing follows. */
  readonly linear?: Subject;
  readonly sums: ResultSums;
  readonly planner: SubjectPlanner;
  readonly reference: SubjectReference;
  readonly tolerance: SubjectTolerance;
}

/** Bytes of a tensor. */
export function tensorBytes({ dtype, shape }: Pick<SubjectTensor, "dtype" | "shape">): number {
  return dtypeBytes(dtype) * elementCount(shape);
}

/** Bytes of a subject's operands and result. */
export function subjectBytes({ operands, result }: Subject): number {
  return [...operands, result].reduce((sum, one) => sum + tensorBytes(one), 0);
}

/** A subject's name, for messages and progress. */
export function titleOf({ asked, traits: { problem, op } }: Subject): string {
  return "gemm" in asked ? problem : `${asked.conv.problem.name || problem} ${op}`;
}

/** Features that a device needs for a subject. */
export function featuresOf({ operands, result }: Subject): string[] {
  const types = new Set([...operands, result].map(({ dtype }) => dtype));
  return [...types].filter((type) => type === "f16" || type === "f64").map((type) =>
    `shader-${type}`
  );
}

/** Whether matrix units multiply operands of a type where there are such. */
export function usesUnits(dtype: string, math?: Planning["math"]): boolean {
  return math === "f16x3" || dtype === "f16" || dtype === "i8";
}

/** Whether a subject's results are whole numbers, which have no rounding errors. */
export function isIntegral({ traits: { dtype } }: Pick<Subject, "traits">): boolean {
  return dtype === "i8";
}
