import { elementsTrait } from "../../elements/elements.ts";
import { canonicalName } from "../../kernels/kernel.ts";
import { type ModuleBuilder, moduleBuilder, type SizeMode } from "../../kernels/module.ts";
import { packedElements } from "../../kernels/pack_strided.ts";
import { operandTensors, resultTensor } from "../../problem/conv_problem.ts";
import type { Pass, Plan } from "../plan.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { packFilterPass, productPass } from "../conv_product.ts";
import { cutNote } from "../cut_note.ts";
import { cutPasses, cutTiles, type ProductPart } from "../cut_passes.ts";
import { problemBuffers, resultElements } from "../tensors.ts";
import { implicitProduct } from "./product.ts";
import { cutArithmetic } from "../cut.ts";
import { withHalfTile } from "../product_time.ts";

/** Plans implicit GEMM: the convolution as one product whose operands are gathered on the way. */
export function planImplicitGemm(asked: PlanRequest, mode: SizeMode): Planned<Plan> {
  const plain = implicitProduct(asked);
  if (isRefusal(plain)) return plain;
  const request = withHalfTile(asked, plain.product);
  const { problem, limits } = request;
  const chosen = request === asked ? plain : implicitProduct(request);
  if (isRefusal(chosen)) return chosen;
  const { operands, product: uncut, cut } = chosen;
  const elements = resultElements(problem);
  const { policy } = cut;
  const tensors = problemBuffers(request);
  const { buffers, tensor, bias, elements: types } = tensors;
  const result = tensor[resultTensor(problem.op)];
  const passes: Pass[] = [];

  const pack = operands.pack(policy);
  let aBuffer = tensor[operands.left];
  if (pack !== undefined) {
    aBuffer = buffers.add("packed filter", "workspace", packedElements(pack), types.storage);
    const places = { unpacked: tensor.filter, packed: aBuffer };
    passes.push(...packFilterPass(pack, mode, buffers, places, limits, types.storage));
  }

  const bBuffer = tensor[operandTensors(problem.op)[0]];
  const { columns } = operands;
  const rows = operands.loopRows?.(policy) ?? operands.rows;
  const depth = operands.depth(policy);
  const shape = {
    cut,
    rows,
    columns,
    target: { ...operands.result, buffer: result, element: types.result },
    classText: operands.uneven &&
      ((module: ModuleBuilder) => operands.uneven!(module, policy).text),
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
      (operands.classes === undefined
        ? `a product of ${rows} x ${columns} x ${depth}`
        : `stride classes: ${operands.classes}, ${columns} columns`) +
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
        uneven: operands.uneven?.(module, policy),
        a,
        b,
        places: {
          [operandTensors(problem.op)[0]]: bBuffer,
          [pack === undefined ? operands.left : "packed"]: aBuffer,
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
