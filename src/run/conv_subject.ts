import type { Grouping } from "../accuracy/groups.ts";
import { arithmeticPrecision, BF16, F16, F32, I32, type Precision } from "../accuracy/precision.ts";
import { projectionNoise } from "../accuracy/projection.ts";
import { NO_ERRORS_YARDSTICK } from "../accuracy/yardstick.ts";
import { shortlist } from "../algorithms/cost/shortlist.ts";
import { algorithmRivals, supportedAlgorithms, tryPlanConv } from "../algorithms/planner.ts";
import { InputRangeError, InputTypeError } from "../errors.ts";
import { convElementsFault, type IntegerOperands, integersText } from "../problem/conv_elements.ts";
import {
  accumulationLength,
  biasDtype,
  type ConvDType,
  type ConvOutDType,
  type ConvProblem,
  type ConvTensor,
  directFlops,
  operandTensors,
  resultDtypes,
  resultTensor,
  tensorShape,
} from "../problem/conv_problem.ts";
import { printDescriptor } from "../problem/descriptor.ts";
import {
  channelOperands,
  type ChannelTensors,
  type Epilogue,
  NO_EPILOGUE,
} from "../problem/epilogue.ts";
import type { PlanArithmetic, ResultTiles } from "../problem/plan_arithmetic.ts";
import { activate, operandOf } from "../problem/activations.ts";
import { projectConvIntegers, quantized, referenceIntegers } from "../reference/integers.ts";
import { type HostOperand, referenceConv, type ReferenceInputs } from "../reference/reference.ts";
import { projectConv } from "../reference/projection.ts";
import { convFloors } from "../simulate/conv_floors.ts";
import { convYardstick } from "../simulate/conv_yardstick.ts";
import { type FilterLayout, type Layout, layoutAxes, shapeInLayout } from "../tensor/layout.ts";
import type { CaseTraits } from "./case_record.ts";
import { type ResultSums, sampleCount } from "./coverage.ts";
import { admitSums, type IntegerSum, lessZeros, refuseValues } from "./integers.ts";
import type {
  ConvAsked,
  HostOperands,
  Layouts,
  Planning,
  ReferenceOptions,
  Subject,
  SubjectPlanner,
  SubjectReference,
  SubjectTensor,
  SubjectTolerance,
} from "./subject.ts";

export type { ConvAsked, Layouts } from "./subject.ts";

function layoutOf(which: ConvTensor, layouts: Layouts): Layout | FilterLayout {
  return which === "filter" ? layouts.filterLayout : layouts.layout;
}

function convTensor(
  problem: ConvProblem,
  which: ConvTensor,
  layouts: Layouts,
  dtype: ConvOutDType,
): SubjectTensor<ConvOutDType> {
  const shape = shapeInLayout(tensorShape(problem, which), layoutOf(which, layouts));
  return { role: which, dtype, shape };
}

/** What a convolution's plan leaves. */
export function convResult<D extends ConvOutDType = "f32">(
  problem: ConvProblem,
  layouts: Layouts = { layout: "nchw", filterLayout: "kcrs" },
  dtype?: D,
): SubjectTensor<D> {
  const tensor = convTensor(problem, resultTensor(problem.op), layouts, dtype ?? "f32");
  return tensor as SubjectTensor<D>;
}

/** The operands in the form the reference takes. */
export function referenceInputs(
  problem: ConvProblem,
  operands: HostOperands,
  layouts: Layouts,
  epilogue: Epilogue = NO_EPILOGUE,
): ReferenceInputs {
  const inputs = Object.fromEntries(
    operandTensors(problem.op).map((which) => {
      const data = operands[which] as HostOperand["data"] | undefined;
      if (!data) throw new InputTypeError(`Cannot compute the reference: ${which} is missing`);
      return [which, { data, layout: layoutOf(which, layouts) }];
    }),
  );
  // Scales are of what becomes of sums.
  const added = channelOperands(epilogue).filter((role) => role !== "scale");
  return { ...inputs, ...Object.fromEntries(added.map((role) => [role, operands[role]])) };
}

/** What is asked of a convolution, with all that is left out said. */
interface Conv extends ConvAsked {
  readonly epilogue: Epilogue;
  readonly dtype: ConvDType;
  readonly outDtype: ConvOutDType;
}

/** A convolution or gradient as what a run computes. */
export function convSubject(given: ConvAsked): Subject {
  const { epilogue = NO_EPILOGUE, dtype = "f32" } = given;
  const conv = { ...given, epilogue, dtype, outDtype: given.outDtype ?? resultDtypes(dtype)[0] };
  const { problem, outDtype } = conv;
  const { activation, scale } = epilogue;
  const which = resultTensor(problem.op);
  return {
    asked: { conv: given },
    traits: convTraits(conv),
    operands: convOperands(conv),
    result: convResult(problem, conv, outDtype),
    shape: tensorShape(problem, which),
    axes: layoutAxes(layoutOf(which, conv), problem.filterSize.length),
    activation,
    ...(activation === "none" && scale === undefined ? {} : { linear: linearConv(conv) }),
    sums: convSums(conv),
    planner: convPlanner(conv),
    reference: convReference(conv),
    tolerance: convTolerance(conv),
  };
}

/** The same sums with their bias alone behind them; of int8 in i32. */
function linearConv({ epilogue: { bias }, ...conv }: Conv): Subject {
  const outDtype = isBytes(conv) ? undefined : conv.outDtype;
  return convSubject({ ...conv, outDtype, epilogue: { bias, activation: "none" } });
}

function isBytes({ dtype }: Pick<Conv, "dtype">): boolean {
  return dtype === "i8";
}

function convTraits(
  { problem, layout, filterLayout, dtype, outDtype, epilogue, integers = {} }: Conv,
): CaseTraits {
  const { scale, zeroPoint = 0 } = epilogue;
  const said = [
    integersText(integers),
    scale === undefined ? undefined : scale === "channel" ? "scales" : `scale ${scale}`,
    zeroPoint === 0 ? undefined : `zero point ${zeroPoint}`,
  ].filter((one) => one !== undefined).join(", ");
  return {
    problem: printDescriptor(problem),
    op: problem.op,
    flops: directFlops(problem),
    dtype,
    ...(outDtype === resultDtypes(dtype)[0] ? {} : { outDtype }),
    layout,
    filterLayout,
    ...(said === "" ? {} : { epilogue: said }),
  };
}

function convOperands(conv: Conv): SubjectTensor[] {
  const { problem, dtype, outDtype, epilogue, integers = {} } = conv;
  const shape = [problem.outChannels];
  return [
    ...operandTensors(problem.op).map((which) =>
      convTensor(problem, which, conv, operandDtype(dtype, which, integers))
    ),
    ...channelOperands(epilogue).map((role) => {
      const own = role === "scale" ? "f32" : biasDtype(dtype, outDtype);
      return { role, dtype: own, shape } as const;
    }),
    ...(integers.filterZeroPoint === "channel"
      ? [{ role: "filterZeroPoint", dtype: "i32", shape } as const]
      : []),
  ];
}

/** Which canonical axis of the result is its rows: output channels, of bwd-data input channels. */
function channelAxis({ problem: { op } }: Conv): 0 | 1 {
  return op === "bwd-filter" ? 0 : 1;
}

function convSums(conv: Conv): ResultSums {
  const { problem, layout } = conv;
  const { op, groups } = problem;
  const axis = channelAxis(conv);
  const length = accumulationLength(problem);
  const [C, K] = [problem.inChannels / groups, problem.outChannels / groups];
  return {
    length,
    cost: 1,
    members: op === "fwd" ? K : op === "bwd-data" ? C : C * K,
    sample: sampleCount(tensorShape(problem, resultTensor(op))[axis]!, length),
    strata: {
      channelAxis: axis,
      run: op === "bwd-data" ? C : K,
      inner: layout === "chwn",
    },
  };
}

function convFault({ problem, dtype, outDtype, integers, epilogue, ...layouts }: Conv) {
  const { layout, filterLayout } = layouts;
  return convElementsFault({ problem, dtype, outDtype, integers, layout, filterLayout, epilogue });
}

function convPlanner(conv: Conv): SubjectPlanner {
  const { problem, layout, filterLayout, epilogue, dtype, outDtype, integers } = conv;
  const request = (planning: Planning) => ({
    algorithm: "auto",
    ...planning,
    ...{ problem, dtype, outDtype, integers, layout, filterLayout, epilogue },
  } as const);
  return {
    plan: (planning) => tryPlanConv(request(planning)),
    // Zero points may become another problem.
    shortlist: (planning, count) =>
      convFault(conv) === undefined && integers === undefined
        ? shortlist(request(planning), count)
        : [],
    rivals: (planning) =>
      convFault(conv) === undefined && !isBytes(conv) ? algorithmRivals(request(planning)) : [],
    // Of lists of types, layouts and operations not all go together.
    unsupported: (planning) =>
      convFault(conv) ??
        supportedAlgorithms(request(planning))
          .find(({ name }) => name === planning.algorithm)?.reason,
    ...(isBytes(conv) ? { admit: admitConv(conv) } : {}),
  };
}

/** Refuses sums that may leave 32 bits, and values of output channels that are none. */
function admitConv(conv: Conv): NonNullable<SubjectPlanner["admit"]> {
  const { problem, epilogue, integers = {} } = conv;
  const { inputDtype, filterDtype, inputZeroPoint = 0, filterZeroPoint = 0 } = integers;
  const sum = {
    doing: "Cannot convolve",
    length: accumulationLength(problem),
    operands: operandTensors(problem.op),
    added: epilogue.bias ? [["bias", 1]] : [],
    zeroPoints: {
      ...(inputDtype === "u8" || inputZeroPoint !== 0 ? { input: inputZeroPoint } : {}),
      ...(filterZeroPoint === "channel"
        ? { filter: "filterZeroPoint" }
        : filterDtype === "u8" || filterZeroPoint !== 0
        ? { filter: filterZeroPoint }
        : {}),
    },
  } as const satisfies IntegerSum;
  return async (check, operands) => {
    if (epilogue.scale === "channel" || filterZeroPoint === "channel") {
      await refuseValues(conv, await operands());
    }
    const shape = tensorShape(problem, resultTensor(problem.op));
    await admitSums({ shape, sums: convSums(conv) }, sum)(check, operands);
  };
}

/** The operands in the form the reference takes, bytes less their zero points. */
function inputsOf({ problem, integers, epilogue, ...layouts }: Conv, operands: HostOperands) {
  const data = integers === undefined ? operands : lessZeros(integers, operands);
  return referenceInputs(problem, data, layouts, epilogue);
}

/** Rounds sums of an output channel to bytes; nothing where results are sums. */
function quantizing(
  { outDtype, epilogue: { scale, zeroPoint = 0 } }: Conv,
  { scale: each }: HostOperands,
): ((sum: number, channel: number) => number) | undefined {
  if (scale === undefined) return undefined;
  const to = { dtype: outDtype === "u8" ? "u8" : "i8", zeroPoint } as const;
  const of = (channel: number) => typeof scale === "number" ? Math.fround(scale) : each![channel]!;
  return (sum, channel) => quantized(sum, of(channel), to);
}

function convReference(conv: Conv): SubjectReference {
  const { problem, epilogue } = conv;
  const { op, outChannels } = problem;
  const { activation, scale } = epilogue;
  const of = (operands: HostOperands, options: ReferenceOptions) => {
    const inputs = inputsOf(conv, operands);
    const all = { ...options, ...(op === "fwd" ? { epilogue } : {}) };
    return isBytes(conv)
      ? referenceIntegers(problem, inputs, all, quantizing(conv, operands))
      : referenceConv(problem, inputs, all);
  };
  return {
    of,
    compute: async (operands, onProgress) => {
      const fault = convFault(conv);
      // Plans are refused by themselves.
      if (fault !== undefined) throw new InputRangeError(`Cannot convolve: ${fault}`);
      await refuseValues(conv, operands);
      return (await of(operands, { onProgress })).values;
    },
    project: async (operands, seed) => {
      const { bias, ...others } = inputsOf(conv, operands);
      const inputs = {
        ...others,
        ...(epilogue.bias && bias !== undefined ? { bias } : {}),
        result: layoutOf(resultTensor(op), conv),
      };
      return isBytes(conv)
        ? projectConvIntegers(problem, inputs, seed)
        : await projectConv(problem, inputs, { seed });
    },
    ...(!isBytes(conv) || scale === undefined ? {} : {
      // Channels lie innermost.
      finish: (operands) => {
        const finish = quantizing(conv, operands)!;
        const operand = operandOf(activation, operands as ChannelTensors<ArrayLike<number>>);
        return (sum, at) => {
          const channel = at % outChannels;
          return finish(activate(activation, sum, operand(channel)), channel);
        };
      },
    }),
  };
}

/** Of results that are coarser than f32. */
const PRECISIONS: { readonly [dtype in ConvOutDType]?: Precision } = { f16: F16, bf16: BF16 };

function convTolerance(conv: Conv): SubjectTolerance {
  const { problem, layout, filterLayout, epilogue, outDtype } = conv;
  const { groups, filterSize, dilation } = problem;
  const backward = problem.op === "bwd-filter";
  const precision = (arithmetic: PlanArithmetic) =>
    arithmeticPrecision(isBytes(conv) ? I32 : PRECISIONS[outDtype] ?? F32, arithmetic);
  const tilesOf = ({ tiles: [share] = [] }: PlanArithmetic): ResultTiles | undefined =>
    share && {
      tile: share.axes.map(({ n }) => n),
      ...(backward ? {} : { apart: share.axes.map(({ n }, d) => n > 1 ? dilation[d]! : 1) }),
    };
  return {
    precision,
    // Rows of the product are channels; columns lie as the layout has them.
    grouping: (arithmetic): Grouping => ({
      rowAxis: channelAxis(conv),
      names: backward ? ["channel", "input channel"] : ["channel", "image"],
      otherInner: backward ? filterLayout === "krsc" : layout === "chwn",
      ...tilesOf(arithmetic) ?? { tile: filterSize.map(() => 1) },
    }),
    floors: (operands, arithmetic) =>
      isBytes(conv)
        ? undefined
        : convFloors({ problem, inputs: inputsOf(conv, operands), arithmetic }),
    yardstick: (operands, arithmetic, seed, floors) =>
      isBytes(conv) ? NO_ERRORS_YARDSTICK : convYardstick({
        inputs: inputsOf(conv, operands),
        ...{ problem, epilogue, arithmetic, floors, seed },
        precision: precision(arithmetic),
      }),
    noise: (sample, arithmetic) => projectionNoise(sample, precision(arithmetic)),
    // A filter's taps are one tile.
    mixed: (arithmetic) => {
      const tiles = tilesOf(arithmetic);
      return backward && tiles !== undefined ? { tile: filterSize } : tiles;
    },
    where: ([outer, group, ...at]) => {
      const of = groups === 1 ? "" : ` of group ${group}`;
      return backward
        ? `the projection over both channels${of} at [·,·,${at}]`
        : `the projection over channels${of} at [${outer},·,${at}]`;
    },
  };
}

/** In what an operand is. */
function operandDtype(
  dtype: ConvDType,
  which: ConvTensor,
  { inputDtype, filterDtype }: IntegerOperands,
): ConvOutDType {
  return (which === "input" ? inputDtype : filterDtype) ?? dtype;
}
