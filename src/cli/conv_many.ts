import { dirname, join, matchesGlob, relative, resolve } from "node:path";
import { glob } from "node:fs/promises";
import type { TuningTable } from "../algorithms/request.ts";
import { elementFeatures } from "../elements/elements.ts";
import { EXIT, exitCodeOf, InputTypeError } from "../errors.ts";
import { refuseWrite, writeText } from "../npy/atomic_write.ts";
import { openNpy, writeNpy } from "../npy/mod.ts";
import { formatMilliseconds } from "../report/format.ts";
import { isUnproved, verdictWord } from "../report/record.ts";
import { convSubject } from "../run/conv_subject.ts";
import type { Executor } from "../run/executor.ts";
import { tensor } from "../tensor/tensor.ts";
import {
  channelFiles,
  formData,
  formShape,
  inputFiles,
  numberFiles,
  openConv,
  type OpenedConv,
} from "./conv_files.ts";
import type { ConvOptions } from "./conv_options.ts";
import { computeConv, type ComputedConv } from "./conv_stream.ts";
import { commandWrites, oneSentence } from "./failure.ts";
import { openGpuExecutor } from "./open_gpu.ts";
import { printer, reporter, sayFailed } from "./output.ts";
import { proveOutputs } from "./outputs.ts";
import { planningOptions } from "./problem_options.ts";
import { readAhead } from "./overlap.ts";
import { readTuning, tuningFile, tuningOf } from "./tuning_options.ts";
import { tensorBytes, usesUnits } from "../run/subject.ts";

interface FilePair {
  readonly input: string;
  readonly output: string;
}

/** Files that a pattern stands for. */
interface ManyFiles {
  readonly option: "input" | "gradOutput";
  readonly pairs: readonly FilePair[];
  readonly manifest: string;
}

/** What became of a file that was not convolved, or not exactly enough: a line of the manifest. */
interface FailedFile extends FilePair {
  readonly message: string;
  readonly exit_code: number;
}

/** Stars in one name of a pattern: each more multiplies the ways in which a name may match. */
const MOST_STARS = 4;

/** Tensors up to this are read while the file before is computed. */
const AHEAD_BYTES = 256 * 2 ** 20;

/**
 * The files that a pattern such as `frames/*.npy` in place of the input, or of bwd-data's gradient, stands for; undefined
 * where there is no pattern. Results keep the folders below the pattern's.
 *
 * @throws {TypeError} for a folder, where no file matches or a name has too many stars, two results would have one name, one would be an input, or there is no folder for them.
 */
export async function filesOfPattern(options: ConvOptions): Promise<ManyFiles | undefined> {
  const option = options.op === "bwd-data" ? "gradOutput" : "input";
  const pattern = options[option];
  if (pattern === undefined) return undefined;
  if (options.op !== "bwd-filter" && await isFolder(pattern)) {
    throw new InputTypeError(
      `Cannot read ${pattern}: it is a directory, '${join(pattern, "*.npy")}' stands for its files`,
    );
  }
  if (!await isPattern(pattern)) return undefined;
  if (options.op === "bwd-filter") {
    throw new InputTypeError(
      `Cannot convolve ${pattern}: bwd-filter takes one file, patterns are for fwd and bwd-data`,
    );
  }
  const starry = pattern.split(/[/\\]/).find((name) => name.split("*").length - 1 > MOST_STARS);
  if (starry !== undefined) {
    throw new InputTypeError(
      `Cannot convolve ${pattern}: ${starry} has more than ${MOST_STARS} stars, fewer would match in less than hours`,
    );
  }
  const { output: folder } = options;
  if (folder === undefined || folder === "-") {
    throw new InputTypeError(
      `Cannot convolve ${pattern}: --output names the folder of the results`,
    );
  }
  if (/\.npz(:|$)/i.test(folder)) {
    throw new InputTypeError(
      `Cannot convolve ${pattern}: --output ${folder} is an archive, name a folder: each result is a .npy file`,
    );
  }
  const base = fixedFolder(pattern);
  const inputs = (await Array.fromAsync(glob(pattern)))
    .filter((path) => /\.np[yz]$/i.test(path)).sort();
  if (inputs.length === 0) {
    throw new InputTypeError(`Cannot convolve ${pattern}: no .npy or .npz file matches`);
  }
  const taken = new Map<string, string>();
  const pairs = inputs.map((input) => {
    const output = join(folder, relative(base, input).replace(/\.np[yz]$/i, ".npy"));
    const other = taken.get(output);
    if (other !== undefined) {
      throw new InputTypeError(
        `Cannot write ${output}: it would be the result of ${other} and of ${input}`,
      );
    }
    taken.set(output, input);
    return { input, output };
  });
  const read = new Set(inputs.map((input) => resolve(input)));
  const met = pairs.find(({ output }) =>
    !read.has(resolve(output)) && matchesGlob(resolve(output), resolve(pattern))
  );
  if (met !== undefined) {
    throw new InputTypeError(
      `Cannot write ${met.output}: the next run would take it for an input, since it matches ${pattern}`,
    );
  }
  return { option, pairs, manifest: join(folder, "failures.jsonl") };
}

async function isPattern(path: string): Promise<boolean> {
  return /[*?[{]/.test(path) && !await isThere(path);
}

function isFolder(path: string): Promise<boolean> {
  return Deno.stat(path).then(({ isDirectory }) => isDirectory, () => false);
}

function isThere(path: string): Promise<boolean> {
  return Deno.stat(path).then(() => true, () => false);
}

function fixedFolder(pattern: string): string {
  let folder = dirname(pattern);
  while (/[*?[{]/.test(folder)) folder = dirname(folder);
  return folder;
}

/**
 * Convolves files one after the other on one device; the next is read while one is computed. Each runs once. What fails is told
 * in the manifest, and the rest done.
 *
 * @throws {ExitCode} 1 where a file failed.
 * @throws {DeviceError} where the device is lost.
 */
export async function convFiles(
  { option, pairs, manifest }: ManyFiles,
  options: ConvOptions,
): Promise<void> {
  const { filter, output: folder } = options;
  const channels = channelFiles(options).map(([, path]) => path);
  await proveOutputs([
    { option: "--output", path: folder, kind: "folder" },
    ...pairs.map(({ output }) => ({ option: "--output", path: output, kind: "member" } as const)),
  ], {
    inputs: [
      ...inputFiles({ ...options, [option]: undefined }),
      tuningFile(options.tuning),
      ...pairs.map(({ input }) => input),
    ],
    force: options.force,
    resume: options.resume,
  });
  for (const path of [filter, ...channels, ...numberFiles(options)]) {
    if (path === "-") throw new InputTypeError("Cannot convolve many files with one from stdin");
    if (path !== undefined) (await openNpy(path, { as: options.as })).close();
  }
  const wanted: FilePair[] = [];
  for (const pair of pairs) {
    if (!options.resume || !await isThere(pair.output)) wanted.push(pair);
  }
  const failures: FailedFile[] = [];
  const out = options.json ? printer("stdout") : reporter("stdout");
  if (wanted.length > 0) {
    using device = await openShared(options);
    const begin = (pair: FilePair | undefined) => pair && openAhead(option, pair, options);
    let next = begin(wanted[0]);
    for (const [place, pair] of wanted.entries()) {
      const opening = next!;
      next = begin(wanted[place + 1]);
      // Its failure is told when its turn comes.
      next?.catch(() => {});
      try {
        using opened = await opening;
        const { record } = await convolveFile(opened, pair, device, options);
        const { verdict, message = "" } = record;
        const why = isUnproved(record) ? `${verdictWord(verdict)}: ${message}` : undefined;
        if (why !== undefined) {
          failures.push({ ...pair, message, exit_code: EXIT.accuracy });
          sayFailed(`${verdictWord(verdict)}: ${pair.input}: ${message}`);
        }
        out.line(
          options.json
            ? JSON.stringify({ ...record, ...pair })
            : `${pair.input}  ${formatMilliseconds(record.time_ms!.median)}  ${
              why ?? `${verdict}  ${pair.output}`
            }`,
        );
      } catch (error) {
        if (device.executor?.isOpen === false) {
          (await next?.catch(() => undefined))?.[Symbol.dispose]();
          throw error;
        }
        const message = oneSentence(error);
        failures.push({ ...pair, message, exit_code: exitCodeOf(error) });
        if (!options.json) out.line(`${pair.input}  error: ${message}`);
        sayFailed(`error: ${pair.input}: ${message}`);
      }
    }
  }
  const writes = commandWrites();
  await writes.attempt(() => writeManifest(manifest, failures));
  if (!options.json) {
    const done = wanted.length - failures.length;
    const skipped = pairs.length - wanted.length;
    out.line(
      [
        `${done} of ${pairs.length} files written`,
        ...(skipped > 0 ? [`${skipped} were there`] : []),
        ...(failures.length > 0 ? [`${failures.length} failed: ${manifest}`] : []),
      ].join(", "),
    );
  }
  writes.conclude(failures.length > 0 ? EXIT.accuracy : EXIT.ok);
}

interface Shared extends Disposable {
  /** None on the CPU. */
  readonly executor: Executor | undefined;
  readonly planning: ReturnType<typeof planningOptions> & Pick<ConvOptions, "algorithm">;
}

async function openShared(options: ConvOptions): Promise<Shared> {
  const { dtype, outDtype, algorithm, device } = options;
  const planning = { ...planningOptions(options), algorithm };
  if (device === "cpu") return { executor: undefined, planning, [Symbol.dispose]: () => {} };
  const features = elementFeatures({ dtype, ...(outDtype === undefined ? {} : { outDtype }) });
  const choice = { ...options, onUnits: usesUnits(dtype, planning.math) };
  const executor = await openGpuExecutor(choice, features, planning, options);
  const tuned = algorithm === "auto" ? readTuning(options) : undefined;
  const tuning = tuningOf(tuned, executor.device);
  return {
    executor: planningOnce(executor),
    planning: { ...planning, ...(tuning === undefined ? {} : { tuning }) },
    [Symbol.dispose]: () => executor.close(),
  };
}

/** An executor that is asked for plans in one way, so that subjects of the same traits share one. */
function planningOnce(executor: Executor): Executor {
  const plans = new Map<string, ReturnType<Executor["plan"]>>();
  let last: TuningTable | undefined;
  return {
    ...executor,
    get isOpen() {
      return executor.isOpen;
    },
    plan(subject, planning) {
      const { traits, activation } = subject;
      const { maxWorkspaceBytes, tuning } = planning;
      if (tuning !== last) plans.clear();
      last = tuning;
      const key = JSON.stringify([traits, activation, maxWorkspaceBytes]);
      if (!plans.has(key)) plans.set(key, executor.plan(subject, planning));
      return plans.get(key);
    },
  };
}

/** Opens a file's convolution and begins to read what is small enough. */
async function openAhead(
  option: ManyFiles["option"],
  { input }: FilePair,
  options: ConvOptions,
): Promise<OpenedConv> {
  const opened = await openConv({ ...options, [option]: input });
  const subject = convSubject({ ...opened, dtype: options.dtype, outDtype: options.outDtype });
  const files = readAhead(subject, opened.files, {
    wanted: (one) => tensorBytes(one) <= AHEAD_BYTES,
  });
  return { ...opened, files };
}

/** Convolves a file; a result that is not exact enough is not kept. */
async function convolveFile(
  opened: OpenedConv,
  { output }: FilePair,
  { executor, planning }: Shared,
  options: ConvOptions,
): Promise<ComputedConv> {
  const { dtype, outDtype, algorithm, seed, lossScale } = options;
  const asked = { ...opened, dtype, outDtype };
  const subject = convSubject(asked);
  await Deno.mkdir(dirname(output), { recursive: true }).catch((error) => {
    refuseWrite(output, error);
  });
  const scaled = lossScale === undefined ? {} : { lossScale };
  const source = { files: opened.files, fill: "uniform01", seed, ...scaled } as const;
  const computation = { subject, source, algorithm, planning, executor };
  const done = await computeConv(asked, computation, { ...options, output, runs: 1 });
  const passed = !isUnproved(done.record);
  if (done.result === undefined) {
    if (!passed) await Deno.remove(output);
  } else if (passed) {
    const { result } = subject;
    const shape = formShape(opened.form, result.shape);
    const data = formData(opened.form, result, done.result);
    await writeNpy(output, tensor(result.dtype, shape, data));
  }
  return done;
}

/** Writes the failures, a line each; without any an older manifest goes. */
async function writeManifest(path: string, failures: readonly FailedFile[]): Promise<void> {
  if (failures.length === 0) {
    await Deno.remove(path).catch((error) => {
      if (!(error instanceof Deno.errors.NotFound)) refuseWrite(path, error);
    });
    return;
  }
  await Deno.mkdir(dirname(path), { recursive: true }).catch((error) => refuseWrite(path, error));
  const text = failures.map((failure) => `${JSON.stringify(failure)}\n`).join("");
  await writeText(path, text);
}
