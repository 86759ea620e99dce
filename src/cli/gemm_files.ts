import { defined } from "../defined.ts";
import { InputRangeError, InputTypeError, placedError } from "../errors.ts";
import { openNpy, type TensorSource } from "../npy/mod.ts";
import { refuseUnusedAs } from "./shared_options.ts";
import { broadcastSource, broadcastsTo } from "../npy/views.ts";
import {
  checkGemmArithmetic,
  type GemmArithmetic,
  gemmOperands,
  type GemmProblem,
  gemmProblem,
  gemmShape,
  type Transpose,
} from "../problem/gemm_problem.ts";
import { parseGemm } from "../problem/gemm_suite.ts";
import { elementCount } from "../tensor/tensor.ts";
import type { MatrixOptions } from "./gemm_options.ts";

/** What `wgconv gemm` works on: a product, and the files its operands come from, if any. */
export interface OpenedGemm extends Disposable {
  readonly problem: GemmProblem;
  /** Empty where the data is made. */
  readonly files: { readonly [which in FileOperand]?: TensorSource };
  /** Shape of the result's file. */
  readonly shape: readonly number[];
}

/** The options that say what is read, and what as. */
type GemmFileOptions =
  & MatrixOptions
  & Pick<GemmArithmetic, "dtype">
  & Partial<Pick<GemmArithmetic, "accumulate" | "outDtype">>;

type FileOperand = "a" | "b" | "c" | "bias" | "residual";

type OperandFiles =
  & { readonly [which in FileOperand]?: TensorSource }
  & Record<"a" | "b", TensorSource>;

const DOING = "Cannot multiply";

type Epilogue = Pick<GemmProblem, "alpha" | "beta" | "bias" | "activation" | "residual">;

/**
 * Opens the files that the options name, without reading their data, and derives the product.
 *
 * @param others What the caller has opened with the same options: `--as` may be of these.
 * @throws {TypeError | RangeError | SyntaxError} if options contradict each other, or shapes do.
 * @throws what {@linkcode openNpy} throws.
 */
export async function openGemm(
  options: GemmFileOptions,
  others: readonly TensorSource[] = [],
): Promise<OpenedGemm> {
  if (options.size !== undefined) return madeSubject(options, others);
  if (options.a === undefined || options.b === undefined) {
    throw new InputTypeError(
      `${DOING}: it takes --a and --b, or --size or --suite for generated data`,
    );
  }
  if (options.fill !== undefined) {
    throw new InputTypeError(`${DOING}: --fill goes with --size, files have their own data`);
  }
  if (options.batch !== undefined) {
    throw new InputTypeError(
      `${DOING}: --batch goes with --size; in files the batch is the axes in front`,
    );
  }
  for (const name of ["bias", "c", "residual"] as const) {
    if (options[name] === true) throw new InputTypeError(`${DOING}: --${name} names no file`);
  }
  if (options.c === undefined && (options.beta ?? 0) !== 0) {
    throw new InputTypeError(`${DOING}: beta is ${options.beta}, but there is no --c`);
  }
  using opened = new DisposableStack();
  const files: { [which in FileOperand]?: TensorSource } = {};
  for (const which of ["a", "b", "c", "bias", "residual"] as const) {
    const path = options[which];
    if (typeof path === "string") {
      files[which] = opened.use(await openNpy(path, { as: options.as }));
    }
  }
  refuseUnusedAs(DOING, options.as, [...Object.values(files), ...others]);
  const { problem, shape, operands } = productOfFiles(options, files as OperandFiles);
  const reads = gemmOperands(problem) as FileOperand[];
  const stdin = reads.filter((which) => options[which] === "-");
  if (stdin.length > 1) throw new InputTypeError(`${DOING}: only one file can come from stdin`);
  const kept = opened.move();
  return {
    problem,
    files: Object.fromEntries(reads.map((which) => [which, operands[which]])),
    shape,
    [Symbol.dispose]: () => kept.dispose(),
  };
}

/** The paths of the files that the options name. */
export function gemmFiles({ a, b, c, bias, residual }: MatrixOptions): string[] {
  return [a, b, c, bias, residual].filter((path) => typeof path === "string");
}

/** The product of `--size`, whose data is made. */
function madeSubject(options: GemmFileOptions, others: readonly TensorSource[]): OpenedGemm {
  refuseUnusedAs(DOING, options.as, others);
  const extra = (["a", "b", "c", "bias", "residual"] as const)
    .filter((name) => typeof options[name] === "string");
  if (extra.length > 0) {
    throw new InputTypeError(
      `${DOING}: --size makes the data, the file${extra.length > 1 ? "s" : ""} of ` +
        `${extra.map((name) => `--${name}`).join(", ")} must go`,
    );
  }
  const problem = withOptions(parseSize(options.size!), options);
  return { problem, files: {}, shape: gemmShape(problem, "output"), [Symbol.dispose]: () => {} };
}

/** A product of `--size` or of a suite with the batch, transposes and epilogue of the options. */
export function withOptions(problem: GemmProblem, options: GemmFileOptions): GemmProblem {
  const asked = gemmProblem({
    ...problem,
    ...defined({ batch: options.batch, transpose: options.transpose }),
    ...epilogueOf(options),
  });
  checkGemmArithmetic(asked, options);
  return asked;
}

/** `m,n,k`, or what a line of a suite says. */
function parseSize(text: string): GemmProblem {
  const listed = /^\d+[,x]\d+[,x]\d+$/.test(text);
  if (!listed && !/\s/.test(text)) {
    throw new InputTypeError(`${DOING}: --size ${text}, expected m,n,k such as 64,64,64`);
  }
  try {
    return parseGemm(listed ? text.replaceAll(/[,x]/g, " ") : text);
  } catch (error) {
    throw placedError(error, "--size");
  }
}

function epilogueOf(options: GemmFileOptions): Epilogue {
  const { alpha, activation } = options;
  const beta = options.beta ?? (options.c === undefined ? 0 : 1);
  const bias = options.bias === undefined ? options.biasSide : options.biasSide ?? "column";
  return {
    alpha,
    beta,
    bias: bias ?? "none",
    activation,
    residual: options.residual !== undefined,
  };
}

interface FileProduct {
  readonly problem: GemmProblem;
  readonly shape: readonly number[];
  readonly operands: OperandFiles;
}

/** The product of the opened files. Their batches are broadcast as `numpy.matmul` does it. */
function productOfFiles(options: GemmFileOptions, files: OperandFiles): FileProduct {
  const transpose: Transpose = options.transpose ?? "nn";
  const a = matrix("A", files.a);
  const b = matrix("B", files.b);
  const [m, depth] = transpose[0] === "n" ? [a.rows, a.columns] : [a.columns, a.rows];
  const [k, n] = transpose[1] === "n" ? [b.rows, b.columns] : [b.columns, b.rows];
  if (depth !== k) {
    throw new InputRangeError(
      `${DOING}: op(A) is ${m} x ${depth}, op(B) is ${k} x ${n} (transposes ${transpose})`,
    );
  }
  const batch = broadcastBatch(a.batch, b.batch);
  if (options.biasSide !== undefined && files.bias === undefined) {
    throw new InputTypeError(`${DOING}: --bias-side says where --bias lies, but there is none`);
  }
  const epilogue = epilogueOf(options);
  const count = elementCount(batch);
  // Matrices that meet the same B are one with all of their rows.
  const joined = count > 1 && elementCount(b.batch) === 1 && transpose[0] === "n" &&
    epilogue.bias !== "row";
  const sizes = joined ? { m: count * m, batch: 1 } : { m, batch: count };
  const problem = gemmProblem({ ...sizes, n, k, transpose, ...epilogue });
  checkGemmArithmetic(problem, options);
  const shape = [...batch, m, n];
  const { c, residual, bias } = files;
  return {
    problem,
    shape,
    operands: {
      a: repeated(files.a, [...batch, a.rows, a.columns]),
      b: joined ? files.b : repeated(files.b, [...batch, b.rows, b.columns]),
      ...(c && { c: broadcast("C", c, shape) }),
      ...(residual && { residual: broadcast("the residual", residual, shape) }),
      ...(bias && { bias: sideValues(bias, problem) }),
    },
  };
}

/** Sizes of a matrix, or of a batch of them, as it lies in memory. */
function matrix(name: string, { path, shape }: TensorSource) {
  if (shape.length < 2) {
    throw new InputTypeError(
      `${DOING}: ${name} (${path}) has shape [${shape.join(", ")}], ` +
        "expected 2 axes, or more with the batch in front; a vector is one row or one column",
    );
  }
  const [rows, columns] = shape.slice(-2) as [number, number];
  return { rows, columns, batch: shape.slice(0, -2) };
}

/** The axes of a batch that two of them fill. */
function broadcastBatch(a: readonly number[], b: readonly number[]): number[] {
  const length = Math.max(a.length, b.length);
  const sizes = [a, b].map((own) => [...new Array<number>(length - own.length).fill(1), ...own]);
  const batch = sizes[0]!.map((size, axis) => size === 1 ? sizes[1]![axis]! : size);
  if (!broadcastsTo(a, batch) || !broadcastsTo(b, batch)) {
    throw new InputRangeError(
      `${DOING}: A has a batch of [${a.join(", ")}], B of [${b.join(", ")}], ` +
        "expected the same sizes, or 1, which is broadcast",
    );
  }
  return batch;
}

/** A file whose tensor fills a shape, each element once where it has them all. */
function repeated(file: TensorSource, shape: readonly number[]): TensorSource {
  return elementCount(file.shape) === elementCount(shape) ? file : broadcastSource(file, shape);
}

function broadcast(name: string, file: TensorSource, shape: readonly number[]): TensorSource {
  if (broadcastsTo(file.shape, shape)) return repeated(file, shape);
  throw new InputRangeError(
    `${DOING}: ${name} has shape [${file.shape.join(", ")}], expected [${shape.join(", ")}], ` +
      "or what NumPy broadcasts to it",
  );
}

/** The values of a bias: a row or a column of them, or one for all. */
function sideValues(file: TensorSource, problem: GemmProblem): TensorSource {
  const { bias, m, n } = problem;
  const own = file.shape;
  const expected = gemmShape(problem, "bias");
  const lying = bias === "row" ? [m, 1] : [1, n];
  const fits = own.length < 2 ? broadcastsTo(own, expected) : broadcastsTo(own, lying);
  if (fits) return repeated(file, expected);
  throw new InputRangeError(
    `${DOING}: the ${bias} bias has shape [${own.join(", ")}], expected [${
      expected.join(", ")
    }], ` +
      `[${lying.join(", ")}] or [1]`,
  );
}
