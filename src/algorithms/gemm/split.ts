import { elementsOf } from "../../elements/elements.ts";
import { type EpilogueFactory, epilogueTrait } from "../../kernels/epilogue.ts";
import { loadedTensor } from "../../kernels/loader.ts";
import { matrixLoader } from "../../kernels/loaders/matrix.ts";
import { productKernel } from "../../kernels/product_kernel.ts";
import { unitDepth } from "../../kernels/matrix_units.ts";
import { moduleBuilder } from "../../kernels/module.ts";
import { mappedOutput } from "../../kernels/output.ts";
import { findPolicy, type TilePolicy } from "../../kernels/policy.ts";
import type { SplitHalves, SplitMaxima } from "../../kernels/split_halves.ts";
import {
  type FlaggedTiles,
  placeMarks,
  type RescaledResults,
  rescaleStep,
  splitFlags,
  tilePlaces,
} from "../../kernels/split_rescale.ts";
import type { GemmProblem, GemmTensor } from "../../problem/gemm_problem.ts";
import { SPLIT_ROUNDING, type SplitDrift } from "../../problem/split_rounding.ts";
import { type DeviceModel, holdsResults } from "../device/model.ts";
import { isSmallCpu } from "../loop_cost.ts";
import { clearMarksPass, maximaPasses, pass, splitHalvesPass } from "../passes.ts";
import type { Pass } from "../plan.ts";
import type { BufferList } from "../tensors.ts";
import { policyFits } from "../tile_candidates.ts";
import { gemmVector } from "./choose.ts";
import { type OperandShape, packedSize, resultMap } from "./operands.ts";

/** What a product of f32 in halves is made of. */
interface SplitRequest {
  readonly problem: GemmProblem;
  readonly device: DeviceModel;
  readonly buffers: BufferList;
  readonly place: Readonly<Partial<Record<GemmTensor, number>>>;
  readonly shapes: { readonly a: OperandShape; readonly b: OperandShape };
  /** Of the product: on a matrix unit. */
  readonly policy: TilePolicy;
  /** Values along the depth that the product goes over. */
  readonly depth: number;
  readonly drift: SplitDrift;
  /** What follows the sums. */
  readonly epilogue: EpilogueFactory;
}

/** What a product in halves has beside a product of halves. */
export type SplitProduct = ReturnType<typeof splitProduct>;

export const SPLIT_NOTE =
  "f16x3: of f32 in two halves three products; passes before it find powers of two for rows and columns and split " +
  "both, one after it computes in f32 what halves do not hold";

export const UNSTREAMED_NOTE = "no stream-K: sums of halves are finished by a pass of their own";

/** Policies of the kernel that computes flagged tiles: small tiles, since few are. */
const REST_POLICIES = ["small", "tiny"] as const;

/** Plans what a product in halves needs beside itself. */
export function splitProduct(request: SplitRequest) {
  const { problem: { m, n, k, batch }, policy, device, buffers, place, shapes } = request;
  const [small, tiny] = REST_POLICIES.map((name) => findPolicy(name)!) as [TilePolicy, TilePolicy];
  const fits = !isSmallCpu(device) && holdsResults(device, small) &&
    policyFits(small, buffers.limits, shapes.a, shapes.b);
  const rest = fits ? small : tiny;
  const tiles: FlaggedTiles = { batches: batch, rows: m, columns: n, tile: rest };
  const flags = splitFlags(tiles);
  const marks = placeMarks(batch * m, batch * n);
  // Behind them how fine the rows of A are, whose high halves are rounded away from zero then.
  const away = request.drift.highs === "away";
  const words = marks.words + (away ? batch * m : 0);
  const results: RescaledResults = {
    marks,
    depth: k,
    drift: request.drift.drift ?? 0,
    ...tilePlaces(tiles),
  };
  const places = {
    marks: buffers.workspace("marks of rows and columns", words, "u32"),
    flags: buffers.workspace("flags of tiles", flags, "u32"),
  };
  const firstFine = (name: "a" | "b") => name === "a" && away ? marks.words : undefined;
  const largest = (name: "a" | "b") => {
    const shape = { ...maximaOf(shapes[name], marks.first[name]), firstFine: firstFine(name) };
    return maximaPasses(buffers, places, shape, place[name]!);
  };
  const deep = unitDepth(policy.matrix!.unit);
  const halvesOf = (name: "a" | "b") => {
    const shape = { ...shapes[name], depth: request.depth };
    const padded = packedSize(shape, policy, name === "a" ? "rows" : "columns");
    const elements = batch * padded.places * padded.depth;
    return { buffer: buffers.workspace(`halves of ${name}`, elements, "f16"), padded };
  };
  const halves = { a: halvesOf("a"), b: halvesOf("b") };
  const splitting = (name: "a" | "b") => {
    const { buffer, padded } = halves[name];
    const rounding = (name === "a" ? request.drift.highs : undefined) ?? "nearest";
    const { along, batchStride, places: count, depth } = shapes[name];
    const [near, far] = along === "place" ? [1, count] : [depth, 1];
    const first = marks.first[name];
    const shape: SplitHalves = {
      ...shapes[name],
      strides: { batch: batchStride, place: near, depth: far },
      largest: { first, batch: count, place: 1 },
      firstFine: firstFine(name),
      counts: { first: first + marks.places, batch: count, kind: marks.places },
      flags: name === "a" ? flags : 0,
      unitDepth: deep,
      padded,
      rounding,
    };
    return splitHalvesPass(buffers, places, shape, place[name]!, buffer);
  };
  // Takes sums back to their size.
  const epilogue: EpilogueFactory = (module, width, rowIndex) => [
    rescaleStep(module, results),
    ...request.epilogue(module, width, rowIndex),
  ];
  return {
    before: [
      clearMarksPass(buffers, places, words),
      ...largest("a"),
      ...largest("b"),
      splitting("a"),
      splitting("b"),
    ],
    // Computes flagged tiles in f32.
    after: [restPass(request, rest, places.flags)],
    places,
    halves,
    epilogue,
  };
}

/** An operand's places and its depth, of which each place has a largest value. */
function maximaOf(
  { batches, places, depth, along, batchStride }: OperandShape,
  firstKey: number,
): SplitMaxima {
  const [place, deep] = along === "place" ? [1, places] : [depth, 1];
  const outer = { count: batches, stride: batchStride };
  return {
    keys: [outer, { count: places, stride: place }],
    rest: [{ count: depth, stride: deep }],
    firstKey,
  };
}

/** The pass that computes flagged tiles in f32, as a whole: of others its workgroups do nothing. */
function restPass(
  { problem, buffers, place, shapes, epilogue }: SplitRequest,
  policy: TilePolicy,
  flags: number,
): Pass {
  const { m, n, k, batch, transpose } = problem;
  const module = moduleBuilder(buffers.mode);
  const types = elementsOf({ dtype: "f32" });
  const loader = (name: "a" | "b") => {
    const shape = shapes[name];
    const access = loadedTensor(module, name, shape.vector, buffers.split(place[name]!), types);
    return matrixLoader(module, name, access, { ...shape, tileDepth: policy.depth });
  };
  const [a, b] = [loader("a"), loader("b")];
  const result = place.output!;
  const vector = gemmVector(problem);
  const width = vector === "none" ? 1 : 4;
  const out = module.tensor("result", "write", width, buffers.split(result));
  const steps = epilogue(module, width, (row) => row);
  const flag = module.tensor("flags", "read", 1, buffers.split(flags), "u32");
  const map = resultMap(module, problem, vector);
  const shape = { rows: m, columns: n, depth: k, batches: batch, splits: 1 };
  const suffix = `${transpose}_a${shapes.a.vector}b${shapes.b.vector}_o${width}_flagged${
    k > SPLIT_ROUNDING.chain ? "_chains" : ""
  }${epilogueTrait(steps)}${buffers.splitTrait(place.a, place.b, result)}`;
  const kernel = productKernel(module, {
    traits: "gemm_f32",
    suffix,
    shape: { ...shape, skip: `  if (${flag.load("id")} == 0u) { return; }` },
    policy,
    loaders: [a, b],
    output: mappedOutput(out, map, steps),
    workgroupBytes: buffers.limits.maxComputeWorkgroupStorageSize,
    sums: { threadChain: k > SPLIT_ROUNDING.chain ? SPLIT_ROUNDING.chain : undefined },
  });
  const places = { ...place, result, flags };
  return pass(kernel, buffers, places);
}
