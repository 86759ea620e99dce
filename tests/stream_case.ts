/** Convolutions in chunks of their batch as the tests of streams run them. */
import assert from "#assert";
import { openNpy, readNpy, writeNpy, writeNpyParts } from "../src/npy/mod.ts";
import type { ConvDType } from "../src/problem/conv_problem.ts";
import { parseDescriptor } from "../src/problem/descriptor.ts";
import type { CaseRecord } from "../src/report/record.ts";
import { type ConvAsked, convSubject } from "../src/run/conv_subject.ts";
import type { CheckMode } from "../src/run/coverage.ts";
import { batchedSubject } from "../src/run/batch.ts";
import type { Executor } from "../src/run/executor.ts";
import { fillOperands } from "../src/run/operands.ts";
import { type OperandFiles, runStream, type StreamJob } from "../src/run/stream.ts";
import { runSubject } from "../src/run/runner.ts";
import type { Planning } from "../src/run/subject.ts";
import { filterLayoutFor, type Layout } from "../src/tensor/layout.ts";
import { tensor } from "../src/tensor/tensor.ts";
import { temporaryDirectory } from "./cli.ts";

const MADE = { fill: "uniform11", seed: 5 } as const;

/** A stream: a problem, how it is planned and checked, and images of a chunk. */
export interface Case {
  readonly problem: string;
  readonly op?: "fwd" | "bwd-data" | "bwd-filter";
  readonly layout?: Layout;
  readonly planning?: Partial<Planning>;
  readonly images: number;
  readonly check?: CheckMode | "none";
  readonly relu?: boolean;
  readonly dtype?: ConvDType;
  /** Of int8 results. */
  readonly scale?: number;
  readonly lossScale?: number;
}

/** What a case asks for. */
export function askedOf(one: Case): ConvAsked {
  const { problem, op = "fwd", layout = "nchw", relu = false, dtype = "f32", scale } = one;
  const activation = relu ? "relu" : "none";
  return {
    problem: parseDescriptor(problem, op),
    layout,
    filterLayout: filterLayoutFor(layout),
    epilogue: { bias: relu, activation, ...(scale === undefined ? {} : { scale }) },
    dtype,
    ...(scale === undefined ? {} : { outDtype: "i8" }),
  };
}

/** What its operands are made of. */
function madeOf({ dtype, lossScale }: Case) {
  const fill = dtype === "i8" ? "int8" as const : MADE.fill;
  return { ...MADE, fill, ...(lossScale === undefined ? {} : { lossScale }) };
}

/** Writes a case's seeded operands into files, and opens them for as long as `body` takes. */
export async function withFiles(
  one: Case,
  body: (files: OperandFiles, folder: string) => Promise<void>,
): Promise<void> {
  using temporary = temporaryDirectory();
  using opened = new DisposableStack();
  const subject = convSubject(askedOf(one));
  const data = fillOperands(subject, madeOf(one).fill, MADE.seed);
  const files: Record<string, Awaited<ReturnType<typeof openNpy>>> = {};
  for (const { role, dtype, shape } of subject.operands) {
    const path = `${temporary.path}/${role}.npy`;
    await writeNpy(path, tensor(dtype, shape, data[role]! as never));
    files[role] = opened.use(await openNpy(path));
  }
  await body(files, temporary.path);
}

/** The case in chunks. */
export function jobOf(one: Case, files: OperandFiles): StreamJob {
  const subject = batchedSubject(askedOf(one));
  const { images, planning = {}, check = "auto" } = one;
  return {
    subject,
    cut: { images, chunks: Math.ceil(subject.batch / images) },
    source: { ...madeOf(one), files },
    planning,
    algorithm: planning.algorithm ?? "auto",
    device: "a device",
    check,
  };
}

/** Runs a case in chunks; the result as its file has it. */
export async function streamed(executor: Executor, one: Case) {
  let record: CaseRecord | undefined;
  let result: ArrayLike<unknown> = [];
  await withFiles(one, async (files, folder) => {
    const job = jobOf(one, files);
    const { whole, axis, summed } = job.subject;
    const path = `${folder}/y.npy`;
    await writeNpyParts(path, { ...whole.result, axis: summed ? 0 : axis }, async (take) => {
      record = await runStream(executor, { ...job, take });
    });
    const { dtype, shape, data } = await readNpy(path);
    assert.deepEqual({ dtype, shape }, { dtype: whole.result.dtype, shape: whole.result.shape });
    result = data as ArrayLike<unknown>;
  });
  return { record: record!, result };
}

/** Runs a case at once, on the same operands. */
export async function atOnce(executor: Executor, one: Case, files: OperandFiles = {}) {
  return await runSubject(executor, {
    subject: convSubject(askedOf(one)),
    source: { ...madeOf(one), files },
    planning: one.planning ?? {},
    algorithm: one.planning?.algorithm ?? "auto",
    device: "a device",
    check: "none",
    protocol: { samples: 1, fillMs: 0 },
  });
}

/** A plan whose sums do not depend on the batch. */
export const GEMM = {
  algorithm: "implicit-gemm",
  schedule: { policy: "small", splits: 1 },
} as const;

/** The executor with results that `spoil` has been at: those of the chunk with the given number. */
export function spoilt(
  executor: Executor,
  chunk: number,
  spoil: (result: Float32Array) => void,
): Executor {
  let fetched = 0;
  return {
    ...executor,
    load: (subject, operands) => {
      const loaded = executor.load(subject, operands);
      return {
        ...loaded,
        [Symbol.dispose]: () => loaded[Symbol.dispose](),
        prepare: async (plan, copies) => {
          const ready = await loaded.prepare(plan, copies);
          return {
            ...ready,
            fetch: async () => {
              const mine = fetched++ === chunk;
              const result = await ready.fetch();
              if (mine) spoil(result as Float32Array);
              return result;
            },
          };
        },
      };
    },
  };
}
