import { type Direct, makeDirect } from "./direct_kernel.ts";
import { type Gemm, makeGemm } from "./gemm_kernel.ts";
import type { GemmPlan } from "./gemm_plan.ts";
import type { Geometry, HostArray } from "./geometry.ts";
import type { Work } from "./jobs.ts";
import { makeMultiply } from "./micro_kernel.ts";
import { makeProject, type Project } from "./projection_kernel.ts";

/** All that running the pieces of a reference needs; arrays are on shared memory where Workers run them. */
export interface Assignment {
  readonly geometry: Geometry;
  readonly plans: readonly GemmPlan[];
  readonly work: Work;
  /** The operands, in the order of `operandTensors(op)`. */
  readonly first: HostArray;
  readonly second: HostArray;
  readonly values: Float64Array;
  readonly magnitudes: Float64Array;
}

/** Runs piece `piece` of an assignment: direct jobs come first, then matrix products, then projections. */
type RunPiece = (assignment: Assignment, piece: number) => void;

/** Makes {@linkcode RunPiece} of the kernels. Self-contained. */
function makeRunPiece(direct: Direct, gemm: Gemm, project: Project): RunPiece {
  return (assignment, piece) => {
    const { geometry, plans, work, first, second, values, magnitudes } = assignment;
    const one = work.direct[piece];
    if (one !== undefined) {
      direct(geometry, first, second, work.indices, one.start, one.end, values, magnitudes);
      return;
    }
    const job = work.gemm[piece - work.direct.length];
    if (job !== undefined) {
      gemm(plans[job.plan]!, job, first, second, values, magnitudes);
      return;
    }
    const lines = work.projection![piece - work.direct.length - work.gemm.length]!;
    project(plans[lines.plan]!, lines, first, second, values, magnitudes);
  };
}

/** Number of pieces of an assignment. */
export function pieceCount(work: Work): number {
  return work.direct.length + work.gemm.length + (work.projection?.length ?? 0);
}

/** The same function for this thread. */
export const runPiece: RunPiece = makeRunPiece(
  makeDirect(),
  makeGemm(makeMultiply()),
  makeProject(),
);

/** First message to a Worker. Pieces are handed out by the shared counter: [next, done]. */
export interface WorkerStart {
  readonly assignment: Assignment;
  readonly pieces: number;
  readonly counter: Int32Array;
}

/** A Worker's only answer: null when no piece is left, or what went wrong. */
export type WorkerEnd = { readonly error: string | null };

/**
 * Text of the Worker's program, made of the kernels' own source. A module URL would be lost when the
 * program is bundled to one file; text goes with it. `__name` is what esbuild may wrap functions in.
 */
export function workerSource(): string {
  return `
const __name = (target) => target;
const makeMultiply = ${makeMultiply};
const makeGemm = ${makeGemm};
const makeDirect = ${makeDirect};
const makeProject = ${makeProject};
const makeRunPiece = ${makeRunPiece};
const runPiece = makeRunPiece(makeDirect(), makeGemm(makeMultiply()), makeProject());
self.onmessage = ({ data: { assignment, pieces, counter } }) => {
  let error = null;
  try {
    for (let piece; (piece = Atomics.add(counter, 0, 1)) < pieces;) {
      runPiece(assignment, piece);
      Atomics.add(counter, 1, 1);
    }
  } catch (thrown) {
    error = String(thrown instanceof Error ? thrown.message : thrown);
  }
  self.postMessage({ error });
};
`;
}
