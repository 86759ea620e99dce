import { elementsTrait } from "../../elements/elements.ts";
import { canonicalName } from "../../kernels/kernel.ts";
import { windowGatherLoader } from "../../kernels/loaders/im2win.ts";
import { packedLoader } from "../../kernels/loaders/matrix.ts";
import { fullVariant } from "../../kernels/main_loop_variant.ts";
import { moduleBuilder, type SizeMode } from "../../kernels/module.ts";
import { packedElements } from "../../kernels/pack.ts";
import type { TilePolicy } from "../../kernels/policy.ts";
import { addsUp, packFilterPass, productPass, tapDepth } from "../conv_product.ts";
import { cutArithmetic, cutProduct } from "../cut.ts";
import { type Product, productUnit } from "../product.ts";
import { cutNotes } from "../cut_note.ts";
import { cutPasses, cutTiles, type ProductPart, streamsOf } from "../cut_passes.ts";
import type { Pass, Plan } from "../plan.ts";
import { withHalfTile } from "../product_time.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { operandBytes, problemBuffers, resultElements } from "../tensors.ts";
import {
  windowColumns,
  windowFilter,
  type WindowGeometry,
  windowGeometry,
  windowTarget,
} from "./geometry.ts";

/** Which elements of the input a load takes, and which way neighbouring threads go. */
function gatherAccess(request: PlanRequest, { interleave, channels }: WindowGeometry) {
  const { layout } = request;
  const { vectorLoads } = fullVariant(request.variant);
  const along = layout === "nhwc" ? "depth" as const : "place" as const;
  // chwn has its images together; nhwc its channels, of which only single images can take four.
  const together = interleave === 4
    ? layout === "chwn"
    : vectorLoads && layout === "nhwc" && channels % 4 === 0 && channels > 0;
  return {
    along,
    sourceVector: together ? 4 as const : 1 as const,
    vector: interleave === 4 || together ? 4 as const : 1 as const,
    ...(interleave === 4 && along === "depth" ? { vectorAlong: "place" as const } : {}),
  };
}

/** The product of a request and what its loads take, before it is cut. */
export function fusedProduct(request: PlanRequest) {
  const { problem } = request;
  const geometry = windowGeometry(request);
  const access = gatherAccess(request, geometry);
  const filter = (policy: TilePolicy) =>
    windowFilter(request, geometry, policy, tapDepth(geometry.channels, policy.depth));
  const product: Product = {
    rows: geometry.rows,
    columns: windowColumns(geometry, problem.batch),
    batches: problem.groups,
    steps: (policy) => filter(policy).depth / policy.depth,
    elements: resultElements(problem),
    streams: streamsOf(request),
    workspaceBytes: (policy) => operandBytes(request) * packedElements(filter(policy)),
    matrix: productUnit(request, addsUp(windowTarget(geometry), geometry.rows, request.variant)),
    a: { along: "place", vector: 4 },
    b: access,
  };
  return { geometry, access, filter, product };
}

/** Plans im2win without its tensor: window rows are built in workgroup memory, a strip at a time. */
export function planIm2winFused(asked: PlanRequest, mode: SizeMode): Planned<Plan> {
  const request = withHalfTile(asked, fusedProduct(asked).product);
  const { problem, limits } = request;
  const { geometry, access, filter: filterOf, product: whole } = fusedProduct(request);
  const { taps, channels, interleave } = geometry;
  const { rows, columns } = whole;
  const cut = cutProduct(request, whole);
  if (isRefusal(cut)) return cut;
  const { policy } = cut;
  const padded = tapDepth(geometry.channels, policy.depth);
  const filter = filterOf(policy);

  const tensors = problemBuffers(request);
  const { buffers, tensor, bias, elements } = tensors;
  const packed = buffers.add(
    "filter in window order",
    "workspace",
    packedElements(filter),
    elements.storage,
  );
  const shape = {
    cut,
    rows,
    columns,
    target: { ...windowTarget(geometry), buffer: tensor.output, element: elements.result },
  };
  const main = cutPasses(request, mode, shape, tensors, product);
  const passes = [
    ...packFilterPass(
      filter,
      mode,
      buffers,
      { unpacked: tensor.filter, packed },
      limits,
      elements.storage,
    ),
    main.product,
    ...main.sums,
  ];
  return buffers.plan({
    kernel: canonicalName(main.product.kernel),
    algorithm: "im2win-fused",
    passes: resultElements(problem) === 0 ? [] : passes,
    multiplications: main.product.multiplications,
    arithmetic: cutArithmetic(main.cut, whole.steps(policy), whole.matrix?.chain),
    notes: [
      `window rows built in workgroup memory, ` +
      `${interleave === 4 ? "four images a vector" : "single images"}, ` +
      `a product of ${rows} x ${columns} x ${filter.depth}` +
      (problem.groups > 1 ? ` for each of ${problem.groups} groups` : ""),
      ...cutNotes(main.cut, cutTiles(shape, problem.groups), request),
    ],
  });

  function product(part: ProductPart): Pass {
    const module = moduleBuilder(mode);
    const { vectorLoads } = fullVariant(request.variant);
    const { storage, tile } = elements;
    const read = (name: string, vector: 1 | 4, buffer: number) =>
      module.tensor(name, "read", vector, buffers.split(buffer), storage, tile);
    const a = read("packed", vectorLoads ? 4 : 1, packed);
    const b = read("input", access.sourceVector, tensor.input);
    return productPass(
      {
        name: `im2win_fused_fwd_${elementsTrait(elements)}`,
        accumulate: elements.accumulate,
        chain: whole.matrix?.chain,
        trait: `${request.layout}_${problem.filterSize.length}d_${
          padded % policy.depth === 0 ? "tap" : "linear"
        }_i${interleave}b${access.sourceVector}`,
        mode,
        module,
        policy,
        variant: request.variant,
        depth: taps * padded,
        a: packedLoader(module, "a", a, {
          places: filter.paddedRows,
          depth: filter.depth,
          tileDepth: policy.depth,
        }),
        b: windowGatherLoader(module, b, {
          axes: geometry.axes,
          interleave,
          channels,
          paddedChannels: padded,
          batchStride: geometry.input[0]!,
          channelStride: geometry.input[1]!,
          sourceVector: access.sourceVector,
          along: access.along,
          tileDepth: policy.depth,
        }),
        places: { packed, input: tensor.input, bias },
        operands: [packed, tensor.input],
        ...part,
      },
      buffers,
      limits,
    );
  }
}
