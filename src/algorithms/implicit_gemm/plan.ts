import { elementsTrait } from "../../elements/elements.ts";
import { canonicalName } from "../../kernels/kernel.ts";
import { moduleBuilder, type SizeMode } from "../../kernels/module.ts";
import { packedElements } from "../../kernels/pack_strided.ts";
import { operandTensors, resultTensor } from "../../problem/conv_problem.ts";
import type { Pass, Plan } from "../plan.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { packFilterPass, productPass } from "../conv_product.ts";
import { cutNote } from "../cut_note.ts";
import { cutPasses, cutTiles, type ProductPart, streamsOf } from "../cut_passes.ts";
import { operandBytes, problemBuffers, resultElements } from "../tensors.ts";
import { type Operands, operandsOf } from "./operands.ts";
import { cutArithmetic, cutProduct } from "../cut.ts";
import type { Product } from "../product.ts";
import { withHalfTile } from "../product_time.ts";

/** The product of a request's operands, before it is cut. */
export function productOf(request: PlanRequest, operands: Operands): Product {
  return {
    rows: operands.rows,
    columns: operands.columns,
    batches: request.problem.groups,
    steps: (policy) => Math.ceil(operands.depth(policy) / policy.depth),
    elements: resultElements(request.problem),
    workspaceBytes: (policy) => {
      const pack = operands.pack(policy);
      return pack === undefined ? 0 : operandBytes(request) * packedElements(pack);
    },
    streams: streamsOf(request),
    a: operands.a,
    b: operands.b,
  };
}

/** Plans implicit GEMM: the convolution as one product whose operands are gathered on the way. */
export function planImplicitGemm(asked: PlanRequest, mode: SizeMode): Planned<Plan> {
  const request = withHalfTile(asked, productOf(asked, operandsOf(asked)));
  const { problem, limits } = request;
  const operands = operandsOf(request);
  const elements = resultElements(problem);
  const uncut = productOf(request, operands);
  const cut = cutProduct(request, uncut);
  if (isRefusal(cut)) return cut;
  const { policy } = cut;
  const tensors = problemBuffers(request);
  const { buffers, tensor, bias, elements: types } = tensors;
  const result = tensor[resultTensor(problem.op)];
  const passes: Pass[] = [];

  const pack = operands.pack(policy);
  let aBuffer = tensor.output;
  if (pack !== undefined) {
    aBuffer = buffers.add("packed filter", "workspace", packedElements(pack), types.storage);
    const places = { unpacked: tensor.filter, packed: aBuffer };
    passes.push(...packFilterPass(pack, mode, buffers, places, limits, types.storage));
  }

  const bBuffer = tensor[operandTensors(problem.op)[0]];
  const { rows, columns } = operands;
  const depth = operands.depth(policy);
  const shape = {
    cut,
    rows,
    columns,
    target: { ...operands.result, buffer: result, element: types.result },
  };
  const { products, sums } = cutPasses(request, mode, shape, tensors, product);
  passes.push(...products, ...sums);
  return buffers.plan({
    kernel: canonicalName(products[0]!.kernel),
    algorithm: "implicit-gemm",
    passes: elements === 0 ? [] : passes,
    multiplications: products.reduce((sum, one) => sum + one.multiplications, 0),
    arithmetic: cutArithmetic(cut, uncut.steps(policy)),
    notes: [
      `a product of ${rows} x ${columns} x ${depth}` +
      (problem.groups > 1 ? ` for each of ${problem.groups} groups` : ""),
      cutNote(cut, cutTiles(shape, problem.groups)),
    ],
  });

  function product(part: ProductPart): Pass {
    const module = moduleBuilder(mode);
    const split = { a: buffers.split(aBuffer), b: buffers.split(bBuffer) };
    const [a, b] = operands.loaders(module, policy, (operand) => split[operand]);
    return productPass(
      {
        name: `implicit_gemm_${problem.op.replace("-", "_")}_${elementsTrait(types)}`,
        accumulate: types.accumulate,
        trait: operands.trait(policy),
        mode,
        module,
        policy,
        variant: request.variant,
        depth,
        a,
        b,
        places: {
          packed: aBuffer,
          [operandTensors(problem.op)[0]]: bBuffer,
          ...(pack === undefined ? { output: aBuffer } : {}),
          bias,
        },
        operands: [aBuffer, bBuffer],
        ...part,
      },
      buffers,
      limits,
    );
  }
}
