import { tapRingOf } from "../../kernels/loader.ts";
import { elementsOf, elementsTrait } from "../../elements/elements.ts";
import { canonicalName } from "../../kernels/kernel.ts";
import { type ModuleBuilder, moduleBuilder, type SizeMode } from "../../kernels/module.ts";
import {
  accumulationLength,
  CONV_DTYPES,
  operandTensors,
  resultTensor,
} from "../../problem/conv_problem.ts";
import type { Algorithm } from "../algorithm.ts";
import {
  cutPasses,
  cutTiles,
  packedFilter,
  type ProductPart,
  productPass,
} from "../conv_product.ts";
import { withHalfTile } from "../product_time.ts";
import { cutArithmetic, cutSchedule } from "../cut.ts";
import { cutNotes } from "../cut_notes.ts";
import { geometryInMath, LEAST_SPLIT_DEPTH, type MathGeometry, planInMath } from "../halves.ts";
import { quantizePass, sumsRequest } from "../passes.ts";
import type { Pass, Plan } from "../plan.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { problemBuffers, resultElements } from "../tensors.ts";
import { type HalvesProduct, halvesProduct, planHalves, refuseHalves } from "./halves.ts";
import { type ImplicitProduct, implicitProduct, storesApart } from "./product.ts";
import { turnGradient, writeOperands } from "./written.ts";
import { SCHEDULE_FIELDS } from "../schedule.ts";

/** The product of a request whose math is said: of f32 in halves, or as it is. */
type ProductGeometry =
  & { readonly request: PlanRequest }
  & ({ readonly halves: HalvesProduct } | { readonly whole: ImplicitProduct });

function productGeometry(request: PlanRequest): Planned<ProductGeometry> {
  if (request.math === "f16x3") {
    const halves = halvesProduct(request);
    return isRefusal(halves) ? halves : { request, halves };
  }
  const whole = implicitProduct(request);
  return isRefusal(whole) ? whole : { request, whole };
}

function timeOf(geometry: ProductGeometry): number {
  return ("halves" in geometry ? geometry.halves : geometry.whole).time;
}

/** Plans implicit GEMM: the convolution as one product whose operands are gathered on the way. */
function planImplicitGemm(
  asked: PlanRequest,
  plain: ImplicitProduct,
  mode: SizeMode,
): Planned<Plan> {
  const request = withHalfTile(asked, plain.cut);
  const { problem } = request;
  const chosen = request === asked ? plain : implicitProduct(request);
  if (isRefusal(chosen)) return chosen;
  const { operands, product: uncut, cut, written } = chosen;
  const elements = resultElements(problem);
  const { policy } = cut;
  const tensors = problemBuffers(request, mode);
  const { buffers, elements: types } = tensors;
  const result = tensors.tensor[resultTensor(problem.op)];
  const passes: Pass[] = [];

  let { tensor } = tensors;
  const writes = elements > 0 ? written : undefined;
  if (writes) {
    const operands = writeOperands(writes, buffers, tensor);
    tensor = operands.places;
    passes.push(...operands.passes);
  }
  const gradient = writes && turnGradient(writes, buffers, result);
  const apart = storesApart(request, operands);
  const sums = apart ? buffers.workspace("sums", elements, "i32") : undefined;
  const product = {
    ...(apart ? sumsRequest(request) : request),
    ...(written && { problem: written.request.problem }),
  };

  const pack = operands.pack(policy);
  let aBuffer = tensor[operands.left];
  if (pack !== undefined) {
    const filter = packedFilter(pack, { ...tensors, tensor });
    aBuffer = filter.packed;
    passes.push(...filter.passes);
  }

  const bBuffer = tensor[operandTensors(problem.op)[0]];
  const { columns } = operands;
  const rows = operands.loopRows?.(policy) ?? operands.rows;
  const depth = operands.depth(policy);
  const shape = {
    cut,
    rows,
    columns,
    target: {
      ...operands.result,
      buffer: sums ?? gradient?.place ?? result,
      element: sums === undefined ? types.result : "i32" as const,
    },
    classText: operands.uneven &&
      ((module: ModuleBuilder) => operands.uneven!(module, policy).text),
  };
  const ending = apart ? { ...tensors, elements: elementsOf(product) } : tensors;
  const cutting = cutPasses(product, shape, ending, productOf);
  const { product: main } = cutting;
  passes.push(main, ...cutting.sums, ...gradient?.passes ?? []);
  if (sums !== undefined) {
    passes.push(quantizePass(request, tensors, sums, result));
  }
  return buffers.plan({
    kernel: canonicalName(main.kernel),
    algorithm: "implicit-gemm",
    passes: elements === 0 ? [] : passes,
    multiplications: main.multiplications,
    arithmetic: cutArithmetic(
      cutting.cut,
      uncut.steps(policy),
      uncut.matrix?.chain,
      tapRingOf(operands.b)?.row?.steps,
    ),
    schedule: cutSchedule(cutting.cut, request),
    notes: [
      (operands.classes === undefined
        ? `a product of ${rows} x ${columns} x ${depth}`
        : `stride classes: ${operands.classes}, ${columns} columns`) +
      (problem.groups > 1 ? ` for each of ${problem.groups} groups` : ""),
      ...[operands.b.sharedTaps].flatMap((row) =>
        row === undefined ? [] : [`places are loaded once for each row of ${row.taps} taps`]
      ),
      ...(written?.note === undefined ? [] : [written.note]),
      ...(apart ? ["a pass of its own stores the results, whose channels are no whole words"] : []),
      ...cutNotes(cutting.cut, cutTiles(shape, problem.groups), request),
    ],
  });

  function productOf(part: ProductPart): Pass {
    const module = moduleBuilder(mode);
    const split = buffers.splits({ a: aBuffer, b: bBuffer });
    const [a, b] = operands.loaders(module, policy, (operand) => split[operand]);
    return productPass({
      name: `implicit_gemm_${problem.op.replace("-", "_")}_${elementsTrait(ending.elements)}`,
      chain: uncut.matrix?.chain,
      trait: operands.trait(policy),
      module,
      depth,
      uneven: operands.uneven?.(module, policy),
      a,
      b,
      places: {
        [pack === undefined ? operands.left : "packed"]: aBuffer,
        [operandTensors(problem.op)[0]]: bBuffer,
      },
      ...part,
    }, buffers);
  }
}

/** The convolution as one product whose operands are gathered on the way. */
export const implicitGemm: Algorithm<MathGeometry<ProductGeometry>> = {
  name: "implicit-gemm",
  options: [...SCHEDULE_FIELDS, "math"],
  dtypes: CONV_DTYPES,
  takesParts: true,
  refuse: (request) => request.math === "f16x3" ? refuseHalves(request) : undefined,
  candidates: () => [{ algorithm: "implicit-gemm", amplification: 1 }],
  geometry: (request) =>
    geometryInMath(request, {
      products: ({ problem }) => accumulationLength(problem),
      geometry: productGeometry,
      time: timeOf,
      least: LEAST_SPLIT_DEPTH,
      // What was predicted to gain less lost as often on an H100, whose memory is slower than the model's.
      clearly: 0.87,
    }),
  price: ({ geometry }) => timeOf(geometry),
  plan: (inMath, mode) =>
    planInMath(
      inMath,
      productGeometry,
      (geometry) =>
        "halves" in geometry
          ? planHalves(geometry.request, geometry.halves, mode)
          : planImplicitGemm(geometry.request, geometry.whole, mode),
    ),
};
