import {
  activationStep,
  addTensorStep,
  biasStep,
  type EpilogueFactory,
  epilogueTrait,
  NO_STEPS,
  scaleStep,
} from "../../kernels/epilogue.ts";
import { matrixLoader, matrixVector } from "../../kernels/loaders/matrix.ts";
import { packedLoader } from "../../kernels/loaders/packed.ts";
import { packedElements, packStridedKernel } from "../../kernels/pack_strided.ts";
import { packTransposedKernel, transposeWorkgroups } from "../../kernels/pack_transposed.ts";
import { mainLoopKernel, mainLoopWorkgroups } from "../../kernels/main_loop.ts";
import {
  moduleBuilder,
  type SizeMode,
  splitTrait,
  type StorageElement,
} from "../../kernels/module.ts";
import { mappedOutput, outputVector } from "../../kernels/output.ts";
import { policyTile } from "../../kernels/policy.ts";
import {
  type GemmAccumulate,
  type GemmDType,
  gemmOperands,
  type GemmProblem,
  gemmShape,
  type GemmTensor,
} from "../../problem/gemm_problem.ts";
import { elementCount } from "../../tensor/tensor.ts";
import {
  type Cut,
  cutProduct,
  MULTIPLY_ADDS_PER_DISPATCH,
  MULTIPLY_ADDS_PER_ELEMENT,
} from "../cut.ts";
import { pass, reducePass } from "../passes.ts";
import type { DeviceLimits, Pass, Plan } from "../plan.ts";
import { PlanBuffers } from "../tensors.ts";

/** All that planning a product needs to know. */
export interface GemmRequest {
  readonly problem: GemmProblem;
  readonly dtype: GemmDType;
  /** Of f16 only; f32 where absent. */
  readonly accumulate?: GemmAccumulate;
  /** Name of a `TilePolicy` in place of the planner's choice. */
  readonly policy?: string;
  /** Workgroups that share the depth of a tile, in place of the planner's choice. */
  readonly splits?: number;
  readonly limits: DeviceLimits;
  readonly workgroupsInFlight?: number | undefined;
  readonly sizes?: SizeMode;
}

/** How the operands lie in memory. */
function operandShapes(problem: GemmProblem) {
  const { m, n, k, transpose } = problem;
  const a = {
    places: m,
    depth: k,
    along: transpose[0] === "n" ? "depth" as const : "place" as const,
    batchStride: m * k,
  };
  const b = {
    places: n,
    depth: k,
    along: transpose[1] === "n" ? "place" as const : "depth" as const,
    batchStride: k * n,
  };
  const { batch: batches } = problem;
  return {
    a: { ...a, batches, vector: matrixVector(a) },
    b: { ...b, batches, vector: matrixVector(b) },
  };
}

type OperandShape = ReturnType<typeof operandShapes>["a" | "b"];

/**
 * The policy and splits that {@linkcode planGemm} takes, with their predicted cost.
 *
 * @throws as {@linkcode planGemm}.
 */
export function cutGemm(request: GemmRequest): Cut {
  const { m, n, k, batch } = request.problem;
  const { a, b } = operandShapes(request.problem);
  return cutProduct(request, {
    rows: m,
    columns: n,
    batches: batch,
    steps: ({ depth }) => Math.ceil(k / depth),
    elements: batch * m * n,
    a,
    b,
  });
}

/**
 * Plans a matrix product: pure, no GPU. An empty result has no passes; a depth of 0 leaves the epilogue
 * of zeros.
 *
 * @throws {RangeError} if the policy is unknown, or there are no kernels of the dtype.
 * @throws {UnsupportedError} if the device's limits do not suffice.
 */
export function planGemm(request: GemmRequest): Plan {
  const { problem, limits } = request;
  const element = storageElement(request);
  const { m, n, k, batch, transpose } = problem;
  // Literal zero divisors do not compile; in a uniform they are harmless.
  const mode = m * n * k * batch === 0 ? "uniform" : request.sizes ?? "constant";
  const shapes = operandShapes(problem);
  const elements = batch * m * n;
  const { policy, splits } = cutGemm(request);

  const buffers = new PlanBuffers(limits);
  const place: Partial<Record<GemmTensor, number>> = {};
  for (const which of [...gemmOperands(problem), "output"] as const) {
    place[which] = buffers.add(which, which, elementCount(gemmShape(problem, which)), element);
  }
  const { a: aBuffer, b: bBuffer, output: result } = place as Record<GemmTensor, number>;
  const target = splits > 1
    ? buffers.add("partial results", "workspace", splits * elements)
    : result;
  const packs: Pass[] = [];
  const module = moduleBuilder(mode);
  const a = operand("a", shapes.a, aBuffer, n);
  const b = operand("b", shapes.b, bBuffer, m);
  const strides = { row: n, outer: 0, inner: 1, base: [m * n] };
  const vector = outputVector(strides, m, n);
  const width = vector === "none" ? 1 : 4;
  const out = module.tensor(
    "result",
    "write",
    width,
    buffers.split(target),
    splits > 1 ? "f32" : element,
  );
  const epilogue = gemmEpilogue(problem, element, buffers, place);
  const steps = (splits > 1 ? NO_STEPS : epilogue)(module, width, (row) => row);
  const columns = module.size("n", n);
  const output = mappedOutput(out, {
    rows: module.size("m", m),
    columns,
    rowStride: columns,
    period: columns,
    outerStride: module.size("zero", 0),
    innerStride: module.size("one", 1),
    base: `group * ${module.size("out_batch", m * n)}${
      splits > 1 ? ` + split * ${module.size("out_split", elements)}` : ""
    }`,
    vector,
  }, steps);
  const shape = { rows: m, columns: n, steps: Math.ceil(k / policy.depth), batches: batch, splits };
  const suffix = `${transpose}_a${a.trait}b${b.trait}_o${width}${splits > 1 ? "_split" : ""}${
    epilogueTrait(steps)
  }${splitTrait(buffers.split(a.buffer), buffers.split(b.buffer), buffers.split(target))}`;
  const kernel = mainLoopKernel(
    `gemm_${element}`,
    suffix,
    mode,
    module,
    shape,
    policy,
    a.loader,
    b.loader,
    output,
  );
  const workgroups = mainLoopWorkgroups(shape, policy);
  const multiplications = workgroups / splits * policy.rows * policy.columns * shape.steps *
    policy.depth;
  const places = { ...place, a: a.buffer, b: b.buffer, result: target };
  const passes = [
    ...packs,
    pass(kernel, buffers, places, workgroups, limits, multiplications),
  ];
  if (splits > 1) {
    const reduce = {
      elements,
      splits,
      rows: m,
      rowStride: n,
      columns: n,
      columnStride: 1,
    };
    passes.push(
      reducePass(
        reduce,
        mode,
        epilogue,
        buffers,
        { ...place, partials: target, result },
        limits,
        element,
      ),
    );
  }
  return {
    kernel: kernel.kernel.name.replace(/\.[0-9a-f]{8}$/, ""),
    algorithm: "gemm",
    buffers: buffers.list,
    passes: elements === 0 ? [] : passes,
    workspaceBytes: buffers.workspaceBytes(),
    multiplications,
    notes: [
      `policy ${policy.name}: ${workgroups} workgroups of ${policyTile(policy)}, ` +
      `${splits === 1 ? "no split of the depth" : `the depth split in ${splits}`}`,
      ...packs.map(({ kernel: { name } }) => `${name.split(".")[0]} before it`),
    ],
  };

  /** An operand as it is, or packed first where that pays. */
  function operand(name: "a" | "b", matrix: OperandShape, buffer: number, other: number) {
    const tileDepth = policy.depth;
    const extent = name === "a" ? policy.rows : policy.columns;
    if (!packingPays(matrix, extent, other)) {
      const access = module.tensor(name, "read", matrix.vector, buffers.split(buffer), element);
      const loader = matrixLoader(module, name, access, { ...matrix, tileDepth });
      return { buffer, loader, trait: `${matrix.vector}` };
    }
    const padded = {
      places: Math.ceil(matrix.places / extent) * extent,
      depth: Math.ceil(k / tileDepth) * tileDepth,
    };
    const packed = buffers.add(
      `packed ${name}`,
      "workspace",
      batch * padded.places * padded.depth,
      element,
    );
    packs.push(packPass(request, matrix, padded, mode, buffers, { unpacked: buffer, packed }));
    const access = module.tensor(name, "read", 4, buffers.split(packed), element);
    const loader = packedLoader(module, name, access, { ...padded, tileDepth });
    return { buffer: packed, loader, trait: "p" };
  }
}

/**
 * What the main loop gains by a packed operand, as a share of its time (docs/performance.md): stores across a
 * tile of A, and loads of single elements, cost it that much.
 */
function packingGain({ along, vector }: OperandShape, extent: number): number {
  if (vector === 1) return 0.1;
  return along === "depth" && extent >= 128 ? 0.08 : 0;
}

/** Whether the gain exceeds reading and writing the operand once more. */
function packingPays(matrix: OperandShape, extent: number, other: number): boolean {
  const { places, depth, batches } = matrix;
  const products = batches * places * depth * other;
  const cost = 2 * batches * places * depth * MULTIPLY_ADDS_PER_ELEMENT +
    MULTIPLY_ADDS_PER_DISPATCH;
  return products * packingGain(matrix, extent) > cost;
}

/** The pass that packs an operand: transposed where its depth is contiguous. */
function packPass(
  request: GemmRequest,
  matrix: OperandShape,
  padded: { places: number; depth: number },
  mode: SizeMode,
  buffers: PlanBuffers,
  at: { unpacked: number; packed: number },
): Pass {
  const { places, depth, batches, along } = matrix;
  const [from, to] = [buffers.split(at.unpacked), buffers.split(at.packed)];
  if (along === "depth") {
    const shape = {
      groups: batches,
      rows: places,
      paddedRows: padded.places,
      depth,
      paddedDepth: padded.depth,
    };
    const kernel = packTransposedKernel(shape, mode, from, to, storageElement(request));
    return pass(kernel, buffers, at, transposeWorkgroups(shape), request.limits);
  }
  const shape = {
    groups: batches,
    rows: places,
    paddedRows: padded.places,
    channels: depth,
    paddedChannels: depth,
    taps: 1,
    depth: padded.depth,
    groupStride: places * depth,
    rowStride: 1,
    channelStride: places,
    tapStride: 0,
  };
  const kernel = packStridedKernel(shape, mode, from, to, storageElement(request));
  return pass(kernel, buffers, at, Math.ceil(packedElements(shape) / 256), request.limits);
}

/**
 * What the matrices hold in memory; sums are in f32.
 *
 * @throws {RangeError} where there are no kernels for it.
 */
function storageElement({ dtype, accumulate }: GemmRequest): StorageElement {
  if (dtype !== "f32" && dtype !== "f16") {
    throw new RangeError(
      `Cannot plan: there is no ${dtype} product yet, f32 and f16 are supported`,
    );
  }
  if (accumulate === "f16" && dtype !== "f16") {
    throw new RangeError(
      `Cannot plan: only f16 products can be summed in f16, the dtype is ${dtype}`,
    );
  }
  if (accumulate === "f16") {
    throw new RangeError("Cannot plan: sums in f16 are not there yet, f32 is supported");
  }
  return dtype;
}

/** α, then β·C, then bias, then the activation, then the residual. */
function gemmEpilogue(
  problem: GemmProblem,
  element: StorageElement,
  buffers: PlanBuffers,
  place: Partial<Record<GemmTensor, number>>,
): EpilogueFactory {
  return (module, width, rowIndex) => {
    const tensor = (name: "c" | "residual") =>
      module.tensor(name, "read", width, buffers.split(place[name]!), element);
    const { alpha, beta, bias, activation, residual } = problem;
    return [
      ...(alpha === 1 ? [] : [scaleStep("alpha", alpha)]),
      ...(beta === 0 ? [] : [addTensorStep("beta", tensor("c"), beta)]),
      ...(bias === "none" ? [] : [
        biasStep(
          module,
          bias === "row" ? "rows" : "columns",
          buffers.split(place.bias!),
          bias === "row" ? rowIndex : undefined,
          element,
        ),
      ]),
      ...(activation === "none" ? [] : [activationStep(activation)]),
      ...(residual ? [addTensorStep("residual", tensor("residual"), 1)] : []),
    ];
  };
}
