import { defined } from "../defined.ts";
import { InputRangeError, InputTypeError, isInputError } from "../errors.ts";
import { openNpy, type TensorSource } from "../npy/mod.ts";
import { broadcastSource, broadcastsTo, permutedSource, reshapedSource } from "../npy/views.ts";
import {
  type ConvDType,
  type ConvProblem,
  type ConvTensor,
  operandTensors,
  type Operation,
} from "../problem/conv_problem.ts";
import { parseDescriptor } from "../problem/descriptor.ts";
import { ACTIVATION_OPERANDS, activationOperand } from "../problem/activations.ts";
import { CHANNEL_OPERANDS, type ChannelOperand, type Epilogue } from "../problem/epilogue.ts";
import type { IntegerOperands } from "../problem/conv_elements.ts";
import type { Layouts } from "../run/conv_subject.ts";
import type { HostData, SubjectTensor } from "../run/subject.ts";
import {
  convertedAxes,
  type FileFilterLayout,
  filterLayoutFor,
  type Layout,
  layoutAxes,
  permute,
} from "../tensor/layout.ts";
import { elementCount, tensor } from "../tensor/tensor.ts";
import { refuseUnusedAs } from "./shared_options.ts";
import type { OperandOptions } from "./problem_options.ts";
import { batchAxis, type LyingProblem, problemOfLying, shapeHint } from "./shape_hints.ts";

/** How a result lies in its file, where that differs from how it is computed. */
export interface ResultForm {
  /** The axis of its batch of one, which the file has not. */
  readonly dropped?: number;
  /** Axis i of the file is axis `axes[i]` of the result. */
  readonly axes?: readonly number[];
}

/** Sizes of the file. */
export function formShape({ dropped, axes }: ResultForm, shape: readonly number[]): number[] {
  if (dropped !== undefined) return shape.toSpliced(dropped, 1);
  return axes === undefined ? [...shape] : axes.map((axis) => shape[axis]!);
}

/** The values in the file's order. */
export function formData({ axes }: ResultForm, result: SubjectTensor, data: HostData): HostData {
  if (axes === undefined) return data;
  return permute(tensor(result.dtype, result.shape, data), axes).data as HostData;
}

/** A convolution, how its tensors lie, and the files they come from, if any. */
export interface OpenedConv extends Layouts, Disposable {
  readonly problem: ConvProblem;
  readonly epilogue: Epilogue;
  /** How the result lies in its file. */
  readonly form: ResultForm;
  /** Of dtype i8: which operands are u8, and their zero points. */
  readonly integers?: IntegerOperands;
  /** The operands' files, as they are computed with; none of what is made. */
  readonly files: { readonly [which in FileRole]?: TensorSource };
}

/** The options that say what is read, and what as. */
type ConvFileOptions = OperandOptions & { readonly dtype: ConvDType };

type FileRole = ConvTensor | ChannelOperand | "filterZeroPoint";

const OPTION: { readonly [which in ConvTensor]: "input" | "filter" | "gradOutput" } = {
  input: "input",
  filter: "filter",
  output: "gradOutput",
};
const FLAG = { input: "--input", filter: "--filter", gradOutput: "--grad-output" } as const;

/**
 * As {@linkcode openConv}, for what else convolutions' files are opened.
 *
 * @throws as that does, in sentences that begin as `doing` says.
 */
export async function openConvFor(
  doing: string,
  options: ConvFileOptions,
  others?: readonly TensorSource[],
): Promise<OpenedConv> {
  try {
    return await openConv(options, others);
  } catch (error) {
    if (isInputError(error)) error.message = error.message.replace(/^Cannot convolve/, doing);
    throw error;
  }
}

/**
 * Opens the files that the options name, without reading their data, and derives the problem.
 *
 * @param others What the caller has opened with the same options: `--as` may be of these.
 * @throws {TypeError | RangeError | SyntaxError} if options contradict each other, or shapes do.
 * @throws what {@linkcode openNpy} throws.
 */
export async function openConv(
  options: ConvFileOptions,
  others: readonly TensorSource[] = [],
): Promise<OpenedConv> {
  const { op, layout } = options;
  const fileLayout = options.filterLayout ?? filterLayoutFor(layout);
  if (op !== "fwd" && (options.bias || options.activation !== "none")) {
    throw new InputTypeError(`Cannot convolve: bias and activation belong to fwd, not to ${op}`);
  }
  checkOptions(options);
  using opened = new DisposableStack();
  const sources: TensorSource[] = [];
  const open = async (path: string) => {
    const source = opened.use(await openNpy(path, { as: options.as }));
    sources.push(source);
    return source;
  };
  const channels: { [role in ChannelFile]?: TensorSource } = {};
  for (const [role, path] of channelFiles(options)) channels[role] = await open(path);
  const files: { [which in FileRole]?: TensorSource } = {};
  if (options.problem === undefined) {
    for (const which of operandTensors(op)) files[which] = await open(options[OPTION[which]]!);
  }
  const { problem, batched = {} } = options.problem === undefined
    ? problemOfFiles(options, files, fileLayout)
    : { problem: parseDescriptor(options.problem, op) };
  const rank = problem.filterSize.length;
  let single = false;
  for (const which of operandTensors(op)) {
    const [file, shape] = [files[which], batched[which]];
    if (file === undefined || shape!.length === file.shape.length) continue;
    files[which] = reshapedSource(file, shape!);
    single = true;
  }
  // No kernel takes rsck, and those of int8 only what goes with images.
  const permuted = fileLayout === "rsck" || options.dtype === "i8";
  const filterLayout = permuted ? filterLayoutFor(layout) : fileLayout;
  if (files.filter && fileLayout !== filterLayout) {
    files.filter = permutedSource(files.filter, convertedAxes(fileLayout, filterLayout, rank));
  }
  for (const [role, file] of Object.entries(channels)) {
    files[role as ChannelFile] = channelValues(role, file, problem, layout);
  }
  const one = async (name: NumberOption) => {
    const said = options[name];
    return typeof said === "string" ? await onlyValue(name, await open(said)) : said;
  };
  // One for all, or of each output channel, which is an operand.
  const each = async (name: NumberOption, role: "scale" | "filterZeroPoint") => {
    const said = options[name];
    if (typeof said !== "string") return said;
    const file = await open(said);
    if (elementCount(file.shape) === 1) return await onlyValue(name, file);
    expectNumbers(name, file);
    files[role] = channelValues(NUMBERS[name], file, problem, layout);
    return "channel" as const;
  };
  const scale = await each("scale", "scale");
  const zeroPoint = await one("outputZeroPoint");
  const epilogue = {
    bias: channels.bias !== undefined,
    activation: options.activation,
    ...defined({ scale, zeroPoint }),
  };
  const inputZeroPoint = await one("inputZeroPoint");
  const filterZeroPoint = await each("filterZeroPoint", "filterZeroPoint");
  refuseUnusedAs("Cannot convolve", options.as, [...sources, ...others]);
  const isU8 = (which: ConvTensor) => options.dtype === "i8" && files[which]?.dtype === "u8";
  const integers: IntegerOperands = {
    ...(isU8("input") ? { inputDtype: "u8" } : {}),
    ...(isU8("filter") ? { filterDtype: "u8" } : {}),
    ...defined({ inputZeroPoint, filterZeroPoint }),
  };
  const kept = opened.move();
  return {
    problem,
    layout,
    filterLayout,
    epilogue,
    ...(Object.keys(integers).length === 0 ? {} : { integers }),
    files,
    form: op === "bwd-filter"
      ? { axes: convertedAxes(filterLayout, fileLayout, rank) }
      : single
      ? { dropped: batchAxis(layout, rank) }
      : {},
    [Symbol.dispose]: () => kept.dispose(),
  };
}

/** Options that are a number, or the file that has it, and what they say. */
const NUMBERS = {
  scale: "scale",
  inputZeroPoint: "input zero point",
  filterZeroPoint: "filter zero point",
  outputZeroPoint: "output zero point",
} as const;
const NUMBER_OPTIONS = Object.keys(NUMBERS) as NumberOption[];

type NumberOption = keyof typeof NUMBERS;

/** @throws {TypeError} where zero points of a file may be no whole numbers. */
function expectNumbers(name: NumberOption, { path, dtype }: TensorSource): void {
  if (name === "scale" || /^[iu]/.test(dtype)) return;
  throw new InputTypeError(
    `Cannot convolve: ${
      NUMBERS[name]
    } of ${path} is ${dtype}, expected whole numbers, as of i8 or u8`,
  );
}

/**
 * The number that a file has, whatever its axes.
 *
 * @throws {RangeError} where it has others.
 */
async function onlyValue(name: NumberOption, file: TensorSource): Promise<number> {
  expectNumbers(name, file);
  const { shape } = file;
  if (elementCount(shape) === 1) {
    return (await file.readAs(name === "scale" ? "f32" : "f64")).data[0]!;
  }
  throw new InputRangeError(
    `Cannot convolve: ${NUMBERS[name]} has shape [${shape.join(", ")}], expected one value`,
  );
}

/** The files that options of numbers name. */
export function numberFiles(options: OperandOptions): string[] {
  return NUMBER_OPTIONS.map((name) => options[name]).filter((one) => typeof one === "string");
}

/** Operands of one value an output channel that have an option of their own. */
type ChannelFile = Exclude<ChannelOperand, "scale">;
const CHANNEL_FILES = CHANNEL_OPERANDS.filter((role) => role !== "scale");

/** Those that the options name, and their files. */
export function channelFiles(
  options: { readonly [role in ChannelFile]?: string | undefined },
): (readonly [ChannelFile, string])[] {
  return CHANNEL_FILES.flatMap((role) => {
    const path = options[role];
    return path === undefined ? [] : [[role, path] as const];
  });
}

/** The paths of the files that the options name. */
export function inputFiles(options: OperandOptions) {
  const { input, filter, gradOutput } = options;
  const channels = channelFiles(options).map(([, path]) => path);
  return [input, filter, gradOutput, ...channels, ...numberFiles(options)];
}

/** The options that name the files of an operation's operands, and of its result. */
export function operandFlags(op: Operation): string[] {
  return [...operandTensors(op).map((which) => FLAG[OPTION[which]]), "--output"];
}

/** Refuses options that are missing or that nothing would read. */
function checkOptions(options: OperandOptions): void {
  const { op, activation } = options;
  const read = activationOperand(activation);
  for (const [role] of channelFiles(options)) {
    if (role === "bias" || role === read) continue;
    const readers = ACTIVATION_OPERANDS.get(role)!.join(" or ");
    throw new InputTypeError(
      `Cannot convolve: --${role} is of --activation ${readers}, the activation is ${activation}`,
    );
  }
  if (read !== undefined && options.problem === undefined && options[read] === undefined) {
    throw new InputTypeError(
      `Cannot convolve: --activation ${activation} takes --${read}, a file of K values`,
    );
  }
  const needed: string[] = operandTensors(op).map((which) => OPTION[which]);
  const given = Object.values(OPTION).filter((name) => options[name] !== undefined);
  if (options.problem !== undefined) {
    const extra = [
      ...given.map((name) => FLAG[name]),
      ...(options.stride ? ["--stride"] : []),
      ...(options.padding ? ["--padding"] : []),
      ...(options.dilation ? ["--dilation"] : []),
      ...(options.groups ? ["--groups"] : []),
      ...(options.inputSize ? ["--input-size"] : []),
      ...(options.filterSize ? ["--filter-size"] : []),
    ];
    if (extra.length > 0) {
      throw new InputTypeError(
        `Cannot convolve: --problem gives all sizes, ${extra.join(", ")} must go`,
      );
    }
    return;
  }
  const flags = operandFlags(op).slice(0, 2).join(" and ");
  const extra = given.filter((name) => !needed.includes(name)).map((name) => FLAG[name]);
  if (given.length < 2 || extra.length > 0) {
    throw new InputTypeError(
      `Cannot convolve: ${op} takes ${flags}, or --problem for generated data` +
        (extra.length > 0 ? `; ${extra.join(", ")} must go` : ""),
    );
  }
  for (
    const [flag, size, own] of [
      ["--input-size", options.inputSize, "bwd-data"],
      ["--filter-size", options.filterSize, "bwd-filter"],
    ] as const
  ) {
    if (size === undefined || op === own) continue;
    throw new InputTypeError(
      `Cannot convolve: ${flag} ${size} says the size of the result of ${own}, ` +
        `the files of ${op} determine it`,
    );
  }
  if (options.fill !== undefined) {
    throw new InputTypeError(
      "Cannot convolve: --fill goes with --problem, files have their own data",
    );
  }
  const stdin = [...given, ...CHANNEL_FILES, ...NUMBER_OPTIONS].filter((name) =>
    options[name] === "-"
  );
  if (stdin.length > 1) {
    throw new InputTypeError("Cannot convolve: only one file can come from stdin");
  }
}

/**
 * The problem of the opened files, and their sizes with a batch.
 *
 * @throws as {@linkcode problemOfLying}, with what may be wrong, where that is known.
 */
function problemOfFiles(
  options: OperandOptions,
  files: OpenedConv["files"],
  filterLayout: FileFilterLayout,
): LyingProblem {
  const { op, layout, inputSize, filterSize, stride, padding, dilation } = options;
  const shapes = Object.fromEntries(
    operandTensors(op).map((which) => {
      const { path, shape } = files[which]!;
      // A single image of one spatial axis has two.
      if (shape.length < (which === "filter" ? 3 : 2) || shape.length > 5) {
        throw new InputTypeError(
          `Cannot convolve: ${path} has shape [${shape.join(", ")}], expected 3 to 5 axes ` +
            `(${which === "filter" ? filterLayout : layout})`,
        );
      }
      return [which, shape];
    }),
  );
  const asked = {
    op,
    shapes,
    layout,
    filterLayout,
    groups: options.groups ?? 1,
    ...(inputSize ? { inputSize } : {}),
    ...(filterSize ? { filterSize } : {}),
    ...(stride ? { stride } : {}),
    ...(padding ? { padding } : {}),
    ...(dilation ? { dilation } : {}),
  };
  try {
    return problemOfLying(asked);
  } catch (error) {
    if (isInputError(error)) error.message += shapeHint(asked, operandFlags(op).slice(0, 2));
    throw error;
  }
}

/**
 * The values of output channels in a file: K in a row, or as NumPy broadcasts them to the output, as in [1, K, 1, 1]; or one for
 * all.
 */
function channelValues(
  name: string,
  file: TensorSource,
  { outChannels, outputSize }: ConvProblem,
  layout: Layout,
): TensorSource {
  const { shape } = file;
  const rank = outputSize.length;
  const whole = layoutAxes(layout, rank).map((axis) => axis === 1 ? outChannels : 1);
  // With fewer axes than an image has nothing else can be meant.
  const row = shape.length <= rank && elementCount(shape) === outChannels &&
    shape.every((size) => size === 1 || size === outChannels);
  const fits = row || whole.length >= shape.length && broadcastsTo(shape, whole);
  if (!fits) {
    throw new InputRangeError(
      `Cannot convolve: ${name} has shape [${shape.join(", ")}], expected [${outChannels}], ` +
        `one value an output channel, [${whole.join(", ")}] as ${layout} broadcasts it, or [1]`,
    );
  }
  return elementCount(shape) === 1
    ? broadcastSource(reshapedSource(file, [1]), [outChannels])
    : reshapedSource(file, [outChannels]);
}
