import assert from "#assert";
import { gemmProblem } from "../problem/gemm_problem.ts";
import { gemmSubject } from "../run/gemm_subject.ts";
import { fillOperands } from "../run/operands.ts";
import { bf16round } from "../tensor/convert.ts";
import { addUnit, exponentOf } from "../simulate/unit_sums.ts";
import { makeOperands } from "./data.ts";
import { verifySubject } from "./verify.ts";
import { plainSubject } from "../../tests/support/plain_subject.ts";

const subject = plainSubject("mb2ic24ih12oc16kh3ph1");
const operands = fillOperands(subject, "normal", 1);

async function exactResult(): Promise<Float32Array<ArrayBuffer>> {
  return Float32Array.from((await subject.reference.of(operands, {})).values);
}

Deno.test("a result that is rounded once passes as f32", async () => {
  const { verdict, message, arithmetic } = await verifySubject(
    subject,
    operands,
    await exactResult(),
    { arithmetic: "f32" },
  );
  assert.deepEqual([verdict, message, arithmetic], ["pass", undefined, "f32, one sum"]);
});

Deno.test("one wrong output fails, and so does all zeros", async () => {
  const result = await exactResult();
  result[77]! += 1e-3;
  const one = await verifySubject(subject, operands, result, { arithmetic: "f32" });
  assert.equal(one.verdict, "fail");
  const none = await verifySubject(subject, operands, result.fill(0), { arithmetic: "f32" });
  assert.equal(none.verdict, "fail");
});

Deno.test("auto takes one wrong output for no coarser arithmetic", async () => {
  for (const by of [0.01, 0.05, 0.15]) {
    const result = await exactResult();
    result[77]! += by * Math.max(...result);
    const { verdict, arithmetic } = await verifySubject(subject, operands, result, {
      arithmetic: "auto",
    });
    assert.equal(verdict, "fail", `${by}: ${arithmetic}`);
  }
});

Deno.test("an arithmetic that is none is refused", async () => {
  await assert.rejects(
    verifySubject(subject, operands, new Float32Array(1), { arithmetic: "f33" }),
    /Cannot verify: there is no arithmetic "f33"/,
  );
});

Deno.test("sums in lanes, whose products cancel their neighbours, pass as f32", async () => {
  const { m, n, k } = { m: 6, n: 5, k: 1001 };
  const product = gemmSubject(gemmProblem({ m, n, k }), { dtype: "f32" });
  const made = makeOperands(product, { dtype: "f32", data: "cancelling", special: [], seed: 3 });
  const [a, b] = [made.a!, made.b!];
  const result = Float32Array.from({ length: m * n }, (_, at) => {
    const lanes = new Float32Array(8);
    for (let i = 0; i < k; i++) {
      lanes[i % 8]! += a[Math.floor(at / n) * k + i]! * b[i * n + at % n]!;
    }
    return lanes.reduce((sum, lane) => Math.fround(sum + lane), 0);
  });
  const { verdict, message } = await verifySubject(product, made, result, { arithmetic: "f32" });
  assert.deepEqual([verdict, message], ["pass", undefined]);
  result[7]! += 0.01;
  const wrong = await verifySubject(product, made, result, { arithmetic: "f32" });
  assert.equal(wrong.verdict, "fail");
});

Deno.test("matrix units that add every second product first pass as f16-f32 where products cancel", async () => {
  const { m, n, k } = { m: 16, n: 16, k: 256 };
  const product = gemmSubject(gemmProblem({ m, n, k }), { dtype: "f32" });
  const made = makeOperands(product, { dtype: "f16", data: "cancelling", special: [], seed: 2 });
  const [a, b] = [made.a!, made.b!];
  const result = Float32Array.from({ length: m * n }, (_, at) => {
    const factors = Array.from({ length: k }, (_, step) => {
      const i = step < k / 2 ? 2 * step : 2 * step - k + 1;
      return [a[Math.floor(at / n) * k + i]!, b[i * n + at % n]!] as const;
    });
    let sum = 0;
    for (let first = 0; first < k; first += 4) {
      const some = factors.slice(first, first + 4);
      const largest = Math.max(...some.map(([x, y]) => exponentOf(x) + exponentOf(y)));
      sum = addUnit(sum, Float64Array.from(some, ([x, y]) => x * y), 4, largest);
    }
    return sum;
  });
  const asked = { arithmetic: "f16-f32" };
  const { verdict, message } = await verifySubject(product, made, result, asked);
  assert.deepEqual([verdict, message], ["pass", undefined]);
  result[7]! += 0.01;
  assert.equal((await verifySubject(product, made, result, asked)).verdict, "fail");
});

Deno.test("f16 results may be of Winograd in f32: where the exact result is 0, they are not", async () => {
  const zeroFails = async (descriptor: string, arithmetic: string) => {
    const convolution = plainSubject(descriptor);
    const made = makeOperands(convolution, {
      dtype: "f16",
      data: "integers",
      special: [],
      seed: 1,
    });
    const result = Float16Array.from((await convolution.reference.of(made, {})).values);
    const at = result.indexOf(0);
    assert.notEqual(at, -1);
    result[at] = 2e-5;
    const asked = { arithmetic, results: "f16" } as const;
    const { verdict, accuracy: { of_limit } } = await verifySubject(
      convolution,
      made,
      Float32Array.from(result),
      asked,
    );
    assert.equal(of_limit <= 1, verdict === "pass");
    result[at] = 0.5;
    const wrong = await verifySubject(convolution, made, Float32Array.from(result), asked);
    assert.equal(wrong.verdict, "fail");
    return verdict === "fail";
  };
  for (const arithmetic of ["f16-f32", "auto"]) {
    assert.equal(await zeroFails("mb2ic3ih7oc5kh3ph1", arithmetic), false);
    assert.equal(await zeroFails("mb2ic3ih7oc5kh1", arithmetic), true);
  }
});

for (const results of ["f16", "bf16"] as const) {
  Deno.test(`results that are rounded toward zero fail, those to the nearest pass: ${results}`, async () => {
    const made = makeOperands(subject, { dtype: results, data: "normal", special: [], seed: 1 });
    const { values } = await subject.reference.of(made, {});
    const nearest = results === "f16" ? Math.f16round : bf16round;
    const verdict = async (round: (value: number) => number, arithmetic = `${results}-f32`) => {
      const result = Float32Array.from(values, (value) => round(Math.fround(value)));
      const asked = { arithmetic, results };
      const { verdict, message } = await verifySubject(subject, made, result, asked);
      return `${verdict} ${message ?? ""}`;
    };
    assert.equal(await verdict(nearest), "pass ");
    const epsilon = results === "f16" ? 2 ** -11 : 2 ** -8;
    const cut = (value: number) => {
      const near = nearest(value);
      return Math.abs(near) <= Math.abs(value) ? near : nearest(near * (1 - epsilon));
    };
    for (const arithmetic of [`${results}-f32`, "auto"]) {
      assert.equal(
        await verdict(cut, arithmetic),
        `fail results are rounded toward zero, not to the nearest ${results}`,
      );
    }
  });
}

Deno.test("dark parts whose results are 0 or negated are not taken for Winograd in f32", async () => {
  const convolution = plainSubject("mb1ic1ih10oc3kh5ph1");
  const made = makeOperands(convolution, {
    dtype: "bf16",
    data: "dark",
    special: [],
    seed: 702,
  });
  const { values } = await convolution.reference.of(made, {});
  const right = Float32Array.from(values, bf16round);
  const largest = Math.max(...right.map(Math.abs));
  const dark = (value: number) => Math.abs(value) < largest * 2 ** -14;
  assert.ok(right.filter(dark).length > 32);
  const verdict = async (change: (value: number) => number) => {
    const result = right.map((value) => dark(value) ? change(value) : value);
    const asked = { arithmetic: "bf16-f32", results: "bf16" } as const;
    return (await verifySubject(convolution, made, result, asked)).verdict;
  };
  assert.equal(await verdict((value) => value), "pass");
  assert.equal(await verdict(() => 0), "fail");
  assert.equal(await verdict((value) => -value), "fail");
});
