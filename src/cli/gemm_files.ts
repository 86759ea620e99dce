import { InputRangeError, InputTypeError, placedError } from "../errors.ts";
import { openNpy, type TensorSource } from "../npy/mod.ts";
import {
  gemmOperands,
  type GemmProblem,
  gemmProblem,
  gemmShape,
  type Transpose,
} from "../problem/gemm_problem.ts";
import { checkGemmArithmetic } from "../problem/gemm_arithmetic.ts";
import { parseGemm } from "../problem/gemm_suite.ts";
import type { GemmOptions } from "./gemm_options.ts";

/** What `wgconv gemm` works on: a product, and the files its operands come from, if any. */
export interface OpenedGemm extends Disposable {
  readonly problem: GemmProblem;
  /** Empty where the data is made. */
  readonly files: { readonly [which in FileOperand]?: TensorSource };
  /** Shape of the result's file. */
  readonly shape: readonly number[];
}

type FileOperand = "a" | "b" | "c" | "bias" | "residual";

const DOING = "Cannot multiply";

/** Everything of a problem that its size does not say. */
type Epilogue = Pick<GemmProblem, "alpha" | "beta" | "bias" | "activation" | "residual">;

/**
 * Opens the files that the options name, without reading their data, and derives the product.
 *
 * @throws {TypeError | RangeError | SyntaxError} if options contradict each other, or shapes do.
 * @throws what {@linkcode openNpy} throws.
 */
export async function openGemm(options: GemmOptions): Promise<OpenedGemm> {
  if (options.size !== undefined) return madeSubject(options);
  if (options.a === undefined || options.b === undefined) {
    throw new InputTypeError(
      `${DOING}: it takes --a and --b, or --size or --suite for made data`,
    );
  }
  if (options.fill !== undefined) {
    throw new InputTypeError(`${DOING}: --fill goes with --size, files have their own data`);
  }
  if (options.batch !== undefined) {
    throw new InputTypeError(`${DOING}: --batch goes with --size, files have theirs in front`);
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
    if (typeof path === "string") files[which] = opened.use(await openNpy(path));
  }
  const problem = problemOfFiles(options, files as typeof files & Record<"a" | "b", TensorSource>);
  const reads = gemmOperands(problem) as FileOperand[];
  const stdin = reads.filter((which) => options[which] === "-");
  if (stdin.length > 1) throw new InputTypeError(`${DOING}: only one file can come from stdin`);
  const batched = files.a!.shape.length === 3;
  const kept = opened.move();
  return {
    problem,
    files: Object.fromEntries(reads.map((which) => [which, files[which]])),
    shape: [...(batched ? [problem.batch] : []), problem.m, problem.n],
    [Symbol.dispose]: () => kept.dispose(),
  };
}

/** The paths of the files that the options name. */
export function gemmFiles({ a, b, c, bias, residual }: GemmOptions): string[] {
  return [a, b, c, bias, residual].filter((path) => typeof path === "string");
}

/** The product of `--size`, whose data is made. */
function madeSubject(options: GemmOptions): OpenedGemm {
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
export function withOptions(problem: GemmProblem, options: GemmOptions): GemmProblem {
  const asked = gemmProblem({
    ...problem,
    ...(options.batch === undefined ? {} : { batch: options.batch }),
    ...(options.transpose === undefined ? {} : { transpose: options.transpose }),
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

function epilogueOf(options: GemmOptions): Epilogue {
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

/** The product of the opened files. */
function problemOfFiles(
  options: GemmOptions,
  files: { readonly [which in FileOperand]?: TensorSource } & Record<"a" | "b", TensorSource>,
): GemmProblem {
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
  if (a.batch !== b.batch) {
    throw new InputRangeError(
      `${DOING}: A has ${batchText(a.batch)}, B has ${batchText(b.batch)}`,
    );
  }
  if (options.biasSide !== undefined && files.bias === undefined) {
    throw new InputTypeError(`${DOING}: --bias-side says where --bias lies, but there is none`);
  }
  const problem = gemmProblem({
    m,
    n,
    k,
    batch: a.batch ?? 1,
    transpose,
    ...epilogueOf(options),
  });
  checkGemmArithmetic(problem, options);
  const result = [...(a.batch === undefined ? [] : [a.batch]), m, n];
  expectShape("C", files.c, result);
  expectShape("the residual", files.residual, result);
  expectShape(`the ${problem.bias} bias`, files.bias, gemmShape(problem, "bias"));
  return problem;
}

/** Sizes of a matrix, or of a batch of them, as it lies in memory. */
function matrix(name: string, { path, shape }: TensorSource) {
  if (shape.length !== 2 && shape.length !== 3) {
    throw new InputTypeError(
      `${DOING}: ${name} (${path}) has shape [${shape.join(", ")}], ` +
        "expected 2 axes, or 3 with the batch first",
    );
  }
  const [rows, columns] = shape.slice(-2) as [number, number];
  return { rows, columns, batch: shape.length === 3 ? shape[0] : undefined };
}

function batchText(batch: number | undefined): string {
  return batch === undefined ? "no batch axis" : `a batch of ${batch}`;
}

function expectShape(
  name: string,
  file: TensorSource | undefined,
  expected: readonly number[],
): void {
  if (
    !file || (file.shape.length === expected.length &&
      file.shape.every((size, axis) => size === expected[axis]))
  ) return;
  throw new InputRangeError(
    `${DOING}: ${name} has shape [${file.shape.join(", ")}], expected [${expected.join(", ")}]`,
  );
}
