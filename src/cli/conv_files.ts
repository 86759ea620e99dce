import { InputRangeError, InputTypeError, isInputError } from "../errors.ts";
import { openNpy, type TensorSource } from "../npy/mod.ts";
import {
  type ConvProblem,
  type ConvTensor,
  operandTensors,
  type Operation,
} from "../problem/conv_problem.ts";
import { parseDescriptor } from "../problem/descriptor.ts";
import type { Epilogue } from "../problem/epilogue.ts";
import { problemFromShapes } from "../problem/from_shapes.ts";
import type { Layouts } from "../run/conv_subject.ts";
import {
  canonicalShape,
  type FilterLayout,
  filterLayoutFor,
  type Layout,
} from "../tensor/layout.ts";
import type { ProblemOptions } from "./problem_options.ts";

/** A convolution, how its tensors lie, and the files they come from, if any. */
export interface OpenedConv extends Layouts, Disposable {
  readonly problem: ConvProblem;
  readonly epilogue: Epilogue;
  /** The operands' files; none of what is made. */
  readonly files: { readonly [which in ConvTensor | "bias" | "scale"]?: TensorSource };
}

/** The option that names the file of each of the problem's tensors. */
const OPTION: { readonly [which in ConvTensor]: "input" | "filter" | "gradOutput" } = {
  input: "input",
  filter: "filter",
  output: "gradOutput",
};
const FLAG = { input: "--input", filter: "--filter", gradOutput: "--grad-output" } as const;

/**
 * Opens the files that the options name, without reading their data, and derives the problem.
 *
 * @throws {TypeError | RangeError | SyntaxError} if options contradict each other, or shapes do.
 * @throws what {@linkcode openNpy} throws.
 */
export async function openConv(options: ProblemOptions): Promise<OpenedConv> {
  const { op, layout } = options;
  const filterLayout = options.filterLayout ?? filterLayoutFor(layout);
  if (op !== "fwd" && (options.bias || options.activation !== "none")) {
    throw new InputTypeError(`Cannot convolve: bias and activation belong to fwd, not to ${op}`);
  }
  checkOptions(options);
  using opened = new DisposableStack();
  const open = async (path: string) => opened.use(await openNpy(path));
  const bias = options.bias === undefined ? undefined : await open(options.bias);
  const scale = typeof options.scale === "string" ? await open(options.scale) : undefined;
  const epilogue = {
    bias: bias !== undefined,
    activation: options.activation,
    ...(options.scale === undefined
      ? {}
      : { scale: typeof options.scale === "number" ? options.scale : "channel" as const }),
  };
  const files: { [which in ConvTensor | "bias" | "scale"]?: TensorSource } = {};
  if (options.problem === undefined) {
    for (const which of operandTensors(op)) files[which] = await open(options[OPTION[which]]!);
  }
  const problem = options.problem === undefined
    ? problemOfFiles(options, files, layout, filterLayout)
    : parseDescriptor(options.problem, op);
  for (const [name, file] of Object.entries({ bias, scale })) {
    if (file && (file.shape.length !== 1 || file.shape[0] !== problem.outChannels)) {
      throw new InputRangeError(
        `Cannot convolve: ${name} has shape [${file.shape.join(", ")}], ` +
          `expected [${problem.outChannels}], one value an output channel`,
      );
    }
  }
  const kept = opened.move();
  return {
    problem,
    layout,
    filterLayout,
    epilogue,
    files: { ...files, ...(bias ? { bias } : {}), ...(scale ? { scale } : {}) },
    [Symbol.dispose]: () => kept.dispose(),
  };
}

/** The paths of the files that the options name. */
export function inputFiles({ input, filter, gradOutput, bias, scale }: ProblemOptions) {
  return [input, filter, gradOutput, bias, typeof scale === "string" ? scale : undefined];
}

/** The options that name the files of an operation's operands, and of its result. */
export function operandFlags(op: Operation): string[] {
  return [...operandTensors(op).map((which) => FLAG[OPTION[which]]), "--output"];
}

/** Refuses options that are missing or that nothing would read. */
function checkOptions(options: ProblemOptions): void {
  const { op } = options;
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
        `Cannot convolve: --problem says it all, ${extra.join(", ")} must go`,
      );
    }
    return;
  }
  const flags = operandFlags(op).slice(0, 2).join(" and ");
  const extra = given.filter((name) => !needed.includes(name)).map((name) => FLAG[name]);
  if (given.length < 2 || extra.length > 0) {
    throw new InputTypeError(
      `Cannot convolve: ${op} takes ${flags}, or --problem for made data` +
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
        `the files of ${op} say it all`,
    );
  }
  if (options.fill !== undefined) {
    throw new InputTypeError(
      "Cannot convolve: --fill goes with --problem, files have their own data",
    );
  }
  const stdin = [...given, "bias" as const, "scale" as const].filter((name) =>
    options[name] === "-"
  );
  if (stdin.length > 1) {
    throw new InputTypeError("Cannot convolve: only one file can come from stdin");
  }
}

/** Layouts that are taken for each other. */
const MIXED_UP = ["nchw", "nhwc"] as const;

/**
 * The problem of the opened files.
 *
 * @throws as {@linkcode problemFromShapes}, with the layout in which the files would fit, where there is one.
 */
function problemOfFiles(
  options: ProblemOptions,
  files: OpenedConv["files"],
  layout: Layout,
  filterLayout: FilterLayout,
): ConvProblem {
  try {
    return problemInLayout(options, files, layout, filterLayout);
  } catch (error) {
    if (!isInputError(error)) throw error;
    const others = MIXED_UP.flatMap((one) => {
      const filter = filterLayoutFor(one);
      return [
        [one, filter, `--layout ${one}`],
        [layout, filter, `--filter-layout ${filter}`],
      ] as const;
    });
    const fits = others.find(([one, filter]) => isProblem(options, files, one, filter));
    if (fits !== undefined) error.message += `; with ${fits[2]} these files fit`;
    else if (isProblem(options, swapped(options.op, files), layout, filterLayout)) {
      const flags = operandFlags(options.op).slice(0, 2).join(" and ");
      error.message += `; are ${flags} swapped? So these files fit`;
    }
    throw error;
  }
}

/** The operands' files, each in the other's place. */
function swapped(op: Operation, files: OpenedConv["files"]): OpenedConv["files"] {
  const [one, other] = operandTensors(op);
  return { ...files, [one!]: files[other!], [other!]: files[one!] };
}

/** Whether files that lie so are those of a problem. */
function isProblem(...lying: Parameters<typeof problemInLayout>): boolean {
  try {
    problemInLayout(...lying);
    return true;
  } catch (error) {
    if (isInputError(error)) return false;
    throw error;
  }
}

/** The problem of files that lie so. */
function problemInLayout(
  options: ProblemOptions,
  files: OpenedConv["files"],
  layout: Layout,
  filterLayout: FilterLayout,
): ConvProblem {
  const shapeOf = (which: ConvTensor) => {
    const file = files[which];
    if (!file) return undefined;
    if (file.shape.length < 3 || file.shape.length > 5) {
      throw new InputTypeError(
        `Cannot convolve: ${file.path} has shape [${
          file.shape.join(", ")
        }], expected 3 to 5 axes ` +
          `(${which === "filter" ? filterLayout : layout})`,
      );
    }
    return canonicalShape(file.shape, which === "filter" ? filterLayout : layout);
  };
  const { op, inputSize, filterSize, stride, padding, dilation } = options;
  const [input, filter, output] = [shapeOf("input"), shapeOf("filter"), shapeOf("output")];
  return problemFromShapes({
    op,
    groups: options.groups ?? 1,
    ...(input ? { input } : {}),
    ...(filter ? { filter } : {}),
    ...(output ? { output } : {}),
    ...(inputSize ? { inputSize } : {}),
    ...(filterSize ? { filterSize } : {}),
    ...(stride ? { stride } : {}),
    ...(padding ? { padding } : {}),
    ...(dilation ? { dilation } : {}),
  });
}
