import { F16, F32, type Grouping } from "../accuracy/mod.ts";
import { supportedAlgorithms, tryPlanConv } from "../algorithms/planner.ts";
import { elementFeatures } from "../elements/elements.ts";
import { InputTypeError } from "../errors.ts";
import {
  accumulationLength,
  type ConvDType,
  type ConvProblem,
  type ConvTensor,
  directFlops,
  operandTensors,
  resultTensor,
  tensorShape,
} from "../problem/conv_problem.ts";
import { printDescriptor } from "../problem/descriptor.ts";
import { type Epilogue, NO_EPILOGUE } from "../problem/epilogue.ts";
import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";
import { projectConv } from "../reference/projection.ts";
import { type HostOperand, referenceConv, type ReferenceInputs } from "../reference/reference.ts";
import { convYardstick } from "../simulate/conv_yardstick.ts";
import { type FilterLayout, type Layout, layoutAxes, shapeInLayout } from "../tensor/layout.ts";
import { sampleCount } from "./coverage.ts";
import { projectionNoise } from "./projection_noise.ts";
import type { HostOperands, Planning, Subject, SubjectTensor } from "./subject.ts";

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
  /** Of the result and the bias; the operands' where absent. */
  readonly outDtype?: ConvDType | undefined;
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
  dtype: ConvDType,
): SubjectTensor<ConvDType> {
  const shape = shapeInLayout(tensorShape(problem, which), layoutOf(which, layouts));
  return { role: which, dtype, shape };
}

/** What a convolution's plan leaves. */
export function convResult<D extends ConvDType = "f32">(
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
  { problem, layout, filterLayout, epilogue = NO_EPILOGUE, dtype = "f32", outDtype = dtype }:
    ConvAsked,
): Subject {
  const { op, groups, filterSize } = problem;
  const layouts = { layout, filterLayout };
  const precision = outDtype === "f16" ? F16 : F32;
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
  const tileOf = ({ tiles }: PlanArithmetic) => tiles?.[0]?.axes.map(({ n }) => n);
  return {
    traits: {
      problem: printDescriptor(problem),
      op,
      flops: directFlops(problem),
      dtype,
      ...(outDtype === dtype ? {} : { outDtype }),
      layout,
      filterLayout,
    },
    title: `${problem.name ?? ""} ${op}`.trim(),
    features: elementFeatures({ dtype, outDtype }),
    operands: [
      ...operandTensors(op).map((operand) => convTensor(problem, operand, layouts, dtype)),
      ...(epilogue.bias
        ? [{ role: "bias", dtype: outDtype, shape: [problem.outChannels] } as const]
        : []),
    ],
    result: convResult(problem, layouts, outDtype),
    shape,
    axes: layoutAxes(layoutOf(which, layouts), filterSize.length),
    activation: epilogue.activation,
    ...(epilogue.activation === "none" ? {} : {
      linear: convSubject({
        problem,
        ...layouts,
        epilogue: { ...epilogue, activation: "none" },
        dtype,
        outDtype,
      }),
    }),
    length,
    members: op === "fwd" ? K : op === "bwd-data" ? C : C * K,
    sumCost: 1,
    sample: sampleCount(shape[channelAxis]!, length),
    strata: { channelAxis, run: op === "bwd-data" ? C : K, inner: layout === "chwn" },
    exact: false,
    plan: (planning) => tryPlanConv(request(planning)),
    unsupported: (planning) =>
      supportedAlgorithms(request(planning))
        .find(({ name }) => name === planning.algorithm)?.reason,
    reference: (operands, options) =>
      referenceConv(problem, inputsOf(operands), { ...options, ...following }),
    compute: async (operands, onProgress) =>
      (await referenceConv(problem, inputsOf(operands), { ...following, onProgress })).values,
    precision: () => precision,
    // Rows of the product are channels; columns lie as the layout has them.
    grouping: (arithmetic): Grouping => ({
      rowAxis: channelAxis,
      names: backward ? ["channel", "input channel"] : ["channel", "image"],
      otherInner: backward ? filterLayout === "krsc" : layout === "chwn",
      tile: tileOf(arithmetic) ?? filterSize.map(() => 1),
    }),
    yardstick: (operands, arithmetic, seed) => {
      const inputs = inputsOf(operands);
      return convYardstick({ problem, inputs, epilogue, arithmetic, precision, seed });
    },
    project: (operands, seed) => {
      const { bias, ...others } = inputsOf(operands);
      return projectConv(problem, {
        ...others,
        ...(epilogue.bias && bias !== undefined ? { bias } : {}),
        result: layoutOf(which, layouts),
      }, { seed });
    },
    noise: (sample) => projectionNoise(sample, precision),
    // A filter's taps are one tile.
    mixed: (arithmetic) => {
      const tile = tileOf(arithmetic);
      return backward && tile !== undefined ? filterSize : tile;
    },
    where: ([outer, group, ...at]) => {
      const of = groups === 1 ? "" : ` of group ${group}`;
      return backward
        ? `the projection over both channels${of} at [·,·,${at}]`
        : `the projection over channels${of} at [${outer},·,${at}]`;
    },
  };
}
