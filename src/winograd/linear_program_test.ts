import assert from "#assert";
import { f32Literal, linearProgram, plainOperations } from "./linear_program.ts";
import type { LinearProgram, Term } from "./simplify.ts";
import { identity, type Matrix, type Rational, rational, transpose, ZERO } from "./matrix.ts";
import { BACKENDS } from "../gpu/provider.ts";
import { openValidator } from "../../tests/support/validate.ts";
import type { Kernel } from "../kernels/kernel.ts";
import { lineTransform } from "../simulate/transforms.ts";
import { winogradTransform } from "./transform.ts";

/** The program's steps in exact arithmetic on every basis vector: the matrix it computes. */
function matrixOf({ inputs, steps, results }: LinearProgram): Matrix {
  const nodes: Rational[][] = identity(inputs).map((row) => [...row]);
  const value = ({ node, factor }: Term) => nodes[node]!.map((entry) => entry.mul(factor));
  for (const { left, right } of steps) {
    const sum = value(left);
    nodes.push(right ? value(right).map((entry, i) => entry.add(sum[i]!)) : sum);
  }
  return results.map((term) => term ? value(term) : new Array(inputs).fill(ZERO));
}

function assertSame(got: Matrix, expected: Matrix, what: string): void {
  assert.equal(got.length, expected.length);
  for (const [i, row] of expected.entries()) {
    for (const [j, value] of row.entries()) {
      assert.ok(value.equals(got[i]![j]!), `${what} at ${i}, ${j}`);
    }
  }
}

function matrix(...rows: (number | string)[][]): Matrix {
  return rows.map((row) => row.map(rational));
}

/** The matrices that are applied for F(n,r). */
function applied(n: number, r: number): [string, Matrix][] {
  const { a, g, d } = winogradTransform(n, r);
  return [["A", transpose(a)], ["G", g], ["D", transpose(d)]];
}

Deno.test("linearProgram() equals the matrix exactly for every F(n,r)", () => {
  for (let n = 1; n <= 16; n++) {
    for (let r = 1; n + r - 1 <= 16; r++) {
      for (const [name, given] of applied(n, r)) {
        const program = linearProgram(given);
        assertSame(matrixOf(program), given, `${name} of F(${n},${r})`);
        const plain = plainOperations(given);
        assert.ok(program.additions <= plain.additions, `${name} of F(${n},${r}) adds more`);
        assert.ok(
          program.instructions <= plain.additions + plain.multiplications,
          `${name} of F(${n},${r}) has more instructions`,
        );
      }
    }
  }
});

Deno.test("linearProgram() has one factor a step, and counts what its steps do", () => {
  for (const [, given] of applied(6, 3)) {
    const program = linearProgram(given);
    let additions = 0, multiplications = 0;
    for (const { left, right } of program.steps) {
      const factors = [left, right].filter((term) => term && !term.factor.abs().equals(1));
      assert.ok(factors.length <= 1);
      multiplications += factors.length;
      if (right) additions++;
      else assert.equal(factors.length, 1);
    }
    assert.equal(program.additions, additions);
    assert.equal(program.multiplications, multiplications);
    assert.equal(program.instructions, program.steps.length);
  }
});

Deno.test("linearProgram() shares products between points of opposite sign", () => {
  // e = a + 4c, o = 2b: e + o and e - o, where the matrix has 4 additions and 4 multiplications.
  const program = linearProgram(matrix([1, 2, 4], [1, -2, 4]));
  assert.deepEqual([program.additions, program.multiplications], [3, 3]);
  assert.equal(program.instructions, 3);
  // The transpose: sums and differences of the two columns serve all rows.
  const columns = linearProgram(matrix([1, 1], [2, -2], [4, 4]));
  assert.deepEqual([columns.additions, columns.multiplications], [2, 2]);
});

Deno.test("linearProgram() charges nothing for zeros, copies and signs", () => {
  const program = linearProgram(matrix([1, 0], [0, -1], [0, 0], [1, 0]));
  assert.deepEqual([program.steps.length, program.additions, program.multiplications], [0, 0, 0]);
  assert.deepEqual(program.text("t", ["a", "b"], "f32"), {
    statements: [],
    outputs: ["a", "(-b)", "0f", "a"],
  });
});

Deno.test("linearProgram() computes rows that are multiples of another once", () => {
  const program = linearProgram(matrix([1, 2, 3], [-1, -2, -3], [2, 4, 6]));
  assert.equal(program.additions, 2);
  assertSame(matrixOf(program), matrix([1, 2, 3], [-1, -2, -3], [2, 4, 6]), "multiples");
});

Deno.test("linearProgram() of F(2,3) has the known counts", () => {
  const counts = applied(2, 3).map(([, given]) => {
    const { additions, multiplications } = linearProgram(given);
    return [additions, multiplications];
  });
  // A and D take 4 additions, as in every paper.
  assert.deepEqual([counts[0], counts[2]], [[4, 0], [4, 0]]);
});

Deno.test("plainOperations() counts entries", () => {
  assert.deepEqual(plainOperations(matrix([1, 2, 0], [0, 0, 0], [0, -1, "1/2"])), {
    additions: 2,
    multiplications: 2,
  });
});

Deno.test("text() writes sums, fused products and literals that read back exactly", () => {
  const program = linearProgram(matrix([1, "-1/3"], ["1/3", 0]));
  const { statements, outputs } = program.text("t", ["x[0]", "a + b"], "vec4f");
  assert.deepEqual(statements, [
    "let t0 = fma(vec4f(-0.3333333432674408f), (a + b), x[0]);",
    "let t1 = 0.3333333432674408f * x[0];",
  ]);
  assert.deepEqual(outputs, ["t0", "t1"]);
  for (const value of ["1/3", "-4/90", "1/1000000007", "123456789/7", "16777217"]) {
    const factor = rational(value);
    const literal = f32Literal({ factor });
    assert.match(literal, /^-?\d+(\.\d+)?(e-?\d+)?f$/);
    assert.equal(Math.fround(Number(literal.slice(0, -1))), Math.fround(factor.valueOf()));
  }
});

Deno.test("text() refuses another number of inputs", () => {
  assert.throws(() => linearProgram(matrix([1, 1])).text("t", ["a"], "f32"), {
    name: "RangeError",
    message: "Cannot write a transform: 1 inputs given, it has 2",
  });
});

Deno.test("text() computes what the steps do", () => {
  for (const [, given] of applied(4, 5)) {
    const program = linearProgram(given);
    const names = Array.from({ length: program.inputs }, (_, i) => `x${i}`);
    const { statements, outputs } = program.text("t", names, "f32");
    const values: Record<string, number> = {};
    names.forEach((name, i) => values[name] = Math.fround(Math.sin(i + 1)));
    for (const statement of statements) {
      const [, target, expression] = /^let (\w+) = (.+);$/.exec(statement)!;
      values[target!] = evaluate(expression!, values);
    }
    const got = outputs.map((output) => evaluate(output, values));
    const inF32 = lineTransform(program, true);
    const expected = new Float64Array(inF32.outputs);
    inF32.apply(Float64Array.from(names, (name) => values[name]!), 0, expected, 0, 1);
    assert.deepEqual(got, [...expected]);
  }
});

/** Evaluates the few forms of expressions that programs have. */
function evaluate(expression: string, values: Readonly<Record<string, number>>): number {
  const operand = (text: string): number => {
    const bare = text.replace(/^\((.*)\)$/, "$1");
    if (bare.startsWith("-") && bare.slice(1) in values) return -values[bare.slice(1)]!;
    return bare in values ? values[bare]! : Math.fround(Number(bare.replace(/f$/, "")));
  };
  const fused = /^fma\((.+), (.+), (.+)\)$/.exec(expression);
  if (fused) {
    const [a, b, c] = fused.slice(1).map(operand);
    return Math.fround(a! * b! + c!);
  }
  const [, left, sign, right] = /^(\S+) ([-+*]) (\S+)$/.exec(expression) ?? [];
  if (left === undefined) return operand(expression);
  const [a, b] = [operand(left), operand(right!)];
  return Math.fround(sign === "*" ? a * b : sign === "-" ? a - b : a + b);
}

Deno.test("text() is valid WGSL to both compilers", async () => {
  const kernels = ([[2, 3, "f32"], [6, 3, "vec2f"], [8, 9, "vec4f"], [1, 3, "vec4f"]] as const)
    .flatMap(([n, r, type]) =>
      applied(n, r).map(([name, given]) => transformKernel(`${name}_${n}_${r}`, given, type))
    );
  for (const backend of BACKENDS) {
    using validator = await openValidator(backend);
    for (const kernel of kernels) {
      const messages = await validator.validate(kernel);
      assert.deepEqual(messages.filter(({ type }) => type === "error"), [], kernel.wgsl);
    }
  }
});

/** A shader that transforms one vector. */
function transformKernel(name: string, given: Matrix, type: "f32" | "vec2f" | "vec4f"): Kernel {
  const program = linearProgram(given);
  const inputs = Array.from({ length: program.inputs }, (_, i) => `x[${i}]`);
  const { statements, outputs } = program.text("t", inputs, type);
  const wgsl = [
    `@group(0) @binding(0) var<storage, read> x: array<${type}>;`,
    `@group(0) @binding(1) var<storage, read_write> y: array<${type}>;`,
    "@compute @workgroup_size(1) fn main() {",
    ...statements,
    ...outputs.map((output, i) => `y[${i}] = ${output};`),
    "}",
  ].join("\n");
  return {
    name,
    wgsl,
    bindings: ["read", "write"],
    workgroupSize: [1, 1, 1],
    workgroupBytes: 0,
    features: [],
  };
}
