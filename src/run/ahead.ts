import type { OperandData, PlanOperands } from "./subject.ts";

/** Operands that are being read: taken once, and done with before their files are closed. */
export interface OperandsAhead extends AsyncDisposable {
  readonly operands: PlanOperands;
}

/** Begins to read operands that come in chunks: the first ones are there, or on their way, when they are asked for. */
export function aheadOf(operands: PlanOperands): OperandsAhead {
  const begun: AsyncIterableIterator<unknown>[] = [];
  const own = Object.entries(operands).map(([role, data]: [string, OperandData]) => {
    if (typeof data !== "function") return [role, data];
    const chunks = begin(data());
    begun.push(chunks);
    return [role, () => chunks];
  });
  return {
    operands: Object.fromEntries(own),
    async [Symbol.asyncDispose]() {
      await Promise.all(begun.map((chunks) => chunks.return!()));
    },
  };
}

/** The same chunks, of which the first one is asked for now. */
function begin<T>(chunks: AsyncIterable<T>): AsyncIterableIterator<T> {
  const iterator = chunks[Symbol.asyncIterator]();
  let first: Promise<IteratorResult<T>> | undefined = iterator.next();
  // What fails of it is thrown where it is taken.
  first.catch(() => {});
  return {
    next() {
      const next = first ?? iterator.next();
      first = undefined;
      return next;
    },
    async return() {
      await iterator.return?.();
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
