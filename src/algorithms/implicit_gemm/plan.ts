import { NO_STEPS } from "../../kernels/epilogue.ts";
import { mainLoopWorkgroups, variantPolicy } from "../../kernels/main_loop.ts";
import { fullVariant } from "../../kernels/main_loop_variant.ts";
import { moduleBuilder, type SizeMode } from "../../kernels/module.ts";
import { packedElements } from "../../kernels/pack_strided.ts";
import { partialElements } from "../../kernels/tile_partials.ts";
import { operandTensors, resultTensor } from "../../problem/conv_problem.ts";
import type { Pass, Plan } from "../plan.ts";
import type { PlanRequest } from "../request.ts";
import { convEpilogue } from "../conv_epilogue.ts";
import { type ConvProduct, packPass, productPass, targetVector } from "../conv_product.ts";
import { cutNote } from "../cut_note.ts";
import { reducePass, reduceTilesPass } from "../passes.ts";
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
    // Without a micro kernel the tiles are not the policy's.
    streams: fullVariant(request.variant).microKernel && resultElements(request.problem) > 0,
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
  const { splits, head } = cut;
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
  const steps = operands.steps(policy);
  const { rows, columns } = operands;
  const shape = { rows, columns, steps, batches: problem.groups };
  const tiles = mainLoopWorkgroups({ ...shape, splits: 1 }, policy);
  const tail = head === undefined ? undefined : {
    policy,
    range: { first: head, count: tiles - head },
    splits,
    rows,
    columns,
    strides: operands.result,
    vector: targetVector(operands.result, rows, request.variant),
  };
  const partials = splits === 1 ? undefined : buffers.add(
    "partial results",
    "workspace",
    tail === undefined ? splits * elements : partialElements(tail),
  );
  const epilogue = convEpilogue(request.epilogue);
  const products = tail === undefined ? [product(splits)] : [
    ...(head === 0 ? [] : [product(1, { range: { first: 0, count: head! } })]),
    product(splits, { range: tail.range, partials: tail }),
  ];
  passes.push(...products);
  if (partials !== undefined) {
    const places = { partials, result, bias };
    passes.push(
      tail === undefined
        ? reducePass(reduceShape(request, splits), mode, epilogue, buffers, places, limits)
        : reduceTilesPass(
          tail,
          mode,
          epilogue,
          buffers,
          places,
          limits,
          "f32",
          (module, row) => `group * ${module.size("rows", rows)} + ${row}`,
        ),
    );
  }
  return {
    kernel: products[0]!.kernel.name.replace(/\.[0-9a-f]{8}$/, ""),
    algorithm: "implicit-gemm",
    buffers: buffers.list,
    passes: elements === 0 ? [] : passes,
    workspaceBytes: buffers.workspaceBytes(),
    multiplications: products.reduce((sum, one) => sum + one.multiplications, 0),
    notes: [
      `a product of ${rows} x ${columns} x ${steps * policy.depth}` +
      (problem.groups > 1 ? ` for each of ${problem.groups} groups` : ""),
      cutNote(cut, policy, tiles),
    ],
  };

  /** The main loop over all tiles or a range of them; split depth goes to partial results. */
  function product(splits: number, streamed?: ConvProduct["streamed"]): Pass {
    const module = moduleBuilder(mode);
    const split = { a: buffers.split(aBuffer), b: buffers.split(bBuffer) };
    const [a, b] = operands.loaders(module, policy, (operand) => split[operand]);
    return productPass(
      {
        name: `implicit_gemm_${problem.op.replace("-", "_")}_f32`,
        trait: operands.trait(policy),
        mode,
        module,
        policy,
        variant: request.variant,
        ...shape,
        splits,
        ...(streamed === undefined ? {} : { streamed }),
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
          buffer: splits > 1 ? partials! : result,
          ...(splits > 1 && streamed === undefined ? { split: elements } : {}),
        },
        epilogue: splits > 1 ? NO_STEPS : epilogue,
      },
      buffers,
      limits,
    );
  }
}
