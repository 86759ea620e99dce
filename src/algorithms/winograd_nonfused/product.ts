import { addTensorStep, epilogueTrait } from "../../kernels/epilogue.ts";
import { loadedTensor, policyVector } from "../../kernels/loader.ts";
import { matrixLoader, packedLoader } from "../../kernels/loaders/matrix.ts";
import { mainLoopKernel } from "../../kernels/main_loop.ts";
import {
  type ModuleBuilder,
  moduleBuilder,
  type SizedKernel,
  splitTrait,
} from "../../kernels/module.ts";
import { mappedOutput } from "../../kernels/output.ts";
import { HALVES } from "../../kernels/split_halves.ts";
import type { Context } from "./context.ts";
import { splitUnit } from "./split.ts";
import { type ChunkLayout, loadedAlong } from "./workspace.ts";

/** The main loop over a chunk's products. `previous`: products of earlier chunks, to be added. */
export function productKernel(
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
  const out = module.tensor("result", "write", 4, buffers.split(target));
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
  const suffix = `${memory}_${a.along}_${b.along}${splits > 1 ? "_split" : ""}${
    epilogueTrait(steps)
  }${splitTrait(buffers.split(operands[0]), buffers.split(operands[1]), buffers.split(target))}`;
  return mainLoopKernel(
    `winograd2d_nonfused_${problem.op.replace("-", "_")}_f32_${
      halves ? "f16x3_" : ""
    }${tile.trait}`,
    suffix,
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
