import type { HostArray } from "./geometry.ts";
import type { Work } from "./jobs.ts";
import {
  type Assignment,
  pieceCount,
  runPiece,
  type WorkerEnd,
  workerSource,
  type WorkerStart,
} from "./worker_source.ts";

/** Multiply-adds that are done on this thread before a Worker has started. */
const SMALL = { gemm: 3e7, direct: 1e7 };

/** How a computation is watched and stopped. */
interface RunOptions {
  /** Workers to start; 0 runs everything on this thread. */
  readonly workers: number;
  readonly signal?: AbortSignal | undefined;
  /** Called with the done fraction, 0 to 1, now and then. */
  readonly onProgress?: ((fraction: number) => void) | undefined;
}

/** Milliseconds this thread computes before it lets others run, and between reports of progress. */
const TURN_MS = 40;
const PROGRESS_MS = 100;

/**
 * Runs all pieces, on this thread or on Workers, and returns the arrays that were written: the
 * assignment's own, or shared copies where Workers wrote.
 *
 * @throws the signal's reason if it is aborted, `Error` if a Worker fails. No Worker outlives the call.
 */
export async function runAssignment(
  assignment: Assignment,
  options: RunOptions,
): Promise<Pick<Assignment, "values" | "magnitudes">> {
  options.signal?.throwIfAborted();
  const result = options.workers > 0
    ? await runOnWorkers(assignment, options)
    : await runHere(assignment, options);
  options.onProgress?.(1);
  return result;
}

async function runHere(assignment: Assignment, options: RunOptions): Promise<Assignment> {
  const pieces = pieceCount(assignment.work);
  let turnEnd = performance.now() + TURN_MS;
  for (let piece = 0; piece < pieces; piece++) {
    runPiece(assignment, piece);
    if (performance.now() < turnEnd) continue;
    options.onProgress?.((piece + 1) / pieces);
    await new Promise((resolve) => setTimeout(resolve, 0));
    options.signal?.throwIfAborted();
    turnEnd = performance.now() + TURN_MS;
  }
  return assignment;
}

async function runOnWorkers(assignment: Assignment, options: RunOptions): Promise<Assignment> {
  const { signal, onProgress } = options;
  const pieces = pieceCount(assignment.work);
  const shared: Assignment = {
    ...assignment,
    first: share(assignment.first),
    second: share(assignment.second),
    values: share(assignment.values),
    magnitudes: share(assignment.magnitudes),
  };
  const counter = new Int32Array(new SharedArrayBuffer(8));
  const url = URL.createObjectURL(new Blob([workerSource()], { type: "text/javascript" }));
  const workers: Worker[] = [];
  const { promise: stopped, reject: stop } = Promise.withResolvers<never>();
  // The race below may be over before anyone stops it.
  stopped.catch(() => {});
  const onAbort = () => stop(signal?.reason);
  signal?.addEventListener("abort", onAbort, { once: true });
  const timer = setInterval(() => onProgress?.(Atomics.load(counter, 1) / pieces), PROGRESS_MS);
  try {
    const start: WorkerStart = { assignment: shared, pieces, counter };
    const ends = Array.from({ length: options.workers }, () => {
      const worker = new Worker(url, { type: "module" });
      workers.push(worker);
      return workerEnd(worker, start);
    });
    await Promise.race([Promise.all(ends), stopped]);
  } finally {
    clearInterval(timer);
    signal?.removeEventListener("abort", onAbort);
    for (const worker of workers) worker.terminate();
    URL.revokeObjectURL(url);
  }
  return shared;
}

/** Starts a Worker on its share; settles when it has finished or failed. */
function workerEnd(worker: Worker, start: WorkerStart): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (why: string) =>
      reject(new Error(`Cannot compute the reference: a worker failed: ${why}`));
    worker.onmessage = ({ data }: MessageEvent<WorkerEnd>) =>
      data.error === null ? resolve() : fail(data.error);
    worker.onmessageerror = () => fail("its message cannot be read");
    worker.onerror = (event) => {
      event.preventDefault();
      fail(event.message);
    };
    worker.postMessage(start);
  });
}

/** The same values on shared memory; `array` itself where it is there already. */
function share<A extends HostArray>(array: A): A {
  if (array.buffer instanceof SharedArrayBuffer) return array;
  const kind = array.constructor as new (buffer: SharedArrayBuffer) => A;
  const copy = new kind(new SharedArrayBuffer(array.byteLength));
  copy.set(array);
  return copy;
}

/** Workers that pay on this machine. Web pages share memory with them only where isolated from other origins. */
export function mostWorkers(): number {
  return "SharedArrayBuffer" in globalThis ? navigator.hardwareConcurrency : 0;
}

/** Workers that pay for the work, `most` at most. */
export function workerCount(work: Work, most: number): number {
  const small = work.gemm.length > 0 ? SMALL.gemm : SMALL.direct;
  const pieces = pieceCount(work);
  if (work.multiplications < small || pieces < 2) return 0;
  return Math.min(most, pieces, Math.ceil(work.multiplications / small));
}
