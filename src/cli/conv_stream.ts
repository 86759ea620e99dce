import { InputRangeError, InputTypeError } from "../errors.ts";
import { type TensorSource, writeNpyParts } from "../npy/mod.ts";
import { canSeek } from "../npy/write.ts";
import type { CaseRecord } from "../report/record.ts";
import type { ConvAsked } from "../run/conv_subject.ts";
import { type BatchCut, type BatchedSubject, batchedSubject, cutBatch } from "../run/batch.ts";
import type { Executor } from "../run/executor.ts";
import { type OperandFiles, runStream, type StreamJob, type TakePart } from "../run/stream.ts";
import { runSubject } from "../run/runner.ts";
import type { HostData } from "../run/subject.ts";
import { untimed } from "../run/timeline.ts";
import { dtypeBytes } from "../tensor/dtype.ts";
import { elementCount } from "../tensor/tensor.ts";
import { type Computation, withExecutor } from "./compute.ts";
import type { ConvOptions } from "./conv_options.ts";
import { formData, formShape, type ResultForm } from "./conv_files.ts";

/** A convolution that ran; one that ran in chunks has written its result. */
export interface ComputedConv {
  readonly record: CaseRecord;
  readonly result?: HostData;
}

interface ConvComputation extends Computation {
  readonly source: Computation["source"] & { readonly files: OperandFiles };
}

/** Less than this is not read or written at a time where images do not follow each other in a file. */
const LEAST_RUN = 64 * 2 ** 10;

/**
 * Computes a convolution: whole, or in chunks of its batch, each of which is read, computed, checked and written while
 * others are, where it is larger than memory or chunks are asked for.
 *
 * @throws as `compute()`; {RangeError} where chunks would be read or written in pieces of less than 64 KiB.
 */
export function computeConv(
  asked: ConvAsked & { readonly form: ResultForm },
  computation: ConvComputation,
  options: ConvOptions,
): Promise<ComputedConv> {
  const { files } = computation.source;
  const subject = batchedSubject(asked);
  const fromFiles = subject.cut.every((role) => files[role] !== undefined);
  if (options.chunk !== undefined && !fromFiles) {
    throw new InputTypeError("Cannot convolve: --chunk needs files, not --problem");
  }
  const { during = untimed } = computation;
  return withExecutor(computation, options, async (executor, job, show) => {
    const cut = fromFiles ? cutOn(executor, subject, computation, options) : undefined;
    if (cut === undefined) return await runSubject(executor, job);
    for (const role of subject.cut) refuseShortRuns(files[role]!, subject, cut, options);
    const { output } = options;
    refuseScatteredOutput(subject, cut, output);
    const stream = { ...job, subject, cut, source: computation.source, onProgress: timeLeft(show) };
    return { record: await during("chunks", () => runInto(executor, stream, asked.form, options)) };
  });
}

function cutOn(
  { device }: Executor,
  subject: BatchedSubject,
  { planning }: Computation,
  { chunk }: ConvOptions,
): BatchCut | undefined {
  return cutBatch({
    subject,
    maxBufferBytes: device.limits["maxBufferSize"] ?? Infinity,
    maxBytes: planning.maxWorkspaceBytes,
    images: chunk,
  });
}

async function runInto(
  executor: Executor,
  job: StreamJob,
  form: ResultForm,
  { output, force }: Pick<ConvOptions, "output" | "force">,
): Promise<CaseRecord> {
  if (output === undefined) return await runStream(executor, job);
  const { whole, axis, summed } = job.subject;
  let record: CaseRecord;
  const { result } = whole;
  const file = { ...result, shape: formShape(form, result.shape), axis: summed ? 0 : axis };
  await writeNpyParts(output, file, async (take) => {
    // What is summed comes whole; of what is cut nothing is permuted.
    const inFile: TakePart = (data, part) => {
      const size = file.shape[file.axis]!;
      return summed
        ? take(formData(form, result, data), { first: 0, count: size, size })
        : take(data, part);
    };
    record = await runStream(executor, { ...job, take: inFile });
  }, { replace: force ?? false });
  return record!;
}

function timeLeft(show: (text: string) => void): (done: number, chunks: number) => void {
  const start = performance.now();
  return (done, chunks) => {
    const left = (performance.now() - start) / done * (chunks - done) / 1000;
    show(`${done} of ${chunks} chunks, ${left.toFixed(0)} s left`);
  };
}

/** @throws {RangeError} with the command that converts the file. */
function refuseShortRuns(
  file: TensorSource,
  { axis }: BatchedSubject,
  { images }: BatchCut,
  { layout, filterLayout }: ConvOptions,
): void {
  const { runBytes, shape } = file.part(axis, 0, images);
  if (runBytes >= LEAST_RUN || runBytes === elementCount(shape) * dtypeBytes(file.dtype)) {
    return;
  }
  const { path } = file;
  const [options, then] = file.header?.fortranOrder ? ["", ""] : [
    ` --from-layout ${layout} --to-layout nchw`,
    `, then --layout nchw --filter-layout ${filterLayout ?? "crsk"}`,
  ];
  throw new InputRangeError(
    `Cannot read ${path} in chunks of ${images} images: ${runBytes} bytes of its innermost batch at a time, ` +
      `expected ${LEAST_RUN}; wgconv tensor convert ${path} out.npy${options} fixes it${then}`,
  );
}

/** @throws {RangeError | TypeError} where a result's batch lies innermost, and would be written in small pieces. */
function refuseScatteredOutput(
  { whole: { result }, axis, summed }: BatchedSubject,
  { images }: BatchCut,
  output: string | undefined,
): void {
  if (output === undefined || summed || axis === 0) return;
  if (!canSeek(output)) {
    throw new InputTypeError(
      `Cannot write ${output === "-" ? "stdout" : output} in chunks: the batch lies innermost in ` +
        "chwn, take another --layout, or a .npy file",
    );
  }
  const run = images * dtypeBytes(result.dtype);
  if (run >= LEAST_RUN) return;
  throw new InputRangeError(
    `Cannot write ${output} in chunks of ${images} images: its batch lies innermost, in pieces ` +
      `of ${run} bytes, expected ${LEAST_RUN}; take another --layout, and ` +
      "wgconv tensor convert on its operands",
  );
}
