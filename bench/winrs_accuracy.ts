/**
 * Errors of WinRS on the GPU at hand, of data uniform on [0,1) as mean of |relative| (MARE) over the gradient:
 *   deno run -A bench/winrs_accuracy.ts lengths [EXPONENTS] [KERNELS] [FLUSHES] [--svg=FILE]
 * against the length of its sums, in powers of 2. KERNELS are named as --pair takes them, FLUSHES are products of a
 * part (0: one accumulator for all); one segment, so that a single chain of sums does all.
 *   deno run -A bench/winrs_accuracy.ts suite [SUITE]
 * of a suite's problems as they are planned for an H200, with its pair, segments and parts, but 4 channels of each
 * side: sums do not know how many others there are.
 */
import { expectPlanned } from "../src/algorithms/refusal.ts";
import { DEFAULT_LIMITS } from "../src/algorithms/plan.ts";
import type { PlanRequest } from "../src/algorithms/request.ts";
import { configure, configureAs } from "../src/algorithms/winrs/configure.ts";
import { omegaName, OMEGAS } from "../src/algorithms/winrs/omega.ts";
import { configureOptions, planConfiguration } from "../src/algorithms/winrs/plan.ts";
import { planConv } from "../src/algorithms/planner.ts";
import type { Plan } from "../src/algorithms/plan.ts";
import { checkAgainst, computeReference, type Reference } from "../src/run/check.ts";
import { convResult, convSubject } from "../src/run/conv_subject.ts";
import { fillOperands } from "../src/run/operands.ts";
import { runPlan } from "../src/run/run_plan.ts";
import type { HostOperands } from "../src/run/subject.ts";
import { parseSuite } from "../src/bench/suite.ts";
import { openDevice } from "../src/gpu/device.ts";
import { type ConvProblem, convProblem } from "../src/problem/conv_problem.ts";
import { NO_EPILOGUE } from "../src/problem/epilogue.ts";
import { renderCharts } from "../src/report/charts/render.ts";
import { colourScale } from "../src/report/charts/theme.ts";

const CHANNELS = 4;
const LAYOUT = { layout: "nhwc", filterLayout: "krsc" } as const;
const svg = Deno.args.find((arg) => arg.startsWith("--svg="))?.slice("--svg=".length);
const [mode, ...rest] = Deno.args.filter((arg) => !arg.startsWith("--"));
using gpu = await openDevice();
console.log(gpu.info.adapter);
if (mode === "suite") await overSuite(rest[0]);
else await overLengths(rest);

function requestFor(problem: ConvProblem, more: Partial<PlanRequest> = {}): PlanRequest {
  return {
    problem,
    dtype: "f32",
    ...LAYOUT,
    epilogue: NO_EPILOGUE,
    algorithm: "winrs",
    limits: gpu.limits,
    sizes: "uniform",
    ...more,
  };
}

interface Data {
  readonly operands: HostOperands;
  readonly reference: Reference;
}

async function dataFor(problem: ConvProblem): Promise<Data> {
  const subject = convSubject({ problem, ...LAYOUT });
  const operands = fillOperands(subject, "uniform01", 7);
  const reference = await computeReference({ subject, operands, mode: "full", seed: 1 });
  return { operands, reference };
}

async function mareOf(problem: ConvProblem, plan: Plan, data: Data): Promise<number> {
  const { result } = await runPlan(gpu, plan, data.operands, convResult(problem), 2);
  return checkAgainst(data.reference, result, plan.arithmetic).accuracy.mare ?? NaN;
}

/** Steps so deep that Mesa's limit of 65,535 iterations of a loop is not met. */
function deepPolicy(alpha: number): string {
  return `8x8x${({ 2: 64, 4: 32, 8: 32 } as Record<number, number>)[alpha] ?? 16}_4x4`;
}

async function overLengths([exponents, kernels, flushes]: string[]): Promise<void> {
  const powers = (exponents ?? "8,9,10,11,12,13,14,15,16,17,18,19,20,21").split(",").map(Number);
  const named = (kernels ?? "a2n1r1,a4n3r2,a8n3r6,a16n9r8").split(",");
  const parts = (flushes ?? "0,2048").split(",").map(Number);
  const points: { kernel: string; length: number; flush: number; mare: number }[] = [];
  console.log(["kernel", "length", ...parts.map((part) => `MARE, parts of ${part}`)].join("\t"));
  for (const exponent of powers) {
    const side = 2 ** Math.min(6, Math.floor(exponent / 2));
    for (const omega of OMEGAS.filter((one) => named.includes(omegaName(one)))) {
      const width = omega.n === 1 ? 3 : omega.n;
      const problem = convProblem({
        op: "bwd-filter",
        batch: 2 ** exponent / side ** 2,
        inChannels: CHANNELS,
        outChannels: CHANNELS,
        inputSize: [side, side + width - 1],
        filterSize: [1, width],
      });
      const data = await dataFor(problem);
      const errors: number[] = [];
      for (const flush of parts) {
        const forced = {
          pair: omegaName(omega),
          splits: 1,
          flush,
          policy: deepPolicy(omega.alpha),
        };
        const mare = await mareOf(problem, planConv(requestFor(problem, forced)), data);
        errors.push(mare);
        points.push({ kernel: omegaName(omega), length: 2 ** exponent, flush, mare });
      }
      const figures = errors.map((error) => error.toExponential(2));
      console.log([omegaName(omega), `2^${exponent}`, ...figures].join("\t"));
    }
  }
  if (svg !== undefined) await Deno.writeTextFile(svg, await chart(points, named));
}

async function chart(
  points: readonly { kernel: string; length: number; flush: number; mare: number }[],
  kernels: readonly string[],
): Promise<string> {
  const spec = {
    data: {
      values: points.map(({ flush, ...point }) => ({
        ...point,
        sums: flush === 0 ? "one accumulator" : `parts of ${flush}`,
      })),
    },
    width: 520,
    height: 300,
    mark: { type: "line" as const, point: { size: 18 } },
    encoding: {
      x: {
        field: "length",
        type: "quantitative" as const,
        scale: { type: "log" as const, base: 2 },
        axis: { title: "length of the sums, N · O_H · O_W" },
      },
      y: {
        field: "mare",
        type: "quantitative" as const,
        scale: { type: "log" as const },
        axis: { title: "MARE", format: ".0e" },
      },
      color: { field: "kernel", type: "nominal" as const, scale: colourScale(kernels) },
      strokeDash: { field: "sums", type: "nominal" as const },
    },
  };
  const title = "Error of WinRS against accumulation length";
  const [drawn = ""] = await renderCharts([{ title, caption: "", spec }]);
  // Shown as an image it inherits no colour: a grey that does on light and on dark.
  return drawn.replaceAll("currentColor", "#808080") + "\n";
}

async function overSuite(path?: string): Promise<void> {
  const file = path ?? new URL("suites/winrs_bfc.txt", import.meta.url);
  const h200 = {
    ...DEFAULT_LIMITS,
    maxComputeWorkgroupStorageSize: 49_152,
    maxComputeInvocationsPerWorkgroup: 1024,
    maxStorageBufferBindingSize: 2 ** 31 - 4,
    maxBufferSize: 2 ** 31,
  };
  console.log("problem\tpair\tZ\tlongest sum\tMARE");
  const worst: Record<string, number> = {};
  for (const whole of parseSuite(Deno.readTextFileSync(file), String(file), "bwd-filter")) {
    const options = expectPlanned(configureOptions(requestFor(whole, { limits: h200 })));
    const { pair, segmentation } = configure(whole, options);
    const problem = convProblem({
      ...whole,
      groups: 1,
      inChannels: CHANNELS,
      outChannels: CHANNELS,
    });
    const configuration = configureAs(problem, pair, segmentation, options);
    const request = requestFor(problem, { policy: "8x8x8_4x4" });
    const mare = await mareOf(
      problem,
      expectPlanned(planConfiguration(request, "uniform", configuration)),
      await dataFor(problem),
    );
    const kernels = [pair.first, ...(pair.second ? [pair.second] : [])];
    const alpha = Math.max(...kernels.map((omega) => omega.alpha));
    worst[`α = ${alpha}`] = Math.max(worst[`α = ${alpha}`] ?? 0, mare);
    const { rows, firstColumns, count } = segmentation;
    const longest = Math.ceil(configuration.axes.outputRows / rows) *
      Math.ceil(pair.k0 / firstColumns) * problem.batch;
    console.log(
      [whole.name, kernels.map(omegaName).join(","), count, longest, mare.toExponential(2)].join(
        "\t",
      ),
    );
  }
  for (const [alpha, mare] of Object.entries(worst)) {
    console.log(`worst of ${alpha}: ${mare.toExponential(2)}`);
  }
}
