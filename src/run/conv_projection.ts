/** Every output of a convolution is checked: its random projection is held against the reference's. */
import { F32 } from "../accuracy/mod.ts";
import {
  accumulationLength,
  type ConvProblem,
  resultTensor,
  tensorShape,
} from "../problem/conv_problem.ts";
import { projectConv } from "../reference/projection.ts";
import { referenceConv } from "../reference/reference.ts";
import { stridesInLayout } from "../tensor/layout.ts";
import { unravelIndex } from "../tensor/tensor.ts";
import {
  checkAgainst,
  type Checked,
  computeReference,
  convCoverage,
  convYardstickOf,
  type ReferenceRequest,
} from "./check.ts";
import { layoutOf, referenceInputs } from "./operands.ts";
import { projectionNoise } from "./projection_noise.ts";
import {
  checkProjected,
  type Outputs,
  type ProjectedResult,
  type ResultProjection,
  UNIT,
} from "./projected.ts";

/**
 * Projects the reference of a convolution; nothing where the check is to be whole or a sample.
 *
 * @throws as `projectConv()`.
 */
export async function convProjection(
  request: ReferenceRequest,
): Promise<ResultProjection | undefined> {
  if (convCoverage(request) !== "projected") return undefined;
  const start = performance.now();
  const { problem, operands, epilogue, seed } = request;
  const inputs = referenceInputs(problem, operands, request);
  const which = resultTensor(problem.op);
  const layout = layoutOf(which, request);
  const { bias, ...others } = inputs;
  const projection = await projectConv(problem, {
    ...others,
    ...(epilogue.bias && bias !== undefined ? { bias } : {}),
    result: layout,
  }, { seed });
  const linear = { problem, inputs, epilogue: { ...epilogue, activation: "none" as const }, seed };
  const referenceSeconds = (performance.now() - start) / 1000;
  const shape = tensorShape(problem, which);
  const strides = stridesInLayout(shape, layout);
  const length = accumulationLength(problem);
  const outputs: Outputs = {
    activation: epilogue.activation,
    stored: Math.fround,
    storedUnit: UNIT,
    length,
    offsetOf: (index) => offsetIn(index, shape, strides),
    where: (index) => convPlace(problem, index),
    reference: (indices) =>
      referenceConv(problem, inputs, {
        indices,
        ...(problem.op === "fwd" ? { epilogue: { ...epilogue, activation: "none" } } : {}),
      }),
    residual: () => 0,
  };
  return {
    check: (checked, projected) => {
      const { arithmetic } = projected;
      const yardstick = (epilogue.activation === "none" ? projected.yardstick : undefined) ??
        convYardstickOf(linear, arithmetic);
      const tile = arithmetic.tiles?.[0]?.axes.map(({ n }) => n);
      return checkProjected(checked, projected, projection, outputs, {
        noise: projectionNoise(yardstick.sample, F32),
        // A filter's taps are one tile.
        tile: problem.op === "bwd-filter" && tile !== undefined ? problem.filterSize : tile,
        referenceSeconds,
      });
    },
  };
}

/** Computes the reference of a convolution, projects it where that pays, and checks a result. */
export async function checkConvResult(
  request: Omit<ReferenceRequest, "linear"> & ProjectedResult & { readonly result: Float32Array },
): Promise<Checked> {
  const { result, linear, arithmetic, readSeconds } = request;
  const asked = {
    ...request,
    linear: request.epilogue.activation === "none" || linear !== undefined,
  };
  const reference = await computeReference(asked);
  const checked = checkAgainst(reference, result, arithmetic);
  const projection = await convProjection(asked);
  const yardstick = convYardstickOf(reference, arithmetic);
  const made = { result, linear, arithmetic, yardstick, readSeconds };
  return await projection?.check(checked, made) ?? checked;
}

function offsetIn(index: number, shape: readonly number[], strides: readonly number[]): number {
  return unravelIndex(index, shape).reduce((sum, at, axis) => sum + at * strides[axis]!, 0);
}

/** Which sums of a convolution's result a place's are. */
function convPlace(problem: ConvProblem, [outer, group, ...at]: readonly number[]): string {
  const { groups, op } = problem;
  const of = groups === 1 ? "" : ` of group ${group}`;
  return op === "bwd-filter"
    ? `the projection over both channels${of} at [·,·,${at}]`
    : `the projection over channels${of} at [${outer},·,${at}]`;
}
