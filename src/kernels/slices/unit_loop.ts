import exchange from "../../../shaders/exchange.wgsl" with { type: "text" };
import { type StepLoader, stepLoopText, type StepProducts } from "../loop/step_loop.ts";
import { MATRIX_FEATURES } from "../matrix_units.ts";
import {
  type ModuleBuilder,
  render,
  type SizedKernel,
  sizedKernel,
  type SizeMode,
} from "../module.ts";
import { resultsText, type SliceStore } from "./exchange.ts";
import { sliceIterations, type SliceLoopShape, sliceWorkgroupText } from "./loop.ts";
import type { PatchTransform } from "./patch.ts";
import {
  unitSliceBytes,
  unitSliceName,
  type UnitSlicePolicy,
  unitSliceSums,
  unitSliceThreads,
  unitSliceTile,
  unitSliceVectors,
} from "./unit_policy.ts";

/** What of a sliced product is shared by threads that multiply themselves and by matrix units. */
export type UnitSliceShape = Omit<
  SliceLoopShape,
  "across" | "scalar" | "outputLayout" | "rotatedLoop" | "rotation"
>;

/** Slices of workgroups of which a multiprocessor runs two. */
const FEW_SLICES = 4;

/** Calls `text` for each of a subgroup's matrices of sums. */
function eachSum<T>(
  { matrices: [rows, columns] }: UnitSlicePolicy,
  text: (name: string, row: number, column: number) => T,
): T[] {
  return Array.from({ length: rows * columns }, (_, i) => {
    const [row, column] = [Math.floor(i / columns), i % columns];
    return text(`sum${row}_${column}`, row, column);
  });
}

/** The text of a subgroup's products of a step. */
function unitSliceProducts(policy: UnitSlicePolicy, parts: StepProducts["parts"]): StepProducts {
  const { unit, matrices: [rows, columns] } = policy;
  const tile = unitSliceTile(policy);
  const left = `subgroup_matrix_left<${unit.component}, ${unit.k}, ${unit.m}>`;
  const right = `subgroup_matrix_right<${unit.component}, ${unit.n}, ${unit.k}>`;
  const result = `subgroup_matrix_result<${unit.result}, ${unit.n}, ${unit.m}>`;
  // A matrix begins with an element of the tile: eight places.
  const load = (side: "a" | "b", index: number) =>
    `subgroupMatrixLoad<${
      side === "a" ? `${left}, col_major` : `${right}, row_major`
    }>(&tile, ${side}_first + ${index * (side === "a" ? unit.m : unit.n) / 8}u, ${
      tile.strides[side]
    }u)`;
  const multiply = [
    "    {",
    ...Array.from({ length: rows }, (_, i) => `      let a${i} = ${load("a", i)};`),
    ...Array.from({ length: columns }, (_, j) => [
      `      let b${j} = ${load("b", j)};`,
      ...Array.from({ length: rows }, (_, i) => {
        const sum = `sum${i}_${j}`;
        return `      ${sum} = subgroupMatrixMultiplyAccumulate(a${i}, b${j}, ${sum});`;
      }),
    ]).flat(),
    "    }",
  ].join("\n");
  return {
    declarations: [`var<workgroup> tile: array<vec4<u32>, ${unitSliceVectors(policy)}>;`],
    subgroups: true,
    sums: eachSum(policy, (name) => `  var ${name} = ${result}();`).join("\n"),
    multiply,
    multiplyLast: "",
    fold: "",
    finish: "",
    parts: parts && {
      ...parts,
      clear: eachSum(policy, (name) => `    ${name} = ${result}();`).join("\n"),
    },
  };
}

/** Declares which slice is the subgroup's. */
function unitSlicePlaces(policy: UnitSlicePolicy): string {
  const tile = unitSliceTile(policy);
  return [
    // No subgroup beyond those that a device's own count may add loads from elsewhere.
    `  let unit_slice = min(subgroup, ${policy.slices - 1}u);`,
    `  let a_first = unit_slice * ${tile.slice}u;`,
    `  let b_first = unit_slice * ${tile.slice}u + ${tile.firsts.b}u;`,
    `  let sums_first = unit_slice * ${unitSliceSums(policy).slice}u;`,
  ].join("\n");
}

/** Sums of all slices through workgroup memory, a row of matrices after the other, to threads that transform and store results. */
function unitSliceOutput(
  policy: UnitSlicePolicy,
  output: PatchTransform,
  store: SliceStore,
): string {
  const { unit, slices, matrices } = policy;
  const sums = unitSliceSums(policy);
  const rounds = Array.from({ length: matrices[0] }, (_, round) => ({
    stores: [
      ...(round === 0 ? ["    workgroupBarrier();"] : []),
      ...eachSum(policy, (name, row, column) =>
        row !== round ? [] : [
          `    subgroupMatrixStore<row_major>(&tile, sums_first + ${
            column * unit.n / 4
          }u, ${name}, ${sums.stride}u);`,
        ]).flat(),
    ].join("\n"),
    place: [
      `      let line = position / ${sums.width}u;`,
      `      let vector = position % ${sums.width}u;`,
      `      let at = line * ${sums.stride}u + vector;`,
      `      let row = first_row + ${round * unit.m}u + line;`,
      "      let column = first_column + vector * 4u;",
    ].join("\n"),
  }));
  return render(exchange, {
    rounds,
    positions: unit.m * sums.width,
    threads: unitSliceThreads(policy),
    results: resultsText(
      { slices },
      output,
      store,
      (slice) => `bitcast<vec4f>(tile[${slice * sums.slice}u + at])`,
    ),
  });
}

/**
 * The main loop of fused Winograd algorithms on matrix units: a slice's products by a subgroup, or by several; operands
 * transformed on their way into workgroup memory, results on their way out of it.
 *
 * @param loader Of both operands.
 */
export function unitSliceKernel(
  traits: string,
  suffix: string,
  mode: SizeMode,
  module: ModuleBuilder,
  shape: UnitSliceShape,
  policy: UnitSlicePolicy,
  loader: StepLoader,
  output: PatchTransform,
  store: SliceStore,
): SizedKernel {
  const threads = unitSliceThreads(policy);
  const { partial = 0 } = shape;
  const { rows, columns, matrices, unit, written } = policy;
  const name = `${traits}_${unitSliceName(policy)}${partial === 0 ? "" : "_partial"}_${suffix}`;
  const partialSteps = partial === 0 ? "" : module.parameter("partial_steps", partial);
  const none: StepLoader = { places: "", registers: "", fetch: "", store: "" };
  const wgsl = stepLoopText({
    name,
    summary: `${policy.slices} slices of ${rows} x ${columns} results a workgroup, ${
      matrices.join(" x ")
    } matrices of ${unit.m} x ${unit.n} a subgroup, ${policy.depth} deep steps.`,
    declarations: [store.declarations],
    threads,
    ...sliceWorkgroupText(module, shape, policy),
    places: unitSlicePlaces(policy),
    schedule: { buffers: "one", prefetch: true },
    steps: shape.steps,
    loaders: [loader, none],
    products: unitSliceProducts(
      policy,
      // Two workgroups of four subgroups gain by registers that no tile waits in meanwhile.
      partial > 0 &&
        { steps: partialSteps, clear: "", stored: true, reloads: policy.slices <= FEW_SLICES },
    ),
    // Steps beyond the end add nothing: all that their patches hold lies outside.
    rounds: written === 2 ? written : undefined,
    asks: written === 1,
    output: unitSliceOutput(policy, output, store),
  }, module);
  const sized = sizedKernel(
    name,
    mode,
    wgsl,
    module,
    [threads, 1, 1],
    unitSliceBytes(policy),
    sliceIterations(shape, written),
  );
  const { kernel } = sized;
  const features = new Set([...kernel.features, "shader-f16", ...MATRIX_FEATURES]);
  return { ...sized, kernel: { ...kernel, features: [...features] } };
}
