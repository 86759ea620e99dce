/** Shapes of files that people have, by `wgconv gemm` on the CPU. */
import assert from "#assert";
import { temporaryDirectory } from "./cli.ts";
import { join } from "node:path";
import { readNpy, writeNpy } from "../src/npy/mod.ts";
import { fillTensor } from "../src/tensor/fill.ts";
import { elementCount, type Tensor, tensor, unravelIndex } from "../src/tensor/tensor.ts";
import { succeeds } from "./support/in_process.ts";

const made = (shape: readonly number[], seed: number) => fillTensor("f32", shape, "integer", seed);

/** An element of a tensor that is broadcast to where `at` is one. */
function broadcastAt({ shape, data }: Tensor<"f32">, at: readonly number[]): number {
  const places = at.slice(at.length - shape.length);
  const index = shape.reduce((sum, size, axis) => sum * size + (size === 1 ? 0 : places[axis]!), 0);
  return data[index]!;
}

/** op(A)·op(B) + C + bias, element by element. */
function product(
  { a, b, more }: { a: Tensor<"f32">; b: Tensor<"f32">; more: readonly Tensor<"f32">[] },
  shape: readonly number[],
  transpose: string,
): Tensor<"f32"> {
  const values = Float32Array.from({ length: elementCount(shape) }, (_, flat) => {
    const at = unravelIndex(flat, shape);
    const [batch, [i, j]] = [at.slice(0, -2), at.slice(-2) as [number, number]];
    let sum = more.reduce((added, one) => added + broadcastAt(one, at), 0);
    for (let k = 0; k < 3; k++) {
      const left = broadcastAt(a, [...batch, ...(transpose[0] === "n" ? [i, k] : [k, i])]);
      sum += left * broadcastAt(b, [...batch, ...(transpose[1] === "n" ? [k, j] : [j, k])]);
    }
    return sum;
  });
  return tensor("f32", shape, values);
}

/** Shapes of A and B, of the result, transposes, and of what is added: C, residual, bias. */
const CASES: readonly {
  readonly a: number[];
  readonly b: number[];
  readonly y: number[];
  readonly transpose?: string;
  readonly added?: { readonly [option: string]: number[] };
  readonly more?: readonly string[];
  /** The problem that the report shows. */
  readonly problem: RegExp;
}[] = [
  // One matrix with the rows of all.
  { a: [2, 4, 3], b: [3, 5], y: [2, 4, 5], problem: /^8 5 3$/ },
  { a: [2, 1, 4, 3], b: [1, 3, 5], y: [2, 1, 4, 5], problem: /^8 5 3$/, added: { bias: [1, 5] } },
  {
    a: [2, 4, 3],
    b: [5, 3],
    y: [2, 4, 5],
    transpose: "nt",
    problem: /^8 5 3 n t$/,
    added: { c: [4, 1] },
  },
  // Each repeated.
  {
    a: [4, 3],
    b: [2, 3, 5],
    y: [2, 4, 5],
    problem: /^4 5 3 .*2/,
    added: { c: [1, 5], residual: [2, 1, 1] },
  },
  { a: [2, 3, 4], b: [3, 5], y: [2, 4, 5], transpose: "tn", problem: /^4 5 3 t n .*2/ },
  {
    ...{ a: [2, 4, 3], b: [3, 5], y: [2, 4, 5], problem: /^4 5 3 .*2/ },
    ...{ added: { bias: [4, 1] }, more: ["--bias-side", "row"] },
  },
  // Several axes.
  { a: [2, 2, 4, 3], b: [2, 2, 3, 5], y: [2, 2, 4, 5], problem: /^4 5 3 .*4/, added: { bias: [] } },
  { a: [2, 1, 4, 3], b: [3, 3, 5], y: [2, 3, 4, 5], problem: /^4 5 3 .*6/ },
  { a: [4, 3], b: [1, 3, 5], y: [1, 4, 5], problem: /^4 5 3$/, added: { bias: [5], c: [] } },
];

Deno.test("gemm broadcasts batches of several axes as numpy.matmul, and what is added to the result", async () => {
  using temporary = temporaryDirectory();
  const folder = temporary.path;
  for (const { a, b, y, transpose = "nn", added = {}, more = [], problem } of CASES) {
    const files = { a: made(a, 1), b: made(b, 2) };
    const all: Record<string, Tensor<"f32">> = { ...files };
    Object.entries(added).forEach(([option, shape], i) => all[option] = made(shape, 3 + i));
    const args = ["gemm", "--device", "cpu", "--json", "--transpose", transpose, ...more];
    for (const [option, whole] of Object.entries(all)) {
      const path = join(folder, `${option}.npy`);
      await writeNpy(path, whole);
      args.push(`--${option}`, path);
    }
    const output = join(folder, "y.npy");
    const { stdout } = await succeeds([...args, "--output", output, "--force"]);
    assert.match(JSON.parse(stdout).problem, problem);
    const terms = Object.keys(added).map((option) => all[option]!);
    assert.deepEqual(await readNpy(output), product({ ...files, more: terms }, y, transpose));
  }
});
