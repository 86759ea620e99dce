import { elementsOf } from "../../elements/elements.ts";
import type { Scalar } from "../../elements/scalar.ts";
import {
  loadedTensor,
  policyVector,
  type TileAccess,
  type TileLoader,
} from "../../kernels/loader.ts";
import { filterLoader, type FilterShape } from "../../kernels/loaders/filter.ts";
import type { ModuleBuilder, TensorAccess, TensorSplit } from "../../kernels/module.ts";
import type { PackShape } from "../../kernels/pack.ts";
import { TILE_POLICIES, type TilePolicy } from "../../kernels/policy.ts";
import type { ResultPlaces } from "../../kernels/reduce.ts";
import type { UnevenRows } from "../../kernels/tile_scheduler.ts";
import type { ConvTensor } from "../../problem/conv_problem.ts";
import type { Layout } from "../../tensor/layout.ts";
import type { OperandAccess } from "../product.ts";
import type { PlanRequest } from "../request.ts";

/** How an operand lies in memory. */
export type Access = OperandAccess & { readonly value: Scalar; readonly vector: 1 | 4 };

/** Elements of a policy's loads of an operand. */
export function accessVector(policy: TilePolicy, { vector, steps = [] }: Access): 1 | 4 | 8 {
  return policyVector(policy, vector, steps);
}

/** The product a problem becomes, and how its operands and result lie in memory. */
export interface Operands {
  readonly rows: number;
  readonly columns: number;
  /** Independent products: groups, and classes of strides whose rows tiles do not share. */
  readonly batches: number;
  /** Rows of the mainloop, where they are padded between classes; `rows` where absent. */
  loopRows?(policy: TilePolicy): number;
  /** Mean depth of the rows over the most; 1 where absent. */
  readonly share?: number;
  /** What rows of classes of strides are. */
  uneven?(module: ModuleBuilder, policy: TilePolicy): UnevenRows;
  readonly a: Access;
  readonly b: Access;
  /** What A is read from where nothing is packed. */
  readonly left: ConvTensor;
  /** Products that a result sums, padding of the taps included. */
  depth(policy: TilePolicy): number;
  /** The filter's packed form, which is read in its place. */
  pack(policy: TilePolicy): PackShape | undefined;
  loaders(
    module: ModuleBuilder,
    policy: TilePolicy,
    split: (operand: "a" | "b") => TensorSplit,
  ): [TileLoader, TileLoader];
  readonly result: ResultPlaces;
  /** Whether a step may reach into several taps, so that every load finds its own. */
  crossesTaps(policy: TilePolicy): boolean;
  /** Enters the kernel's name. */
  trait(policy: TilePolicy): string;
  /** What products of classes of strides are, for notes. */
  readonly classes?: string;
}

/** `nhwc`, `nhwc_to_nchw`: how images lie, and results where they lie otherwise, as it stands in kernel names. */
export function layoutTrait({ layout }: Pick<PlanRequest, "layout">, results: Layout): string {
  return results === layout ? layout : `${layout}_to_${results}`;
}

/** Elements of a load, four where they lie on whole fours. */
export function loadVector(elements: number): 1 | 4 {
  return elements % 4 === 0 ? 4 : 1;
}

/** A of a product that a filter is: packed first, or read as it lies. */
export interface FilterOperand {
  readonly access: Access;
  /** Its packed form; undefined where it is read as it lies. */
  pack(policy: TilePolicy): PackShape | undefined;
  /** Enters the kernel's name: nothing of a packed one. */
  trait(policy: TilePolicy): string;
  loader(module: ModuleBuilder, policy: TilePolicy, split: TensorSplit): TileLoader;
}

/** How a product reaches its filter's taps. */
interface FilterReach {
  pack(policy: TilePolicy): PackShape;
  /** Taps of each axis. */
  readonly taps: readonly number[];
  packed(
    module: ModuleBuilder,
    tensor: TensorAccess,
    shape: PackShape,
    policy: TilePolicy,
    vector: TileAccess["vector"],
  ): TileLoader;
  /** Of a filter as it lies; undefined where it is read packed only. */
  readonly lying:
    | ((module: ModuleBuilder, policy: TilePolicy) => Pick<FilterShape, "tap" | "row">)
    | undefined;
}

/** A filter of so few elements is read from the caches nearby, however it lies. */
const CACHED_ELEMENTS = 1 << 14;

/** Every way to read a filter: packed, and as it lies where neighbours lie together, or are few. */
export function filterOperands(
  request: PlanRequest,
  { pack, taps, packed, lying }: FilterReach,
): readonly [FilterOperand, ...FilterOperand[]] {
  const elements = elementsOf(request);
  const { tile } = elements;
  const aligned: Access = { along: "place", vector: 4, value: tile };
  const first: FilterOperand = {
    access: aligned,
    pack,
    trait: () => "",
    loader(module, policy, split) {
      const vector = policyVector(policy, aligned.vector, []);
      const tensor = loadedTensor(module, "packed", vector, split, elements);
      return packed(module, tensor, pack(policy), policy, vector);
    },
  };
  // Strides are those of every policy.
  const place = lying && lyingPlace(pack(TILE_POLICIES[0]!));
  if (lying === undefined || place === undefined) return [first];
  const { along, vector, together, whole: steps } = place;
  const { tapRows } = pack(TILE_POLICIES[0]!);
  const runs = tapRows && { runs: tapRows.taps };
  const access: Access = { along, vector, value: tile, steps, ...runs };
  return [first, {
    access,
    pack: () => undefined,
    trait: (policy) =>
      `${request.filterLayout}${accessVector(policy, access)}${together ? along.slice(0, 1) : "s"}`,
    loader(module, policy, split) {
      const vector = accessVector(policy, access);
      const tensor = loadedTensor(module, "filter", vector, split, elements);
      const reach = lying(module, policy);
      const lies = { along, together, vector };
      const shape = { ...pack(policy), ...lies, ...reach, taps, tileDepth: policy.depth };
      return filterLoader(module, tensor, shape);
    },
  }];
}

interface LyingFilter extends Pick<FilterShape, "along" | "together"> {
  readonly vector: 1 | 4;
  /** What must be of whole vectors. */
  readonly whole: readonly number[];
}

/** How a filter is read as it lies: along its rows or its channels; undefined where neighbours of both lie far apart. */
function lyingPlace(shape: PackShape): LyingFilter | undefined {
  const { groups, rows, channels, taps, strides } = shape;
  const along = strides.row === 1 ? "place" : strides.channel === 1 ? "depth" : undefined;
  if (along === undefined) {
    const elements = groups * rows * channels * taps;
    return elements > CACHED_ELEMENTS
      ? undefined
      : { along: "depth", together: false, vector: 1, whole: [] };
  }
  const whole = [
    along === "place" ? rows : channels,
    along === "place" ? strides.channel : strides.row,
    taps > 1 ? strides.tap : 0,
    groups > 1 ? strides.group : 0,
  ];
  const vector = whole.every((elements) => elements % 4 === 0) ? 4 : 1;
  return { along, together: true, vector, whole };
}
