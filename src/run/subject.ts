import type { Floors } from "../accuracy/floors.ts";
import type { Grouping } from "../accuracy/groups.ts";
import type { Precision } from "../accuracy/precision.ts";
import type { ProjectionNoise } from "../accuracy/projection.ts";
import type { ErrorStatistics } from "../accuracy/statistics.ts";
import type { Yardstick } from "../accuracy/yardstick.ts";
import type { BufferRole, Plan } from "../algorithms/plan.ts";
import type { Planned } from "../algorithms/refusal.ts";
import type { PlanRequest } from "../algorithms/request.ts";
import type { WinrsRival } from "../algorithms/winrs/price.ts";
import type { ConvDType, ConvOutDType, ConvProblem } from "../problem/conv_problem.ts";
import type { Activation, Epilogue } from "../problem/epilogue.ts";
import type { GemmProblem } from "../problem/gemm_problem.ts";
import type { IntegerOperands } from "../problem/integer_operands.ts";
import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";
import type { ResultTiles } from "../problem/result_tiles.ts";
import type { IntegerProjection } from "../reference/gemm_projection.ts";
import type { Projection } from "../reference/projection.ts";
import type { ReferenceResult } from "../reference/reference.ts";
import type { DType, TensorData, TypedArrayOf } from "../tensor/dtype.ts";
import type { FilterLayout, Layout } from "../tensor/layout.ts";
import type { CaseTraits } from "./case_record.ts";
import type { CheckMode, Coverable, StrataAxes } from "./coverage.ts";

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

/** Operands as they lie in memory: a convolution's or a gradient's, or a product's. */
export interface HostOperands {
  /** X, of forward and backward-filter. */
  readonly input?: HostData;
  /** W, of forward and backward-data. */
  readonly filter?: HostData;
  /** The output's gradient. */
  readonly output?: HostData;
  /** Values of output channels, or of a product's rows or columns. */
  readonly bias?: HostData;
  /** What sums of output channels are multiplied by, of int8 results. */
  readonly scale?: HostData;
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

/**
 * What a run computes and checks, whatever its kind: a convolution or a product, with its element types and how its tensors
 * lie. All that runs, times, checks and records a case reads nothing else of it.
 */
export interface Subject extends Coverable {
  /** What it was made of. */
  readonly asked: { readonly conv: ConvAsked } | { readonly gemm: GemmProblem };
  /** What records say of it. */
  readonly traits: CaseTraits;
  readonly title: string;
  /** Its algorithm, where there is but one to name. */
  readonly algorithm?: string;
  readonly features: readonly string[];
  readonly operands: readonly SubjectTensor[];
  readonly result: SubjectTensor;
  /** Which canonical size each one of the result's shape in memory is. */
  readonly axes: readonly number[];
  readonly activation: Activation;
  /** The same sums without their activation and what follows that: what can be projected. Absent where nothing does. */
  readonly linear?: Subject;
  /** How outputs are dealt to strata. */
  readonly strata: StrataAxes;
  /** Whether results are whole numbers, which have no errors. */
  readonly exact: boolean;

  /** What becomes of a sum of `linear` at a place in memory, where results are int8. */
  finish?(operands: HostOperands): (sum: number, at: number) => number;
  plan(planning: Planning): Planned<Plan>;
  /** Choices of WinRS that are worth measuring. */
  winrsRivals?(planning: Planning): readonly WinrsRival[];
  /** Why the algorithm that is named cannot do it. */
  unsupported?(planning: Planning): string | undefined;
  /**
   * Refuses operands that the device would answer wrongly without a word.
   *
   * @throws {RangeError} which says why.
   */
  admit?(
    check: CheckMode | "none",
    operands: () => PlanOperands | Promise<PlanOperands>,
  ): Promise<void>;
  /** The FP64 reference, of factors as kernels hold them. */
  reference(operands: HostOperands, options: ReferenceOptions): Promise<ReferenceResult>;
  /** The result where there is no device: all of it, in canonical order. */
  compute(
    operands: HostOperands,
    onProgress: (fraction: number) => void,
  ): Promise<Float64Array>;
  /** In what a plan's results are summed and stored. */
  precision(arithmetic: PlanArithmetic): Precision;
  grouping(arithmetic: PlanArithmetic): Grouping;
  /** What Σ|a||b| of outputs counts for at least; itself where undefined. */
  floors(operands: HostOperands, arithmetic: PlanArithmetic): Floors | undefined;
  /** What the arithmetic of a plan errs by on these operands, measured with their floors. */
  yardstick(
    operands: HostOperands,
    arithmetic: PlanArithmetic,
    seed: number,
    floors: Floors | undefined,
  ): Yardstick;
  /** The projection of the reference; whole numbers' is exact. */
  project(operands: HostOperands, seed: number): Promise<Projection | IntegerProjection>;
  noise(
    sample: Pick<ErrorStatistics, "squareRms" | "rms" | "typical">,
    arithmetic: PlanArithmetic,
  ): ProjectionNoise;
  /** Tiles whose outputs' errors are mixed, where there are such. */
  mixed(arithmetic: PlanArithmetic): ResultTiles | undefined;
  /** Says which sums those of a projection's place are. */
  where(place: readonly number[]): string;
}
