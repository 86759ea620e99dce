/** Convolutions by rows of taps on matrix units, by the gate, on the devices of `matrix_units_test.ts`. */
import assert from "#assert";
import fc from "fast-check";
import { softwareDevice } from "../../src/algorithms/device/software.ts";
import { planConv } from "../../src/algorithms/planner.ts";
import type { PlanRequest } from "../../src/algorithms/request.ts";
import type { GpuDevice } from "../../src/gpu/device.ts";
import type { MatrixUnit } from "../../src/kernels/matrix_units.ts";
import { type ConvProblem, convProblem } from "../../src/problem/conv_problem.ts";
import { parseDescriptor } from "../../src/problem/descriptor.ts";
import { ACTIVATIONS } from "../../src/problem/activations.ts";
import { NO_EPILOGUE } from "../../src/problem/epilogue.ts";
import { convSubject } from "../../src/run/conv_subject.ts";
import { fillOperands } from "../../src/run/operands.ts";
import { runPlan } from "../../src/run/executor.ts";
import { checkedResult, convRequest } from "../checked_plan.ts";
import { randomAxes, randomSizes, sizeModes } from "../random_axes.ts";
import { full, test } from "./driver.ts";

/** Filters of two to four taps, or sometimes so many, along the last axis, which is walked one place at a time. */
function rowAxes(...more: readonly number[]) {
  return fc.tuple(
    randomAxes({ more: 9, stride: 2, dilation: 3 }),
    fc.constantFrom(0, 0, 0, 0, ...more),
  ).map(([axes, taps]) =>
    axes.map((axis, d) =>
      d === axes.length - 1
        ? { ...axis, stride: 1, filter: taps || Math.max(2, axis.filter) }
        : axis
    )
  );
}

/** The same, and as often such as keep the last axis' size. */
const ringAxes = fc.oneof(
  rowAxes(5),
  rowAxes(5).map((axes) =>
    axes.map((axis, d) => {
      if (d < axes.length - 1) return axis;
      const reach = (axis.filter - 1) * axis.dilation;
      const begin = Math.min(axis.begin, reach);
      return { ...axis, begin, end: reach - begin };
    })
  ),
);

/** What of a device multiplies halves. */
function halfUnit({ matrixUnits }: GpuDevice): MatrixUnit {
  return matrixUnits!.units.find(({ component }) => component === "f16")!;
}

/** A request for implicit GEMM of halves by rows of taps. */
function rowRequest(
  gpu: GpuDevice,
  problem: ConvProblem,
  flush: number | undefined,
  more: Partial<PlanRequest>,
): PlanRequest {
  return convRequest(gpu, problem, {
    algorithm: "implicit-gemm",
    layout: "nhwc",
    dtype: "f16",
    device: softwareDevice(4),
    matrixUnits: gpu.matrixUnits!,
    ...more,
    schedule: { tapRows: true, ...(flush === undefined ? {} : { flush }), ...more.schedule },
  });
}

/** Counts what kernels' names say, and asserts that each of some was often enough among them. */
function traitCounts() {
  const found = new Map<string, number>();
  return {
    add: (traits: readonly string[]) =>
      traits.forEach((trait) => found.set(trait, (found.get(trait) ?? 0) + 1)),
    assertSeen(...traits: readonly string[]) {
      for (const trait of traits) {
        assert.ok((found.get(trait) ?? 0) >= 3, `${trait} of ${JSON.stringify([...found])}`);
      }
    },
  };
}

const ROW_TRAITS = /_row\d(x\d)?|j?y\d+|_a\d(?=b)|_split|_streamk|_stored\d|_flush\d/g;

test.units("random convolutions of f16 by rows of taps agree with the reference", async (gpu) => {
  const eights = fc.constantFrom(8, 16, 24, 40);
  const found = traitCounts();
  await fc.assert(
    fc.asyncProperty(
      randomSizes({
        axes: rowAxes(5, 7),
        batch: fc.constantFrom(1, 2, 5),
        groups: fc.constantFrom(1, 1, 2),
        groupIn: eights,
        groupOut: eights,
      }),
      fc.constantFrom("fwd", "bwd-data"),
      fc.constantFrom("krsc", "kcrs", "crsk"),
      fc.constantFrom("f32", "f16"),
      fc.constantFrom(...ACTIVATIONS),
      fc.constantFrom(1, 3, "stream-k" as const),
      sizeModes,
      fc.constantFrom(undefined, 16),
      // Steps of one matrix of each tap, of two, and of two with subgroups for 256 threads of eight, of which a last load leaves some out.
      fc.constantFrom("small", "deep", "many"),
      fc.boolean(),
      async (init, op, filterLayout, outDtype, activation, cut, sizes, flush, tile, packed) => {
        const asked = rowRequest(gpu, convProblem({ ...init, op }), flush, {
          filterLayout,
          ...(op === "fwd" ? { epilogue: { bias: true, activation } } : {}),
          outDtype,
          sizes,
          schedule: {
            policy: "matrix-small",
            tapRows: true,
            packedFilter: packed,
            ...(cut === "stream-k" ? { balance: cut } : { splits: cut }),
          },
        });
        // Where taps of the first results would begin within the source there are no rows.
        const taps = /_row(\d)/.exec(planConv(asked).kernel)?.[1];
        const { m, n, k } = halfUnit(gpu);
        const depth = 2 * k * Number(taps);
        const tiles = {
          small: asked.schedule?.policy!,
          deep: `${4 * m}x${4 * n}x${depth}_${2 * m}x${2 * n}m`,
          many: `${4 * m}x${16 * n}x${depth}_${m}x${2 * n}m`,
        };
        const policy = taps === undefined ? asked.schedule?.policy! : tiles[tile];
        const { plan } = await checkedResult(gpu, {
          ...asked,
          schedule: { ...asked.schedule, policy },
        });
        if (packed) assert.doesNotMatch(plan.kernel, /_(krsc|kcrs|crsk)\d[pds]b/);
        found.add([
          ...plan.kernel.match(ROW_TRAITS) ?? [],
          ...(policy !== asked.schedule?.policy ? [`${tile}${taps}`] : []),
          // Of a filter that is read as it lies, along which side of its tile.
          /_(krsc|kcrs|crsk)\d[pds]b/.exec(plan.kernel)?.[0].slice(-2) ?? "packed",
        ]);
      },
    ),
    { numRuns: full ? 600 : 150, seed: 20261125 },
  );
  found.assertSeen(
    "_row2",
    "_row3",
    "_row4",
    "_row5",
    "_row7",
    "_row3x2",
    "_split",
    "_streamk",
    "deep2",
    "deep3",
    "deep4",
    "many2",
    "many3",
    "many4",
    "packed",
    "pb",
    "db",
  );
});

test.units("random convolutions of int8 by rows of taps are exactly the reference's", async (gpu) => {
  const { m, n, k } = gpu.matrixUnits!.units.find(({ component }) => component === "i8")!;
  // Vectors of sixteen bytes.
  const sixteens = fc.constantFrom(16, 32, 48, 80);
  const found = traitCounts();
  await fc.assert(
    fc.asyncProperty(
      randomSizes({
        axes: rowAxes(),
        batch: fc.constantFrom(1, 2, 5),
        groups: fc.constantFrom(1, 1, 2),
        groupIn: sixteens,
        groupOut: fc.constantFrom(8, 12, 24, 40),
      }),
      fc.constantFrom("i8", undefined),
      // The driver compiles each kernel for seconds.
      fc.constantFrom(1, 3, "stream-k" as const),
      sizeModes,
      fc.boolean(),
      async (init, outDtype, cut, sizes, packed) => {
        const asked = rowRequest(gpu, convProblem({ ...init, op: "fwd" }), undefined, {
          dtype: "i8",
          epilogue: outDtype === undefined ? NO_EPILOGUE : { ...NO_EPILOGUE, scale: 0.002 },
          ...(outDtype === undefined ? {} : { outDtype }),
          sizes,
          schedule: {
            tapRows: true,
            packedFilter: packed,
            ...(cut === "stream-k" ? { balance: cut } : { splits: cut }),
          },
        });
        // Halves of as many channels have rows where int8 has.
        const halves = planConv({
          ...asked,
          dtype: "f16",
          outDtype: "f16",
          epilogue: NO_EPILOGUE,
        });
        const taps = Number(/_row(\d)/.exec(halves.kernel)?.[1] ?? 1);
        // Whole vectors of each tap's depth.
        const depth = Math.max(1, 16 / k) * k * taps;
        const request = {
          ...asked,
          schedule: { ...asked.schedule, policy: `${2 * m}x${2 * n}x${depth}_${2 * m}x${n}m` },
        };
        const operands = fillOperands(convSubject(request), "int8", 5);
        const { plan } = await checkedResult(gpu, request, operands);
        found.add([
          ...plan.kernel.match(ROW_TRAITS) ?? [],
          /_krsc\d[pds]b/.exec(plan.kernel)?.[0].slice(-2) ?? "packed",
        ]);
      },
    ),
    { numRuns: full ? 300 : 20, seed: 20261126 },
  );
  found.assertSeen("_row2", "_row3", "_split", "packed", "db");
});

test.units("random backward-filter of f16 whose taps of a row share what they load agrees with the reference", async (gpu) => {
  const { m, n, k } = halfUnit(gpu);
  const eights = fc.constantFrom(8, 16, 24, 40);
  const found = traitCounts();
  await fc.assert(
    fc.asyncProperty(
      randomSizes({
        axes: ringAxes,
        batch: fc.constantFrom(1, 2, 5, 17),
        groups: fc.constantFrom(1, 1, 2),
        groupIn: eights,
        // Vectors of eight, of four and none of the gradient.
        groupOut: fc.constantFrom(8, 16, 24, 40, 4, 12, 5, 33),
      }),
      fc.constantFrom("krsc", "kcrs", "crsk"),
      fc.constantFrom("f32", "f16"),
      fc.constantFrom(1, 2, 5),
      fc.constantFrom("uniform", "constant"),
      fc.constantFrom(undefined, undefined, 2 * k, 6 * k),
      // Matrices along the depth of a step.
      fc.constantFrom(1, 2),
      // Four subgroups, and 256 threads of eight, whose loads no compiler moves.
      fc.constantFrom("few", "few", "many"),
      async (init, filterLayout, outDtype, splits, sizes, flush, deep, subgroups) => {
        const problem = convProblem({ ...init, op: "bwd-filter" });
        const taps = problem.filterSize.at(-1)!;
        const many = subgroups === "many";
        const [high, across] = [2 * m, taps * n];
        const rows = many ? 16 * high : high;
        const { plan } = await checkedResult(
          gpu,
          rowRequest(gpu, problem, flush, {
            filterLayout,
            outDtype,
            sizes,
            schedule: {
              splits,
              policy: `${rows}x${2 * across}x${many ? k : deep * k}_${high}x${across}m`,
            },
          }),
        );
        const shuffled = plan.passes.some(({ kernel }) => kernel.wgsl.includes("subgroupShuffle"));
        found.add([
          ...plan.kernel.match(ROW_TRAITS) ?? [],
          ...(many ? [`many${taps}`] : []),
          ...(shuffled ? ["shuffled"] : []),
        ]);
      },
    ),
    { numRuns: full ? 600 : 130, seed: 20261125 },
  );
  found.assertSeen(
    "_row2",
    "_row3",
    "_row4",
    "_row5",
    "_row3x2",
    "_split",
    "_stored1",
    "_flush1",
    "many2",
    "many3",
    "many4",
    "shuffled",
    "y1",
    "y4",
    // Rows that follow each other.
    "jy1",
    "_a1",
    "_a4",
    "_a8",
  );
});

test.units("rows of backward-filter that follow each other are summed in whole ones, by splits and by parts", async (gpu) => {
  const { m, n, k } = halfUnit(gpu);
  const problem = parseDescriptor("mb40ic16ih9iw5oc16kh3ph1", "bwd-filter");
  const policy = `${2 * m}x${6 * n}x${2 * k}_${2 * m}x${3 * n}m`;
  // 25 rows of five steps in parts of four of them, or nine at most in parts of three.
  const flush = 20 * 2 * k;
  for (
    const { trait, ...more } of [
      { schedule: { splits: 4 }, outDtype: "f16", trait: /jy\d.*_split/ },
      { schedule: { splits: 1, flush }, outDtype: "f32", trait: /_stored20_.*jy/ },
      { schedule: { splits: 1, flush }, outDtype: "f16", trait: /_flush20_.*jy/ },
      { schedule: { splits: 3, flush }, outDtype: "f32", trait: /_stored15_.*jy\d.*_split/ },
    ] as const
  ) {
    const { plan } = await checkedResult(
      gpu,
      rowRequest(gpu, problem, undefined, {
        sizes: "constant",
        ...more,
        schedule: { policy, ...more.schedule },
      }),
    );
    assert.match(plan.kernel, trait);
  }
});

test.units("an infinite input reaches taps of its own channel alone, where rows of images do not fill a step", async (gpu) => {
  const { n, k } = halfUnit(gpu);
  const cases = [[3, 8], [1, 9], [2, 11]].flatMap(([batch, rows]) => // Rows as long as the input's follow each other.
  [{ batch, rows, padding: 1, trait: /_row3jy/ }, { batch, rows, padding: 0, trait: /_row3y/ }]);
  for (const { batch, rows, padding, trait } of cases) {
    const problem = convProblem({
      op: "bwd-filter",
      batch: batch!,
      inChannels: 16,
      outChannels: 16,
      inputSize: [rows!, 8],
      filterSize: [3, 3],
      paddingBegin: [1, padding],
      paddingEnd: [1, padding],
    });
    const request = rowRequest(gpu, problem, undefined, {
      sizes: "constant",
      outDtype: "f32",
      schedule: { policy: `16x${6 * n}x${2 * k}_16x${3 * n}m` },
    });
    const subject = convSubject(request);
    const operands = fillOperands(subject, "uniform11", 5);
    const plan = planConv(request);
    assert.match(plan.kernel, trait);
    // Channel 15 of the last place of all.
    operands.input![operands.input!.length - 1] = Infinity;
    const { result } = await runPlan(gpu, plan, operands, subject.result, 1);
    const filter = result as Float32Array;
    const met = (i: number) => i % 16 === 15;
    assert.ok(filter.some((value, i) => met(i) && !Number.isFinite(value)), plan.kernel);
    assert.equal(
      filter.findIndex((value, i) => !met(i) && !Number.isFinite(value)),
      -1,
      plan.kernel,
    );
  }
});
