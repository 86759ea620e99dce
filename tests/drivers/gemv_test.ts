/** Matrices times a few vectors on the driver at hand, by the gate. */
import assert from "#assert";
import { H200 } from "../../src/algorithms/device/h200.ts";
import { modelOf } from "../../src/algorithms/device/known.ts";
import { gemvProduct, planGemv } from "../../src/algorithms/gemm/gemv.ts";
import { expectPlanned } from "../../src/algorithms/refusal.ts";
import { elementsOf } from "../../src/elements/elements.ts";
import type { GpuDevice } from "../../src/gpu/device.ts";
import { type GemmProblem, gemmProblem, TRANSPOSES } from "../../src/problem/gemm_problem.ts";
import { printGemm } from "../../src/problem/gemm_suite.ts";
import { randomStream } from "../../src/reference/sample.ts";
import { checkAgainst, computeReference } from "../../src/run/check.ts";
import { gemmSubject } from "../../src/run/gemm_subject.ts";
import { fillOperands } from "../../src/run/operands.ts";
import { runPlan } from "../../src/run/executor.ts";
import type { HostData } from "../../src/run/subject.ts";
import { ARITHMETIC, type Choice, epiloguesOf, FEATURES, multiply } from "../gemm_matrix.ts";
import { full, testsOn } from "./driver.ts";

const test = testsOn({ optionalFeatures: FEATURES });

/** What gemv multiplies of the arithmetic that the device has the features for. */
function available(gpu: GpuDevice): Pick<Choice, "dtype" | "outDtype">[] {
  return ARITHMETIC
    .filter(({ accumulate, schedule, feature }) =>
      accumulate === undefined && schedule === undefined &&
      (feature === undefined || gpu.features.has(feature))
    )
    .flatMap((
      { dtype },
    ) => [
      { dtype },
      ...(dtype === "f16" || dtype === "bf16" ? [{ dtype, outDtype: "f32" }] : []),
    ]) as Pick<
      Choice,
      "dtype" | "outDtype"
    >[];
}

async function product(
  gpu: GpuDevice,
  problem: Partial<GemmProblem> & Pick<GemmProblem, "m" | "n" | "k">,
  choice: Choice,
) {
  const asked = {
    device: H200,
    ...choice,
    schedule: { policy: "gemv", splits: undefined, ...choice.schedule },
  };
  const { plan, result, checked } = await multiply(gpu, problem, asked);
  const what = printGemm({ batch: 1, transpose: "nn", ...problem } as GemmProblem);
  assert.equal(checked?.verdict, "pass", `${what} ${plan.kernel}: ${checked?.message}`);
  return { plan, result };
}

test("rows and columns times matrices agree with the reference in every type, transpose and epilogue", async (gpu) => {
  let turn = 0;
  for (const choice of available(gpu)) {
    const plain = choice.dtype === "f32" || full;
    const epilogues = epiloguesOf(choice.dtype!);
    for (const transpose of TRANSPOSES) {
      // Whole fours of either side, and not; one vector, two, some, and as many as there may be.
      const sizes = [[1, 68, 132], [70, 1, 133], [2, 65, 40], [72, 3, 61], [5, 36, 44], [
        33,
        16,
        20,
      ]];
      for (const [m = 0, n = 0, k = 0] of plain ? sizes : sizes.slice(turn % 2, 4)) {
        const epilogue = epilogues[turn++ % epilogues.length];
        const sizesIn = turn % 2 === 0 ? "uniform" : "constant";
        for (const splits of plain ? [undefined, 3] : [turn % 3 === 0 ? 3 : undefined]) {
          const { plan } = await product(gpu, { m, n, k, transpose, ...epilogue }, {
            ...choice,
            schedule: { splits },
            sizes: sizesIn,
          });
          assert.match(plan.kernel, splits === 3 ? /^gemv_.*_split/ : /^gemv_/);
        }
      }
    }
  }
});

test("batches have matrices and vectors of their own", async (gpu) => {
  for (const choice of available(gpu)) {
    const all = epiloguesOf(choice.dtype!).at(-1)!;
    for (const transpose of choice.dtype === "f32" ? TRANSPOSES : ["nt", "tn"] as const) {
      for (const [m, n, k] of [[1, 36, 40], [37, 2, 29]] as const) {
        const problem = { m, n, k, batch: 3, transpose, ...all };
        for (const splits of [1, 2]) {
          await product(gpu, problem, { ...choice, schedule: { splits } });
        }
      }
    }
  }
});

test("products dealt to threads in every way agree with the reference", async (gpu) => {
  const random = randomStream(11);
  const below = (count: number) => Math.floor(random() * count);
  const pick = <T>(list: readonly T[]) => list[below(list.length)]!;
  for (let tries = 0; tries < (full ? 300 : 60); tries++) {
    const choice = pick(available(gpu));
    const { dtype = "f32", outDtype } = choice;
    const vectors = 1 + below(pick([1, 4, 9]));
    const places = pick([1 + below(20), 4 * (1 + below(100)), 1 + below(300)]);
    const k = pick([1 + below(300), 4 * (1 + below(200)), 1]);
    const [m, n] = pick([[vectors, places], [places, vectors]] as const);
    const problem = gemmProblem({
      m,
      n,
      k,
      batch: pick([1, 1, 3]),
      transpose: pick(TRANSPOSES),
      ...pick(epiloguesOf(dtype)),
    });
    const lanes = 2 ** below(9);
    const threads = { lanes, groups: 256 / lanes, each: pick([1, 2, 3]), ahead: pick([1, 2, 4]) };
    const shape = { ...gemvProduct(problem, elementsOf({ dtype })), splits: 1, threads };
    const blocks = shape.depth % 4 === 0 ? shape.depth / 4 : shape.depth;
    const splits = Math.ceil(blocks / Math.ceil(blocks / pick([1, 1, 2, 5])));
    const request = { problem, dtype, ...(outDtype && { outDtype }), limits: gpu.limits };
    const sizes = pick(["constant", "uniform"] as const);
    const plan = expectPlanned(planGemv({ ...request, sizes }, { ...shape, splits }));
    const subject = gemmSubject(problem, { dtype, outDtype });
    const fill = dtype === "i8" ? "int8" : dtype === "f64" ? "normal" : "uniform11";
    const operands = fillOperands(subject, fill, 7);
    const { result } = await runPlan(gpu, plan, operands, subject.result, 2);
    const reference = await computeReference({ subject, operands, mode: "full", seed: 1 });
    const { verdict, message } = checkAgainst(reference, result as HostData, plan.arithmetic);
    assert.equal(verdict, "pass", `${printGemm(problem)} ${plan.kernel}: ${message}`);
  }
});

test("sizes in the kernel give what sizes in a uniform do, to the bit, and every run the same", async (gpu) => {
  for (const choice of available(gpu)) {
    for (const [m, n, k] of [[1, 260, 516], [130, 3, 257]] as const) {
      const problem = { m, n, k, transpose: "nt" } as const;
      const one = await product(gpu, problem, { ...choice, sizes: "constant" });
      const other = await product(gpu, problem, { ...choice, sizes: "uniform" });
      const again = await product(gpu, problem, { ...choice, sizes: "uniform" });
      assert.deepEqual(one.result, other.result);
      assert.deepEqual(other.result, again.result);
    }
  }
});

test("matrices of several bindings give the same", async (gpu) => {
  for (const choice of available(gpu)) {
    if (!full && choice.dtype !== "f32" && choice.dtype !== "i8") continue;
    const limits = { ...gpu.limits, maxStorageBufferBindingSize: 4096 };
    for (const transpose of TRANSPOSES) {
      for (const [m, n, k] of [[1, 52, 60], [53, 2, 61]] as const) {
        const { plan } = await product(gpu, { m, n, k, transpose }, { ...choice, limits });
        if (choice.dtype === "f32") assert.match(plan.kernel, /_parts/);
      }
    }
  }
});

test("what a planner of this device takes of few rows and columns agrees with the reference", async (gpu) => {
  const device = modelOf(gpu.workgroupsInFlight, undefined, gpu.info.adapter);
  for (const choice of available(gpu)) {
    for (const [m, n, k] of [[1, 300, 2000], [1, 1, 3001], [7, 1, 2000], [2, 2000, 5]] as const) {
      const { plan } = await product(gpu, { m, n, k }, {
        ...choice,
        schedule: { policy: undefined },
        device,
      });
      assert.match(plan.kernel, /^gemv_/);
    }
  }
});
