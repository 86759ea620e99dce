import {
  F16,
  F32,
  type Grouping,
  I32,
  NO_ERRORS_YARDSTICK,
  storedInQuads,
} from "../accuracy/mod.ts";
import { supportedAlgorithms, tryPlanConv } from "../algorithms/planner.ts";
import { winrsRivals } from "../algorithms/winrs/rivals.ts";
import { elementFeatures } from "../elements/elements.ts";
import { InputRangeError, InputTypeError } from "../errors.ts";
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
import { convElementsFault } from "../problem/conv_elements.ts";
import { printDescriptor } from "../problem/descriptor.ts";
import { type Epilogue, isScale, NO_EPILOGUE, SCALE_RANGE } from "../problem/epilogue.ts";
import { type PlanArithmetic, quadsOf } from "../problem/plan_arithmetic.ts";
import type { ResultTiles } from "../problem/result_tiles.ts";
import { projectConv } from "../reference/projection.ts";
import { projectConvIntegers, quantized, referenceIntegers } from "../reference/integers.ts";
import {
  activate,
  type HostOperand,
  referenceConv,
  type ReferenceInputs,
} from "../reference/reference.ts";
import { convFloors } from "../simulate/conv_floors.ts";
import { convYardstick } from "../simulate/conv_yardstick.ts";
import { type FilterLayout, type Layout, layoutAxes, shapeInLayout } from "../tensor/layout.ts";
import { sampleCount } from "./coverage.ts";
import { admitSums, type IntegerSum } from "./integer_overflow.ts";
import { projectionNoise } from "./projection_noise.ts";
import type {
  HostOperands,
  OperandData,
  Planning,
  ReferenceOptions,
  Subject,
  SubjectTensor,
} from "./subject.ts";

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
}

/** The layout of one of the problem's tensors. */
function layoutOf(which: ConvTensor, layouts: Layouts): Layout | FilterLayout {
  return which === "filter" ? layouts.filterLayout : layouts.layout;
}

/** One of the problem's tensors as it lies in memory. */
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
): ReferenceInputs {
  const inputs = Object.fromEntries(
    operandTensors(problem.op).map((which) => {
      const data = operands[which] as HostOperand["data"] | undefined;
      if (!data) throw new InputTypeError(`Cannot compute the reference: ${which} is missing`);
      return [which, { data, layout: layoutOf(which, layouts) }];
    }),
  );
  const bias = operands.bias as ReferenceInputs["bias"];
  return { ...inputs, ...(bias === undefined ? {} : { bias }) };
}

/** A convolution or gradient as what a run computes. */
export function convSubject(
  { problem, layout, filterLayout, epilogue = NO_EPILOGUE, dtype = "f32", ...asked }: ConvAsked,
): Subject {
  const { outDtype = resultDtypes(dtype)[0] } = asked;
  const { op, groups, filterSize } = problem;
  const layouts = { layout, filterLayout };
  const elementsFault = convElementsFault({ problem, dtype, outDtype, ...layouts, epilogue });
  const integers = dtype === "i8";
  const stored = integers ? I32 : outDtype === "f16" ? F16 : F32;
  const precisionOf = (arithmetic: PlanArithmetic) =>
    quadsOf(arithmetic) ? storedInQuads(stored) : stored;
  const { activation, scale } = epilogue;
  const backward = op === "bwd-filter";
  const which = resultTensor(op);
  const shape = tensorShape(problem, which);
  const length = accumulationLength(problem);
  const channelAxis = backward ? 0 : 1;
  const [C, K] = [problem.inChannels / groups, problem.outChannels / groups];
  const inputsOf = (operands: HostOperands) => referenceInputs(problem, operands, layouts);
  const following = op === "fwd" ? { epilogue } : {};
  const request = (planning: Planning) => ({
    algorithm: "auto",
    ...planning,
    problem,
    dtype,
    outDtype,
    layout,
    filterLayout,
    epilogue,
  } as const);
  const scaleOf = ({ scale: each }: HostOperands) =>
    scale === undefined
      ? undefined
      : (channel: number) => typeof scale === "number" ? Math.fround(scale) : each![channel]!;
  const reference = (operands: HostOperands, options: ReferenceOptions) => {
    const inputs = inputsOf(operands);
    const all = { ...options, ...following };
    return integers
      ? referenceIntegers(problem, inputs, all, scaleOf(operands))
      : referenceConv(problem, inputs, all);
  };
  const tilesOf = ({ tiles: [share] = [] }: PlanArithmetic): ResultTiles | undefined =>
    share && { tile: share.axes.map(({ n }) => n), pitch: share.pitch };
  const subject: Subject = {
    traits: {
      problem: printDescriptor(problem),
      op,
      flops: directFlops(problem),
      dtype,
      ...(outDtype === resultDtypes(dtype)[0] ? {} : { outDtype }),
      layout,
      filterLayout,
      ...(scale === undefined
        ? {}
        : { epilogue: scale === "channel" ? "scales" : `scale ${scale}` }),
    },
    title: `${problem.name || printDescriptor(problem)} ${op}`,
    features: elementFeatures({ dtype, outDtype }),
    operands: [
      ...operandTensors(op).map((operand) => convTensor(problem, operand, layouts, dtype)),
      ...(epilogue.bias
        ? [
          {
            role: "bias",
            dtype: biasDtype(dtype, outDtype),
            shape: [problem.outChannels],
          } as const,
        ]
        : []),
      ...(scale === "channel"
        ? [{ role: "scale", dtype: "f32", shape: [problem.outChannels] } as const]
        : []),
    ],
    result: convResult(problem, layouts, outDtype),
    shape,
    axes: layoutAxes(layoutOf(which, layouts), filterSize.length),
    activation,
    ...(activation === "none" && scale === undefined ? {} : {
      linear: convSubject({
        problem,
        ...layouts,
        epilogue: { bias: epilogue.bias, activation: "none" },
        dtype,
        ...(integers ? {} : { outDtype }),
      }),
    }),
    length,
    members: op === "fwd" ? K : op === "bwd-data" ? C : C * K,
    sumCost: 1,
    sample: sampleCount(shape[channelAxis]!, length),
    strata: { channelAxis, run: op === "bwd-data" ? C : K, inner: layout === "chwn" },
    exact: integers,
    plan: (planning) => tryPlanConv(request(planning)),
    winrsRivals: (planning) =>
      elementsFault === undefined && !integers ? winrsRivals(request(planning)) : [],
    // Of lists of types, layouts and operations not all go together.
    unsupported: (planning) =>
      elementsFault ??
        supportedAlgorithms(request(planning))
          .find(({ name }) => name === planning.algorithm)?.reason,
    reference,
    compute: async (operands, onProgress) => {
      // Plans are refused by themselves.
      if (elementsFault !== undefined) {
        throw new InputRangeError(`Cannot convolve: ${elementsFault}`);
      }
      if (scale === "channel") await refuseScales(operands.scale!);
      return (await reference(operands, { onProgress })).values;
    },
    precision: precisionOf,
    // Rows of the product are channels; columns lie as the layout has them.
    grouping: (arithmetic): Grouping => ({
      rowAxis: channelAxis,
      names: backward ? ["channel", "input channel"] : ["channel", "image"],
      otherInner: backward ? filterLayout === "krsc" : layout === "chwn",
      ...tilesOf(arithmetic) ?? { tile: filterSize.map(() => 1) },
    }),
    floors: (operands, arithmetic) =>
      integers ? undefined : convFloors({ problem, inputs: inputsOf(operands), arithmetic }),
    yardstick: (operands, arithmetic, seed, floors) => {
      if (integers) return NO_ERRORS_YARDSTICK;
      const inputs = inputsOf(operands);
      const precision = precisionOf(arithmetic);
      return convYardstick({ problem, inputs, epilogue, arithmetic, precision, floors, seed });
    },
    project: async (operands, seed) => {
      const { bias, ...others } = inputsOf(operands);
      const inputs = {
        ...others,
        ...(epilogue.bias && bias !== undefined ? { bias } : {}),
        result: layoutOf(which, layouts),
      };
      return integers
        ? projectConvIntegers(problem, inputs, seed)
        : await projectConv(problem, inputs, { seed });
    },
    noise: (sample) => projectionNoise(sample, stored),
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
  if (!integers) return subject;
  const sum = {
    doing: "Cannot convolve",
    length,
    operands: operandTensors(op),
    added: epilogue.bias ? [["bias", 1]] : [],
  } as const satisfies IntegerSum;
  return {
    ...subject,
    ...(scale === undefined ? {} : {
      // Channels lie innermost.
      finish: (operands) => {
        const own = scaleOf(operands)!;
        return (sum, at) => quantized(activate(activation, sum), own(at % problem.outChannels));
      },
    }),
    admit: async (check, operands) => {
      if (scale === "channel") await refuseScales((await operands()).scale!);
      await admitSums(subject, sum)(check, operands);
    },
  };
}

/** @throws {RangeError} where a scale of an output channel is none. */
async function refuseScales(scales: OperandData): Promise<void> {
  for await (const some of typeof scales === "function" ? scales() : [scales]) {
    for (const scale of some as Float32Array) {
      if (!isScale(scale)) {
        throw new InputRangeError(
          `Cannot convolve: scale ${scale} is no number from ${SCALE_RANGE}`,
        );
      }
    }
  }
}
