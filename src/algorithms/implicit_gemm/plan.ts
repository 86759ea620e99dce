import { epilogueTrait, NO_STEPS } from "../../kernels/epilogue.ts";
import { mainLoopKernel, mainLoopWorkgroups } from "../../kernels/main_loop.ts";
import {
  type ModuleBuilder,
  moduleBuilder,
  type SizeMode,
  splitTrait,
} from "../../kernels/module.ts";
import { mappedOutput, outputVector } from "../../kernels/output.ts";
import { packedElements, packStridedKernel } from "../../kernels/pack_strided.ts";
import { policyTile } from "../../kernels/policy.ts";
import { operandTensors, resultTensor } from "../../problem/conv_problem.ts";
import type { Pass, Plan } from "../plan.ts";
import type { PlanRequest } from "../request.ts";
import { convEpilogue } from "../conv_epilogue.ts";
import { pass, reducePass } from "../passes.ts";
import { problemBuffers, reduceShape, resultElements } from "../tensors.ts";
import { type Operands, operandsOf } from "./operands.ts";
import { cutProduct } from "../cut.ts";

/** Plans implicit GEMM: the convolution as one product whose operands are gathered on the way. */
export function planImplicitGemm(request: PlanRequest, mode: SizeMode): Plan {
  const { problem, limits } = request;
  const operands = operandsOf(request);
  const elements = resultElements(problem);
  const { policy, splits } = cutProduct(request, {
    rows: operands.rows,
    columns: operands.columns,
    batches: problem.groups,
    steps: operands.steps,
    elements,
    workspaceBytes: (policy) => {
      const pack = operands.pack(policy);
      return pack === undefined ? 0 : 4 * packedElements(pack);
    },
    a: operands.a,
    b: operands.b,
  });
  const { buffers, tensor, bias } = problemBuffers(request);
  const result = tensor[resultTensor(problem.op)];
  const passes: Pass[] = [];

  const pack = operands.pack(policy);
  let aBuffer = tensor.output;
  if (pack !== undefined) {
    aBuffer = buffers.add("packed filter", "workspace", packedElements(pack));
    const kernel = packStridedKernel(
      pack,
      mode,
      buffers.split(tensor.filter),
      buffers.split(aBuffer),
    );
    const workgroups = Math.ceil(packedElements(pack) / 256);
    const places = { unpacked: tensor.filter, packed: aBuffer };
    if (workgroups > 0) passes.push(pass(kernel, buffers, places, workgroups, limits));
  }

  const bBuffer = tensor[operandTensors(problem.op)[0]];
  const target = splits > 1
    ? buffers.add("partial results", "workspace", splits * elements)
    : result;
  const epilogue = convEpilogue(request.epilogue);
  const module = moduleBuilder(mode);
  const split = { a: buffers.split(aBuffer), b: buffers.split(bBuffer) };
  const [a, b] = operands.loaders(module, policy, (operand) => split[operand]);
  const shape = {
    rows: operands.rows,
    columns: operands.columns,
    steps: operands.steps(policy),
    batches: problem.groups,
    splits,
  };
  const strides = operands.result;
  const vector = outputVector(
    { ...strides, base: [strides.group, splits > 1 ? elements : 0] },
    operands.rows,
    strides.period,
  );
  const width = vector === "none" ? 1 : 4;
  const out = module.tensor("result", "write", width, buffers.split(target));
  const steps = (splits > 1 ? NO_STEPS : epilogue)(
    module,
    width,
    (row) => `group * ${module.size("out_rows", operands.rows)} + ${row}`,
  );
  const output = mappedOutput(out, {
    ...outputMap(module, operands),
    base: `group * ${module.size("out_group", strides.group)}${
      splits > 1 ? ` + split * ${module.size("out_split", elements)}` : ""
    }`,
    vector,
  }, steps);
  const traits = `${operands.trait(policy)}_o${
    vector === "none" ? "1" : vector === "rows" ? "r4" : "c4"
  }${splits > 1 ? "_split" : ""}${epilogueTrait(steps)}${
    splitTrait(split.a, split.b, buffers.split(target))
  }`;
  const kernel = mainLoopKernel(
    `implicit_gemm_${problem.op.replace("-", "_")}_f32`,
    traits,
    mode,
    module,
    shape,
    policy,
    a,
    b,
    output,
  );
  const workgroups = mainLoopWorkgroups(shape, policy);
  const multiplications = workgroups / splits * policy.rows * policy.columns * shape.steps *
    policy.depth;
  const places = {
    packed: aBuffer,
    [operandTensors(problem.op)[0]]: bBuffer,
    ...(pack === undefined ? { output: aBuffer } : {}),
    result: target,
    bias,
  };
  passes.push(pass(kernel, buffers, places, workgroups, limits, multiplications));
  if (splits > 1) {
    const partials = { partials: target, result, bias };
    passes.push(
      reducePass(reduceShape(request, splits), mode, epilogue, buffers, partials, limits),
    );
  }
  return {
    kernel: kernel.kernel.name.replace(/\.[0-9a-f]{8}$/, ""),
    algorithm: "implicit-gemm",
    buffers: buffers.list,
    passes: elements === 0 ? [] : passes,
    workspaceBytes: buffers.workspaceBytes(),
    multiplications,
    notes: [
      `a product of ${operands.rows} x ${operands.columns} x ${shape.steps * policy.depth}` +
      (problem.groups > 1 ? ` for each of ${problem.groups} groups` : ""),
      `policy ${policy.name}: ${workgroups} workgroups of ${policyTile(policy)}, ` +
      `${splits === 1 ? "no split of the depth" : `the depth split in ${splits}`}`,
    ],
  };
}

function outputMap(module: ModuleBuilder, operands: Operands) {
  const { result } = operands;
  return {
    rows: module.size("out_rows", operands.rows),
    columns: module.size("out_columns", operands.columns),
    rowStride: module.size("out_row_stride", result.row),
    period: module.size("out_period", result.period),
    outerStride: module.size("out_outer_stride", result.outer),
    innerStride: module.size("out_inner_stride", result.inner),
  };
}
