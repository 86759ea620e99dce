import { packedElements } from "../../kernels/pack_strided.ts";
import { type Cut, cutProduct } from "../cut.ts";
import { streamsOf } from "../cut_passes.ts";
import type { Product } from "../product.ts";
import { expectPlanned, isRefusal, type Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { operandBytes, resultElements } from "../tensors.ts";
import type { Operands } from "./access.ts";
import { classOperands } from "./class_operands.ts";
import { correlationOperands, gatherOperands } from "./operands.ts";
import { implicitTime } from "./price.ts";

/** What implicit GEMM multiplies, how that is cut, and what it takes. */
export interface ImplicitProduct {
  readonly operands: Operands;
  readonly product: Product;
  readonly cut: Cut;
  /** Predicted microseconds. */
  readonly time: number;
}

/** The products that a request may become; results are the same. */
function operandsOf(request: PlanRequest): readonly [Operands, ...Operands[]] {
  const { op, stride } = request.problem;
  if (op === "bwd-filter") return [correlationOperands(request)];
  if (op === "fwd" || stride.every((step) => step === 1)) return [gatherOperands(request)];
  return classOperands(request);
}

/** The product of a request that is predicted to take least. */
export function implicitProduct(request: PlanRequest): Planned<ImplicitProduct> {
  const tried = operandsOf(request).map((operands): Planned<ImplicitProduct> => {
    const product = productOf(request, operands);
    const cut = cutProduct(request, product);
    return isRefusal(cut)
      ? cut
      : { operands, product, cut, time: implicitTime(request, operands, cut) };
  });
  // Whether a policy fits depends on operands alike for all of them.
  if (tried.some(isRefusal)) return tried[0]!;
  return tried.map(expectPlanned).reduce((best, one) =>
    one.time < best.time || one.time === best.time && one.cut.cost < best.cut.cost ? one : best
  );
}

/** The product of a request's operands, before it is cut. */
function productOf(request: PlanRequest, operands: Operands): Product {
  return {
    rows: operands.rows,
    columns: operands.columns,
    batches: operands.batches,
    steps: (policy) => Math.ceil(operands.depth(policy) / policy.depth),
    ...(operands.share === undefined ? {} : { share: operands.share }),
    elements: resultElements(request.problem),
    workspaceBytes: (policy) => {
      const pack = operands.pack(policy);
      return pack === undefined ? 0 : operandBytes(request) * packedElements(pack);
    },
    streams: streamsOf(request),
    a: operands.a,
    b: operands.b,
  };
}
