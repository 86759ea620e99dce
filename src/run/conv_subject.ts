import type { Grouping } from "../accuracy/groups.ts";
import { arithmeticPrecision, F16, F32, I32 } from "../accuracy/precision.ts";
import { NO_ERRORS_YARDSTICK } from "../accuracy/yardstick.ts";
import { supportedAlgorithms, tryPlanConv } from "../algorithms/planner.ts";
import { winrsRivals } from "../algorithms/winrs/price.ts";
import { elementFeatures } from "../elements/elements.ts";
import { InputRangeError, InputTypeError } from "../errors.ts";
import { convElementsFault } from "../problem/conv_elements.ts";
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
import { isScale, NO_EPILOGUE, SCALE_RANGE } from "../problem/epilogue.ts";
import {
  BYTE_RANGE,
  type ByteDType,
  type IntegerOperands,
  integersText,
  isZeroPoint,
} from "../problem/integer_operands.ts";
import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";
import type { ResultTiles } from "../problem/result_tiles.ts";
import { activate } from "../reference/activate.ts";
import {
  lessZero,
  projectConvIntegers,
  quantized,
  referenceIntegers,
} from "../reference/integers.ts";
import type { HostOperand } from "../reference/operands.ts";
import { projectConv } from "../reference/projection.ts";
import { referenceConv, type ReferenceInputs } from "../reference/reference.ts";
import { convFloors } from "../simulate/conv_floors.ts";
import { convYardstick } from "../simulate/conv_yardstick.ts";
import { type FilterLayout, type Layout, layoutAxes, shapeInLayout } from "../tensor/layout.ts";
import { sampleCount } from "./coverage.ts";
import { admitSums, type IntegerSum } from "./integer_overflow.ts";
import { projectionNoise } from "./projection_noise.ts";
import type {
  ConvAsked,
  HostOperands,
  Layouts,
  OperandData,
  Planning,
  PlanOperands,
  ReferenceOptions,
  Subject,
  SubjectTensor,
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
  given: ConvAsked,
): Subject {
  const { problem, layout, filterLayout, epilogue = NO_EPILOGUE, dtype = "f32", ...asked } = given;
  const { outDtype = resultDtypes(dtype)[0], integers: bytes = {} } = asked;
  const { op, groups, filterSize } = problem;
  const layouts = { layout, filterLayout };
  const elements = { dtype, outDtype, integers: asked.integers };
  const elementsFault = convElementsFault({ problem, ...elements, ...layouts, epilogue });
  const integers = dtype === "i8";
  const precision = (arithmetic: PlanArithmetic) =>
    arithmeticPrecision(integers ? I32 : outDtype === "f16" ? F16 : F32, arithmetic);
  const { activation, scale, zeroPoint = 0 } = epilogue;
  const backward = op === "bwd-filter";
  const which = resultTensor(op);
  const shape = tensorShape(problem, which);
  const length = accumulationLength(problem);
  const channelAxis = backward ? 0 : 1;
  const [C, K] = [problem.inChannels / groups, problem.outChannels / groups];
  const inputsOf = (operands: HostOperands) =>
    referenceInputs(
      problem,
      asked.integers === undefined ? operands : lessZeros(bytes, operands),
      layouts,
    );
  const following = op === "fwd" ? { epilogue } : {};
  const request = (planning: Planning) => ({
    algorithm: "auto",
    ...planning,
    problem,
    ...elements,
    layout,
    filterLayout,
    epilogue,
  } as const);
  const to = { dtype: outDtype === "u8" ? "u8" : "i8", zeroPoint } as const;
  const quantizing = ({ scale: each }: HostOperands) =>
    scale === undefined
      ? undefined
      : (sum: number, channel: number) =>
        quantized(sum, typeof scale === "number" ? Math.fround(scale) : each![channel]!, to);
  const reference = (operands: HostOperands, options: ReferenceOptions) => {
    const inputs = inputsOf(operands);
    const all = { ...options, ...following };
    return integers
      ? referenceIntegers(problem, inputs, all, quantizing(operands))
      : referenceConv(problem, inputs, all);
  };
  const tilesOf = ({ tiles: [share] = [] }: PlanArithmetic): ResultTiles | undefined =>
    share && { tile: share.axes.map(({ n }) => n) };
  const said = [
    integersText(bytes),
    scale === undefined ? undefined : scale === "channel" ? "scales" : `scale ${scale}`,
    zeroPoint === 0 ? undefined : `zero point ${zeroPoint}`,
  ].filter((one) => one !== undefined).join(", ");
  const subject: Subject = {
    asked: { conv: given },
    traits: {
      problem: printDescriptor(problem),
      op,
      flops: directFlops(problem),
      dtype,
      ...(outDtype === resultDtypes(dtype)[0] ? {} : { outDtype }),
      layout,
      filterLayout,
      ...(said === "" ? {} : { epilogue: said }),
    },
    title: `${problem.name || printDescriptor(problem)} ${op}`,
    features: elementFeatures({ dtype, outDtype }),
    operands: [
      ...operandTensors(op).map((operand) =>
        convTensor(problem, operand, layouts, operandDtype(dtype, operand, bytes))
      ),
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
      ...(bytes.filterZeroPoint === "channel"
        ? [{ role: "filterZeroPoint", dtype: "i32", shape: [problem.outChannels] } as const]
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
        ...elements,
        ...(integers ? { outDtype: undefined } : {}),
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
      await refuseValues(operands);
      return (await reference(operands, { onProgress })).values;
    },
    precision,
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
      return convYardstick({
        ...{ problem, inputs, epilogue, arithmetic, floors, seed },
        precision: precision(arithmetic),
      });
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
  if (!integers) return subject;
  const sum = {
    doing: "Cannot convolve",
    length,
    operands: operandTensors(op),
    added: epilogue.bias ? [["bias", 1]] : [],
    zeroPoints: {
      ...(bytes.inputDtype === "u8" || bytes.inputZeroPoint
        ? { input: bytes.inputZeroPoint ?? 0 }
        : {}),
      ...(bytes.filterZeroPoint === "channel"
        ? { filter: "filterZeroPoint" }
        : bytes.filterDtype === "u8" || bytes.filterZeroPoint
        ? { filter: bytes.filterZeroPoint ?? 0 }
        : {}),
    },
  } as const satisfies IntegerSum;
  return {
    ...subject,
    ...(scale === undefined ? {} : {
      // Channels lie innermost.
      finish: (operands) => {
        const finish = quantizing(operands)!;
        return (sum, at) => finish(activate(activation, sum), at % problem.outChannels);
      },
    }),
    admit: async (check, operands) => {
      if (scale === "channel" || bytes.filterZeroPoint === "channel") {
        await refuseValues(await operands());
      }
      await admitSums(subject, sum)(check, operands);
    },
  };

  /** Refuses values of output channels that are none. */
  async function refuseValues(operands: PlanOperands): Promise<void> {
    if (scale === "channel") await refuseScales(operands.scale!);
    if (bytes.filterZeroPoint === "channel") {
      await refuseZeroPoints(operands.filterZeroPoint!, bytes.filterDtype ?? "i8");
    }
  }
}

/** In what an operand is. */
function operandDtype(
  dtype: ConvDType,
  which: ConvTensor,
  { inputDtype, filterDtype }: IntegerOperands,
): ConvOutDType {
  return (which === "input" ? inputDtype : filterDtype) ?? dtype;
}

/** Operands of bytes less their zero points. */
function lessZeros(
  { inputZeroPoint = 0, filterZeroPoint = 0 }: IntegerOperands,
  operands: HostOperands,
): HostOperands {
  const { input, filter, filterZeroPoint: each } = operands;
  const zeros = filterZeroPoint === "channel" ? each as Int32Array : filterZeroPoint;
  return {
    ...operands,
    ...(input && { input: lessZero(input as Int8Array, inputZeroPoint) }),
    ...(filter && { filter: lessZero(filter as Int8Array, zeros) }),
  } as HostOperands;
}

/** @throws {RangeError} where a zero point of a filter is none. */
async function refuseZeroPoints(values: OperandData, dtype: ByteDType): Promise<void> {
  for await (const some of typeof values === "function" ? values() : [values]) {
    const wrong = (some as Int32Array).find((value) => !isZeroPoint(dtype, value));
    if (wrong === undefined) continue;
    throw new InputRangeError(
      `Cannot convolve: zero point ${wrong} of a filter is no whole number from ${
        BYTE_RANGE[dtype].join(" to ")
      }, which ${dtype} holds`,
    );
  }
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
