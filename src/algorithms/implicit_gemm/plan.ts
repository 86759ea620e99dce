import { NO_STEPS } from "../../kernels/epilogue.ts";
import { mainLoopWorkgroups, variantPolicy } from "../../kernels/main_loop.ts";
import { moduleBuilder, type SizeMode } from "../../kernels/module.ts";
import { packedElements } from "../../kernels/pack_strided.ts";
import { policyTile } from "../../kernels/policy.ts";
import { operandTensors, resultTensor } from "../../problem/conv_problem.ts";
import type { Pass, Plan } from "../plan.ts";
import type { PlanRequest } from "../request.ts";
import { convEpilogue } from "../conv_epilogue.ts";
import { packPass, productPass } from "../conv_product.ts";
import { reducePass } from "../passes.ts";
import { problemBuffers, reduceShape, resultElements } from "../tensors.ts";
import { type Operands, operandsOf } from "./operands.ts";
import { cutProduct, type Product } from "../cut.ts";

/** The product of a request's operands, before it is cut. */
export function productOf(request: PlanRequest, operands: Operands): Product {
  return {
    rows: operands.rows,
    columns: operands.columns,
    batches: request.problem.groups,
    steps: operands.steps,
    elements: resultElements(request.problem),
    workspaceBytes: (policy) => {
      const pack = operands.pack(policy);
      return pack === undefined ? 0 : 4 * packedElements(pack);
    },
    a: operands.a,
    b: operands.b,
  };
}

/** Plans implicit GEMM: the convolution as one product whose operands are gathered on the way. */
export function planImplicitGemm(request: PlanRequest, mode: SizeMode): Plan {
  const { problem, limits } = request;
  const operands = operandsOf(request);
  const elements = resultElements(problem);
  const cut = cutProduct(request, productOf(request, operands));
  const { splits } = cut;
  const policy = variantPolicy(cut.policy, request.variant);
  const { buffers, tensor, bias } = problemBuffers(request);
  const result = tensor[resultTensor(problem.op)];
  const passes: Pass[] = [];

  const pack = operands.pack(policy);
  let aBuffer = tensor.output;
  if (pack !== undefined) {
    aBuffer = buffers.add("packed filter", "workspace", packedElements(pack));
    const places = { unpacked: tensor.filter, packed: aBuffer };
    passes.push(...packPass(pack, mode, buffers, places, limits));
  }

  const bBuffer = tensor[operandTensors(problem.op)[0]];
  const target = splits > 1
    ? buffers.add("partial results", "workspace", splits * elements)
    : result;
  const epilogue = convEpilogue(request.epilogue);
  const module = moduleBuilder(mode);
  const split = { a: buffers.split(aBuffer), b: buffers.split(bBuffer) };
  const [a, b] = operands.loaders(module, policy, (operand) => split[operand]);
  const steps = operands.steps(policy);
  const main = productPass(
    {
      name: `implicit_gemm_${problem.op.replace("-", "_")}_f32`,
      trait: operands.trait(policy),
      mode,
      module,
      policy,
      variant: request.variant,
      rows: operands.rows,
      columns: operands.columns,
      steps,
      batches: problem.groups,
      splits,
      a,
      b,
      places: {
        packed: aBuffer,
        [operandTensors(problem.op)[0]]: bBuffer,
        ...(pack === undefined ? { output: aBuffer } : {}),
        bias,
      },
      operands: [aBuffer, bBuffer],
      target: {
        ...operands.result,
        buffer: target,
        ...(splits > 1 ? { split: elements } : {}),
      },
      epilogue: splits > 1 ? NO_STEPS : epilogue,
    },
    buffers,
    limits,
  );
  passes.push(main);
  if (splits > 1) {
    const partials = { partials: target, result, bias };
    passes.push(
      reducePass(reduceShape(request, splits), mode, epilogue, buffers, partials, limits),
    );
  }
  const shape = { rows: operands.rows, columns: operands.columns, steps, batches: problem.groups };
  const workgroups = mainLoopWorkgroups({ ...shape, splits }, policy);
  return {
    kernel: main.kernel.name.replace(/\.[0-9a-f]{8}$/, ""),
    algorithm: "implicit-gemm",
    buffers: buffers.list,
    passes: elements === 0 ? [] : passes,
    workspaceBytes: buffers.workspaceBytes(),
    multiplications: main.multiplications,
    notes: [
      `a product of ${operands.rows} x ${operands.columns} x ${steps * policy.depth}` +
      (problem.groups > 1 ? ` for each of ${problem.groups} groups` : ""),
      `policy ${policy.name}: ${workgroups} workgroups of ${policyTile(policy)}, ` +
      `${splits === 1 ? "no split of the depth" : `the depth split in ${splits}`}`,
    ],
  };
}
