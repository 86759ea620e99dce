import { elementsOf, sumOf } from "../../elements/elements.ts";
import { canonicalName } from "../../kernels/kernel.ts";
import { addTensorStep, epilogueTrait, NO_STEPS } from "../../kernels/epilogue.ts";
import { loadedTensor, policyVector } from "../../kernels/loader.ts";
import { unitDepth } from "../../kernels/matrix_units.ts";
import { matrixLoader } from "../../kernels/loaders/matrix.ts";
import { packedLoader } from "../../kernels/loaders/packed.ts";
import { mainLoopKernel, mainLoopWorkgroups } from "../../kernels/main_loop.ts";
import {
  type ModuleBuilder,
  moduleBuilder,
  type SizedKernel,
  type SizeMode,
  splitTrait,
} from "../../kernels/module.ts";
import { mappedOutput } from "../../kernels/output.ts";
import {
  type OutputSplit,
  outputTransformKernel,
  outputWorkgroups,
} from "../../kernels/winograd_output.ts";
import { patchTransformKernel, patchWorkgroups } from "../../kernels/winograd_transform.ts";
import { type MatrixStack, tensorTiles, type TiledTensor } from "../../kernels/winograd_tiles.ts";
import { directFlops, resultTensor } from "../../problem/conv_problem.ts";
import type { PlanArithmetic, QuadSides } from "../../problem/plan_arithmetic.ts";
import { amplification2d } from "../../winograd/amplification.ts";
import { convEpilogue } from "../conv_epilogue.ts";
import { cutArithmetic } from "../cut.ts";
import { HALVES } from "../gemm/split.ts";
import { pass, reducePass, refuseBindings } from "../passes.ts";
import type { Pass, Plan } from "../plan.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { type BufferList, problemBuffers, resultElements } from "../tensors.ts";
import { filterPass } from "./filter.ts";
import { geometryOf, type WinogradGeometry } from "./geometry.ts";
import { inMath } from "./math.ts";
import { notesOf } from "./notes.ts";
import { markPasses, type OperandMarks, operandMarks, splitUnit } from "./split.ts";
import { type PlannedTile, plannedTile } from "./tiles.ts";
import { imageWindow, wholeWindow, type Window } from "./window.ts";
import {
  chooseChunks,
  type ChunkLayout,
  layOutChunk,
  loadedAlong,
  valuesDeep,
  workspaceOf,
} from "./workspace.ts";

/** What the parts of a plan share. */
interface Context {
  readonly request: PlanRequest;
  readonly mode: SizeMode;
  readonly tile: PlannedTile;
  readonly geometry: WinogradGeometry;
  readonly buffers: BufferList;
  readonly tensors: ReturnType<typeof problemBuffers>;
  /** Of the transformed operands. */
  readonly operands: readonly [number, number];
  /** Of halves: what is kept of the operands. */
  readonly marks: number | undefined;
}

/** Nothing to compute. */
function emptyPlan(request: PlanRequest, tile: PlannedTile): Planned<Plan> {
  return problemBuffers(request).buffers.plan({
    kernel: "winograd2d_nonfused",
    algorithm: "winograd2d-nonfused",
    passes: [],
    multiplications: 0,
    amplification: amplification2d(...tile.transforms),
    arithmetic: {},
    notes: ["an empty result"],
  });
}

/**
 * Plans Winograd in separate passes: transforms of the operands, α0·α1 products a group, transform of the products. Works
 * in chunks of the batch that share their workspace.
 */
export function planWinogradNonfused(asked: PlanRequest, mode: SizeMode): Planned<Plan> {
  if (resultElements(asked.problem) === 0) return emptyPlan(asked, plannedTile(asked));
  const request = inMath(asked);
  if (isRefusal(request)) return request;
  const plan = planInMath(request, mode);
  if (request.math !== "f16x3" || asked.math === "f16x3" || asked.policy !== undefined) return plan;
  // Halves take buffers and bindings that f32 does without.
  const refused = isRefusal(plan) ? plan : refuseBindings(plan, asked.limits);
  return refused === undefined ? plan : planInMath({ ...asked, math: "f32" }, mode);
}

/** Plans what says how its products are multiplied. */
function planInMath(request: PlanRequest, mode: SizeMode): Planned<Plan> {
  const { problem, limits } = request;
  const tile = plannedTile(request);
  const geometry = geometryOf(request, tile);
  const chunk = chooseChunks(request, geometry, tile);
  if (isRefusal(chunk)) return chunk;
  const { splits, policy } = chunk.cut;
  const perSplit = Math.ceil(chunk.depth / splits);
  const count = chunk.images === 0 ? 1 : Math.ceil(problem.batch / chunk.images);
  const chunks = Array.from({ length: count }, (_, index) => {
    const first = index * chunk.images;
    const images = Math.min(chunk.images, problem.batch - first);
    const layout = images === chunk.images
      ? chunk
      : layOutChunk(request, geometry, tile, images, chunk.cut);
    return { first, layout };
  });

  const tensors = problemBuffers(request);
  const { buffers, tensor, bias, elements } = tensors;
  const sum = sumOf(elements);
  const needs = workspaceOf(request, chunk);
  const names = geometry.operands.map(({ role }) => `transformed ${role}`);
  const operands = [
    buffers.add(names[0]!, "workspace", needs.operands[0], tile.stored),
    buffers.add(names[1]!, "workspace", needs.operands[1], tile.stored),
  ] as const;
  const products = needs.products === 0
    ? undefined
    : buffers.add("products", "workspace", needs.products, chunk.stored);
  const targets = needs.partials === 0 ? [products!] : Array.from(
    { length: needs.targets },
    () => buffers.add("partial products", "workspace", needs.partials, sum),
  );
  const splitMarks = tile.stored === "halves" ? operandMarks(request, geometry, chunk) : undefined;
  const marks = splitMarks && buffers.add("marks", "workspace", splitMarks.words, "u32");
  const context: Context = { request, mode, tile, geometry, buffers, tensors, operands, marks };

  const passes: Pass[] = [];
  let kernel = "";
  let multiplications = 0;
  if (splitMarks !== undefined) {
    const [a, b] = geometry.operands.map(({ which }) => tensor[which]) as [number, number];
    const places = { marks: marks!, tensors: [a, b] } as const;
    passes.push(...markPasses(request, mode, geometry, splitMarks, buffers, places));
  }
  const filterFirst = geometry.operands.findIndex(({ role }) => role === "filter");
  if (filterFirst >= 0) {
    const [rows, columns] = geometry.operands[filterFirst]!.matrices;
    const places = {
      filter: tensor.filter,
      transformed: operands[filterFirst]!,
      ...(marks === undefined ? {} : { marks }),
    };
    const extent = filterFirst === 0 ? policy.rows : policy.columns;
    const padded = { extent, depth: valuesDeep(policy) };
    const split = splitMarks &&
      { marks: splitMarks.marks[filterFirst]!, unitDepth: unitDepth(policy.matrix!.unit) };
    passes.push(
      ...filterPass(request, mode, tile, { rows, columns }, padded, buffers, places, split),
    );
  }
  const share = directFlops(problem) / 2 / Math.max(1, problem.batch);
  let last = targets[0]!;
  for (const [index, { first, layout }] of chunks.entries()) {
    for (const which of [0, 1] as const) {
      if (which !== filterFirst) passes.push(...transformPass(context, which, layout, first));
    }
    const adds = filterFirst < 0 && index > 0;
    const target = targets[index % targets.length]!;
    const product = productKernel(context, layout, target, adds ? last : undefined);
    const workgroups = mainLoopWorkgroups({ ...layout, splits }, policy);
    const places = {
      a: operands[0],
      b: operands[1],
      previous: adds ? last : undefined,
      result: target,
    };
    passes.push(pass(product, buffers, places, workgroups, limits, share * layout.images));
    last = target;
    if (index === 0) kernel = canonicalName(product.kernel);
    multiplications += workgroups / splits * policy.rows * policy.columns * layout.depth;
    if (filterFirst >= 0 || index === chunks.length - 1) {
      passes.push(...finish(layout, first, target));
    }
  }
  return buffers.plan({
    kernel,
    algorithm: "winograd2d-nonfused",
    passes,
    multiplications,
    amplification: amplification2d(...tile.transforms),
    arithmetic: {
      tiles: [{
        axes: tile.transforms.slice(-problem.filterSize.length).map(({ n, r }) => ({ n, r })),
      }],
      ...(splitMarks
        ? splitArithmetic(request, chunk, splitMarks)
        : splits === 1
        ? {}
        : { chain: perSplit, segment: perSplit }),
      ...(tile.stored === "quad" ? { transformed: quadSides(request, geometry, chunk) } : {}),
    },
    notes: notesOf(request, tile, geometry, chunk, count),
  });

  /** Sums the splits of a chunk's products and transforms them. */
  function finish(layout: ChunkLayout, first: number, target: number): Pass[] {
    const made: Pass[] = [];
    let source = target;
    if (splits > 1) {
      const elements = layout.resultElements;
      const shape = {
        elements,
        splits,
        rows: 1,
        rowStride: elements,
        columns: elements,
        columnStride: 1,
      };
      made.push(
        reducePass(
          shape,
          mode,
          NO_STEPS,
          buffers,
          { partials: target, result: products! },
          limits,
          sumOf(tensors.elements),
        ),
      );
      source = products!;
    }
    const result = tensor[resultTensor(problem.op)];
    const images = geometry.result.tensor(layout.images);
    const window = windowOf(context, result, images, first);
    const shape = {
      name: tile.trait,
      tensor: images,
      matrices: geometry.result.matrices,
      masked: geometry.result.masked,
      stack: layout.result,
      start: window.start,
      stored: layout.stored,
      split: marks === undefined ? undefined : outputSplit(context, layout, first),
    };
    const kernel = outputTransformKernel(shape, mode, convEpilogue(request), {
      matrices: buffers.split(source),
      result: window.split,
    }, tensors.elements.result);
    const places = { matrices: source, result: window.bindings, bias, ...plainPlaces(context) };
    made.push(pass(kernel, buffers, places, outputWorkgroups(shape), limits));
    return made;
  }
}

/** How products of halves are summed; of a chain two values are one product. */
function splitArithmetic(
  request: PlanRequest,
  { cut, depth }: ChunkLayout,
  { marks }: OperandMarks,
): PlanArithmetic {
  const steps = 2 * depth / cut.policy.depth;
  const { chain, segment, ...unit } = cutArithmetic(cut, steps, splitUnit(request)?.chain);
  return {
    ...unit,
    ...(marks.some(({ by }) => by === "tile") ? { scaled: "tiles" as const } : {}),
    ...(chain === undefined ? {} : { chain: chain / 2 }),
    ...(segment === undefined ? {} : { segment: segment / 2 }),
  };
}

/** The operand whose patches are images, and the filter or the gradient. */
function sidesOf({ operands: [a] }: WinogradGeometry) {
  return a.role === "data" ? [0, 1] as const : [1, 0] as const;
}

/** What takes products of halves to results, or sums these as they are. */
function outputSplit(
  { request, geometry, buffers, tensors }: Context,
  layout: ChunkLayout,
  first: number,
): OutputSplit {
  const { op, batch } = request.problem;
  const { marks } = operandMarks(request, geometry, layout, first);
  const [data, other] = sidesOf(geometry);
  const tensor = (which: 0 | 1) => geometry.operands[which].tensor(batch);
  const split = (which: 0 | 1) => buffers.split(tensors.tensor[geometry.operands[which].which]);
  return {
    marks: [marks[data], marks[other]],
    plain: {
      op,
      data: tensor(data),
      filter: tensor(other),
      splits: { data: split(data), filter: split(other) },
    },
  };
}

/** The buffers that it binds. */
function plainPlaces({ geometry, tensors, marks }: Context) {
  if (marks === undefined) return {};
  const [data, other] = sidesOf(geometry);
  const place = (which: 0 | 1) => tensors.tensor[geometry.operands[which].which];
  return { marks, data: place(data), filter: place(other) };
}

/** What shares scales where transformed data is in quads. */
function quadSides(
  { problem: { op }, layout }: PlanRequest,
  { operands, result }: WinogradGeometry,
  { stored }: ChunkLayout,
): QuadSides {
  const backward = op === "bwd-filter";
  const data = operands.find(({ role }) => role === "data")!;
  const summed = loadedAlong(data) === "depth";
  // Tiles of a filter's gradient are its outputs.
  const byPlace = (result.columns === "tile") !== backward;
  return {
    places: summed ? "units" : "places",
    channels: backward && summed ? "units" : "channels",
    ...(stored === "quad" ? { products: byPlace ? "places" : "channels" } : {}),
    outerInner: backward || layout === "chwn",
  };
}

/** Images of a chunk, or all of the buffer where there is one chunk. */
function windowOf(
  { request, buffers }: Context,
  buffer: number,
  tensor: TiledTensor,
  first: number,
): Window {
  const activations = buffers.list[buffer]!.role !== "filter";
  const { storage, result } = elementsOf(request);
  const written = buffers.list[buffer]!.role === resultTensor(request.problem.op);
  return activations && tensor.batch < request.problem.batch
    ? imageWindow(buffers, buffer, written ? result : storage, tensor, first, request.limits)
    : wholeWindow(buffers, buffer);
}

/** The pass that transforms an operand; none where it has no elements. */
function transformPass(
  context: Context,
  which: 0 | 1,
  layout: ChunkLayout,
  first: number,
): Pass[] {
  const { request, mode, tile, geometry, buffers, tensors, operands, marks } = context;
  const operand = geometry.operands[which];
  const tensor = operand.tensor(layout.images);
  const stack = layout.stacks[which];
  const source = tensors.tensor[operand.which];
  const window = windowOf(context, source, tensor, first);
  const tiles = tensorTiles(tensor);
  // Quads, and pairs of halves, are whole.
  const together = tile.stored === "quad" ? 4 : tile.stored === "halves" ? 2 : 1;
  const whole = (count: number, along: MatrixStack["along"]) =>
    stack.along === along ? together * Math.ceil(count / together) : count;
  const shape = {
    name: `${operand.role}_${tile.trait}`,
    tensor,
    matrices: operand.matrices,
    stack,
    threads: {
      tiles: operand.depth === "tile" ? layout.depth : whole(tiles, "tile"),
      channels: operand.depth === "channel" ? layout.depth : whole(tensor.channels, "channel"),
    },
    start: window.start,
    stored: tile.stored,
    split: marks === undefined ? undefined : {
      marks: operandMarks(request, geometry, layout, first).marks[which],
      depth: operand.depth,
      unitDepth: unitDepth(layout.cut.policy.matrix!.unit),
    },
  };
  const workgroups = patchWorkgroups(shape);
  if (workgroups === 0) return [];
  const kernel = patchTransformKernel(shape, mode, {
    patches: window.split,
    matrices: buffers.split(operands[which]),
  }, tensors.elements.storage);
  const places = { patches: window.bindings, matrices: operands[which], marks };
  return [pass(kernel, buffers, places, workgroups, request.limits)];
}

/** The main loop over a chunk's products. `previous`: products of earlier chunks, to be added. */
function productKernel(
  { request, mode, tile, geometry, buffers, operands }: Context,
  layout: ChunkLayout,
  target: number,
  previous: number | undefined,
): SizedKernel {
  const { problem, layout: memory } = request;
  const { cut: { policy, splits }, rows, resultColumns: columns, resultElements } = layout;
  const module = moduleBuilder(mode);
  const halves = tile.stored === "halves";
  const depth = halves ? 2 * layout.depth : layout.depth;
  const loader = (which: 0 | 1) => {
    const name = which === 0 ? "a" as const : "b" as const;
    const vector = policyVector(policy, 4, []);
    const split = buffers.split(operands[which]);
    const access = halves
      ? loadedTensor(module, name, vector, split, HALVES)
      : module.tensor(name, "read", 4, split, tile.stored);
    const { tiles, channels } = layout.stacks[which];
    const places = geometry.operands[which].depth === "tile" ? channels : tiles;
    const shape = { places, depth, tileDepth: policy.depth, vector };
    return loadedAlong(geometry.operands[which]) === "place"
      ? packedLoader(module, name, access, shape)
      : matrixLoader(module, name, access, {
        ...shape,
        along: "depth",
        batchStride: places * depth,
      });
  };
  const [a, b] = [loader(0), loader(1)];
  const shape = {
    rows,
    columns: layout.columns,
    depth,
    batches: layout.batches,
    splits,
  };
  const out = module.tensor("result", "write", 4, buffers.split(target), layout.stored);
  const steps = previous === undefined ? [] : [addTensorStep("previous", previousOf(module), 1)];
  const width = module.size("out_columns", columns);
  const output = mappedOutput(out, {
    rows: module.size("out_rows", rows),
    columns: width,
    rowStride: width,
    period: width,
    outerStride: module.size("zero", 0),
    innerStride: module.size("one", 1),
    base: `group * ${module.size("out_group", rows * columns)}${
      splits > 1 ? ` + split * ${module.size("out_split", resultElements)}` : ""
    }`,
    vector: "columns",
  }, steps);
  const half = tile.stored === "quad" ? "_half_transforms" : "";
  const suffix = `${memory}_${a.along}_${b.along}${half}${splits > 1 ? "_split" : ""}${
    epilogueTrait(steps)
  }${splitTrait(buffers.split(operands[0]), buffers.split(operands[1]), buffers.split(target))}`;
  return mainLoopKernel(
    `winograd2d_nonfused_${problem.op.replace("-", "_")}_f32_${
      halves ? "f16x3_" : ""
    }${tile.trait}`,
    suffix,
    mode,
    module,
    shape,
    policy,
    a,
    b,
    output,
    halves
      ? { chain: splitUnit(request)?.chain, room: request.limits.maxComputeWorkgroupStorageSize }
      : {},
  );

  function previousOf(module: ModuleBuilder) {
    return module.tensor("previous", "read", 4, buffers.split(previous!));
  }
}
