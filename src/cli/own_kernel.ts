import { dirname, resolve } from "node:path";
import { type OwnKernel, parseOwnKernel } from "../algorithms/own_kernel/kernel_file.ts";
import { ownAlgorithm } from "../algorithms/own_kernel/own_kernel.ts";
import { registerAlgorithm } from "../algorithms/registry.ts";
import { InputTypeError } from "../errors.ts";
import { readText } from "../read_text.ts";

export const KERNEL_HELP =
  "your own kernel: a JSON file that names WGSL (docs/guides/own_kernels.md)";

/** Reads a kernel's JSON file, and the WGSL that it names, which lies beside it. */
export function readOwnKernel(path: string): OwnKernel {
  return parseOwnKernel(readText(path), path, (name) => readText(resolve(dirname(path), name)));
}

/**
 * What a kernel's file says of all problems that it computes.
 *
 * @throws {TypeError} for a kernel of the other command.
 */
export function ownWords(path: string, gemm: boolean) {
  const { op, dtype, layout = "nchw", activation, transpose = "nn" } = readOwnKernel(path);
  if (gemm !== (op === "gemm")) {
    throw new InputTypeError(
      `Cannot verify ${path}: ` +
        (gemm
          ? "it convolves, wgconv verify takes it"
          : "it multiplies, wgconv verify gemm takes it"),
    );
  }
  return { dtype: [dtype], activation, ...(op === "gemm" ? { transpose } : { op, layout }) };
}

/** Kernels of files, which are algorithms until what is returned is disposed. */
interface OwnAlgorithms extends Disposable {
  readonly names: readonly string[];
}

/**
 * Registers the kernels of files.
 *
 * @throws {TypeError} for a kernel of products, {RangeError} for one with the name of another algorithm.
 */
export function useOwnKernels(paths: readonly string[]): OwnAlgorithms {
  using registered = new DisposableStack();
  const names = paths.map((path) => {
    const own = readOwnKernel(path);
    if (own.op === "gemm") {
      throw new InputTypeError(`Cannot use ${path}: it multiplies matrices, wgconv gemm takes it`);
    }
    registered.use(registerAlgorithm(ownAlgorithm(own)));
    return own.name;
  });
  const kept = registered.move();
  return { names, [Symbol.dispose]: () => kept.dispose() };
}

/** @throws {TypeError} where an algorithm is named beside a kernel. */
export function refuseBesideKernel(doing: string, algorithm: string): void {
  if (algorithm === "auto") return;
  throw new InputTypeError(`${doing}: --kernel says what runs, --algorithm must go`);
}
