import { type ElementChoice, elementsOf } from "../elements/elements.ts";
import type { TileAccess } from "../kernels/loader.ts";
import type { KernelVariant } from "../kernels/variant.ts";
import { multipliedSteps } from "../kernels/product_kernel.ts";
import {
  type MatrixUnit,
  matrixUnitFor,
  type MatrixUnits,
  type UnitChain,
  unitChain,
} from "../kernels/matrix_units.ts";
import type { TilePolicy } from "../kernels/policy.ts";
import type { MathChoice } from "./request.ts";
import type { Schedule } from "./schedule.ts";

/** A product before it is cut: `batches` of rows x columns x depth. */
export interface Product {
  readonly rows: number;
  readonly columns: number;
  readonly batches: number;
  /** Depth in steps of a policy: padding depends on the tile's depth. */
  steps(policy: TilePolicy): number;
  /** Of a tile with its whole depth: its steps but for what the last one leaves out; `steps` where absent. */
  wholeSteps?(policy: TilePolicy): number;
  /** Mean steps of a tile over the most, where rows differ in depth; 1 where absent. */
  readonly share?: number;
  /** Elements of the result, all batches. */
  readonly elements: number;
  /** Bytes of a partial result; 4 where absent. */
  readonly partialBytes?: number;
  /** Bytes of a result, where whole tiles store it; 4 where absent. */
  readonly resultBytes?: number;
  /** Whether a cut may run some tiles whole and others split: stream-K. */
  readonly streams?: boolean;
  /** Whether a pass of its own finishes its sums, whether they are of splits or whole. */
  readonly finishedApart?: boolean;
  /** Workspace of a policy beside partial results; 0 where absent. */
  workspaceBytes?(policy: TilePolicy): number;
  /** What its operands can be multiplied on, where the device has it, and how far that adds up. */
  readonly matrix?:
    | {
      readonly unit: MatrixUnit;
      readonly lanes: number;
      readonly chain: UnitChain | undefined;
      /** f32 operands, in two halves each: on nothing else. */
      readonly split?: boolean;
    }
    | undefined;
  readonly a: OperandAccess;
  readonly b: OperandAccess;
}

/** Steps of a product that is so deep, by the policy, where all of its rows are. */
export function stepsOf(
  depth: (policy: TilePolicy) => number,
  variant: KernelVariant | undefined,
): Pick<Product, "steps" | "wholeSteps"> {
  return {
    steps: (policy) => Math.ceil(depth(policy) / policy.depth),
    wholeSteps: (policy) => multipliedSteps(depth(policy), policy, variant),
  };
}

/**
 * The matrix unit that a product of these elements may run on; f16 then stays so in workgroup memory. Of f32 in halves it is that of f16.
 *
 * @param wide Whether results leave in fours that follow each other.
 * @param depth Products of a sum, which decide how far halves are added up, as few where absent.
 */
export function productUnit(
  request: ElementChoice & {
    readonly math?: MathChoice | undefined;
    readonly schedule?: Schedule;
    readonly matrixUnits?: MatrixUnits;
  },
  wide = true,
  depth = 0,
): Product["matrix"] {
  const elements = elementsOf(request);
  const { flush, matrixUnits: asked, halfTile } = request.schedule ?? {};
  if (request.math === "f16x3") {
    const { matrixUnits } = request;
    const unit = matrixUnitFor({ storage: "f16", accumulate: "f32" }, matrixUnits);
    const split = { products: depth, cutsOff: matrixUnits?.cutsOff ?? false };
    const chain = unitChain("f32", { flush, split, wide });
    return unit && { unit, lanes: matrixUnits!.lanes, chain, split: true };
  }
  const unit = matrixUnitFor(elements, request.matrixUnits);
  return unit === undefined || asked === false || halfTile === false ? undefined : {
    unit,
    lanes: request.matrixUnits!.lanes,
    chain: unitChain(elements.result, { flush, wide }),
  };
}

/** What of a tile's loads decides whether and how well a policy runs. */
export type OperandAccess =
  & Pick<TileAccess, "along">
  & Partial<TileAccess>
  & {
    /** Whether each step finds anew where it lies. */
    readonly gathered?: boolean;
    /** Elements that its loads step over: for matrix units they are of eight halves where all are whole eights. */
    readonly steps?: readonly number[];
    /** What packing the operand for a policy costs, in multiply-adds; undefined where it is read as it is. */
    packing?(policy: TilePolicy): number | undefined;
    /** Along which side it lies when it is packed; along its places where absent. */
    packedAlong?(policy: TilePolicy): TileAccess["along"];
  };
