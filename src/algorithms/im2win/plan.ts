import { NO_STEPS } from "../../kernels/epilogue.ts";
import { im2winKernel, im2winWorkgroups, windowElements } from "../../kernels/im2win.ts";
import { windowLoader, windowVector } from "../../kernels/loaders/im2win.ts";
import { packedLoader } from "../../kernels/loaders/packed.ts";
import { variantPolicy } from "../../kernels/main_loop.ts";
import { fullVariant } from "../../kernels/main_loop_variant.ts";
import { moduleBuilder, type SizeMode } from "../../kernels/module.ts";
import { packedElements } from "../../kernels/pack_strided.ts";
import { policyTile, type TilePolicy } from "../../kernels/policy.ts";
import { batchChunks, chunkBufferBytes } from "../chunks.ts";
import { convEpilogue } from "../conv_epilogue.ts";
import { packPass, productPass } from "../conv_product.ts";
import { type Cut, cutProduct } from "../cut.ts";
import { pass, reducePass } from "../passes.ts";
import type { Pass, Plan } from "../plan.ts";
import type { PlanRequest } from "../request.ts";
import { problemBuffers, reduceShape, resultElements } from "../tensors.ts";
import {
  windowBytes,
  windowColumns,
  windowDepth,
  windowFilter,
  type WindowGeometry,
  windowGeometry,
  windowShape,
  windowTarget,
} from "./geometry.ts";

/**
 * Plans the im2win convolution (forward): the input in window order, then the product of the filter and of
 * windows that are read as they lie. In chunks of the batch where the transformed tensor exceeds a limit.
 */
export function planIm2win(request: PlanRequest, mode: SizeMode): Plan {
  const { problem, limits } = request;
  const geometry = windowGeometry(request);
  const { rows, interleave } = geometry;
  const elements = resultElements(problem);
  const depth = windowDepth(geometry);
  const { splits, chunks, policy } = cutWindows(request, geometry);
  const chunked = chunks.length > 1;
  const shapeOf = (images: number) => windowShape(request, geometry, images, chunked);
  const { vectorLoads } = fullVariant(request.variant);
  const vector = vectorLoads ? windowVector(shapeOf(interleave)) : 1;
  const steps = Math.ceil(depth / policy.depth);

  const { buffers, tensor, bias } = problemBuffers(request);
  const filter = windowFilter(request, geometry, policy);
  const packed = buffers.add("filter in window order", "workspace", packedElements(filter));
  const largest = shapeOf(chunks[0]!.images);
  const windows = buffers.add("input in window order", "workspace", windowElements(largest));
  const partials = splits > 1
    ? buffers.add("partial results", "workspace", splits * elements)
    : undefined;
  const epilogue = convEpilogue(request.epilogue);
  const passes: Pass[] = [
    ...packPass(filter, mode, buffers, { unpacked: tensor.filter, packed }, limits),
  ];
  for (const { first, images } of chunks) {
    const shape = shapeOf(images);
    if (windowElements(shape) > 0) {
      const transform = im2winKernel(
        shape,
        mode,
        first,
        buffers.split(tensor.input),
        buffers.split(windows),
      );
      const places = { input: tensor.input, windows };
      passes.push(pass(transform, buffers, places, im2winWorkgroups(shape), limits));
    }
    const module = moduleBuilder(mode);
    const a = module.tensor("packed", "read", vectorLoads ? 4 : 1, buffers.split(packed));
    const b = module.tensor("windows", "read", vector, buffers.split(windows));
    passes.push(productPass(
      {
        name: "im2win_fwd_f32",
        trait: `i${interleave}b${vector}`,
        mode,
        module,
        policy,
        variant: request.variant,
        rows,
        columns: windowColumns(geometry, images),
        steps,
        batches: problem.groups,
        splits,
        a: packedLoader(module, "a", a, {
          places: filter.paddedRows,
          depth: filter.depth,
          tileDepth: policy.depth,
        }),
        b: windowLoader(module, b, shape, { tileDepth: policy.depth, vector }),
        places: { packed, windows, bias },
        operands: [packed, windows],
        target: {
          ...windowTarget(geometry),
          buffer: partials ?? tensor.output,
          ...(partials === undefined ? {} : { split: elements }),
          ...(chunked
            ? {
              begin: {
                at: first * geometry.output[0]!,
                multiple: chunks[0]!.images * geometry.output[0]!,
              },
            }
            : {}),
        },
        epilogue: partials === undefined ? epilogue : NO_STEPS,
      },
      buffers,
      limits,
    ));
  }
  const main = passes.at(-1)!;
  if (partials !== undefined) {
    const places = { partials, result: tensor.output, bias };
    passes.push(
      reducePass(reduceShape(request, splits), mode, epilogue, buffers, places, limits),
    );
  }
  return {
    kernel: main.kernel.name.replace(/\.[0-9a-f]{8}$/, ""),
    algorithm: "im2win",
    buffers: buffers.list,
    passes: elements === 0 ? [] : passes,
    workspaceBytes: buffers.workspaceBytes(),
    multiplications: passes.reduce((sum, one) => sum + one.multiplications, 0),
    notes: [
      `windows of ${interleave === 4 ? "four images a vector" : "single images"}, ` +
      `a product of ${rows} x ${windowColumns(geometry, chunks[0]!.images)} x ${depth}` +
      (problem.groups > 1 ? ` for each of ${problem.groups} groups` : "") +
      (chunked ? `, in ${chunks.length} chunks of the batch` : ""),
      `policy ${policy.name}: tiles of ${policyTile(policy)}, ` +
      `${splits === 1 ? "no split of the depth" : `the depth split in ${splits}`}`,
    ],
  };
}

/** Policy, splits and chunks. The depth is split only where the batch is not. */
function cutWindows(request: PlanRequest, geometry: WindowGeometry) {
  const { problem, limits, maxWorkspaceBytes } = request;
  const elements = resultElements(problem);
  const depth = windowDepth(geometry);
  const bytes = (images: number) => windowBytes(windowShape(request, geometry, images, false));
  const maxBufferBytes = chunkBufferBytes(limits, [bytes(geometry.interleave)]);
  const product = {
    rows: geometry.rows,
    columns: windowColumns(geometry, problem.batch),
    batches: problem.groups,
    steps: ({ depth: tile }: TilePolicy) => Math.ceil(depth / tile),
    elements,
    a: { along: "place", vector: 4 },
    b: windowAccess(request, geometry),
  } as const;
  const cut = cutProduct(request, product);
  const fixedBytes = ({ policy, splits }: Cut) =>
    4 * packedElements(windowFilter(request, geometry, variantPolicy(policy, request.variant))) +
    (splits > 1 ? 4 * splits * elements : 0);
  const whole = bytes(problem.batch) <= maxBufferBytes &&
    fixedBytes(cut) + bytes(problem.batch) <= (maxWorkspaceBytes ?? Infinity);
  const chosen = whole || cut.splits === 1 ? cut : cutProduct({ ...request, splits: 1 }, product);
  const chunks = batchChunks({
    algorithm: "im2win",
    batch: problem.batch,
    multiple: geometry.interleave,
    bytes: (images) => [bytes(images)],
    fixedBytes: fixedBytes(chosen),
    maxBufferBytes,
    maxWorkspaceBytes,
  });
  return {
    policy: variantPolicy(chosen.policy, request.variant),
    splits: chosen.splits,
    chunks,
  };
}

function windowAccess(request: PlanRequest, geometry: WindowGeometry) {
  return geometry.interleave === 4
    ? { along: "depth", vector: 4, vectorAlong: "place" } as const
    : {
      along: "depth",
      vector: windowVector(windowShape(request, geometry, 1, false)),
    } as const;
}
