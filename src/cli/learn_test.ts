import assert from "#assert";
import type { TuningTable } from "../algorithms/request.ts";
import type { TimeRecord } from "../report/record.ts";
import { cpuExecutor, type Executor } from "../run/executor.ts";
import { H200 } from "../algorithms/device/h200.ts";
import { DEFAULT_LIMITS } from "../algorithms/plan.ts";
import { temporaryDirectory } from "../../tests/cli.ts";
import { refuses, wgconvHere } from "../../tests/support/in_process.ts";
import { loseDeviceAt } from "../../tests/support/test_plans.ts";
import type { CalibratedDevice } from "../bench/calibrate/model_file.ts";
import { timeRecord } from "../run/timing.ts";
import { calibrationPath, keptCalibration } from "./calibration.ts";
import type { Measuring } from "../bench/calibrate/calibrate.ts";
import { budgetMs, learnSize, learnTuning } from "./learn.ts";
import { openGpuExecutor } from "./open_gpu.ts";
import { type TuningChoice, tuningFile, tuningPath } from "./tuning_options.ts";
import { plainSubject } from "../../tests/support/plain_subject.ts";

const SUBJECT = plainSubject("mb8ic64ih28oc64kh3ph1");
const PLANNING = { algorithm: "auto" };

/** A GPU that plans, and says that its candidates took so many ms. */
function pretendGpu(medians: readonly (number | undefined)[]): Executor & { timed: number } {
  const full = (planning: object) => ({ limits: DEFAULT_LIMITS, ...planning });
  const time = (median: number): TimeRecord => ({
    ...{ median, min: median, mad: 0, samples: [median], repeats: 1, clock: "timestamp" },
  });
  const gpu = {
    ...cpuExecutor(),
    device: { backend: "wgpu", adapter: "Radeon X", driver: "1", limits: {} },
    software: false,
    isReference: false,
    timed: 0,
    plan: (subject, planning) => subject.planner.plan(full(planning)),
    planning: full,
    timeWithin() {
      gpu.timed++;
      return Promise.resolve(medians.map((ms) => ms === undefined ? undefined : time(ms)));
    },
  } satisfies Executor & { timed: number };
  return gpu;
}

/** What learning says on stderr, and what is known then. */
async function learn(
  gpu: Executor,
  options: TuningChoice,
  tuning?: TuningTable,
  planning: object = PLANNING,
): Promise<{ readonly said: string; readonly table: TuningTable | undefined }> {
  const { said, value: table } = await listen(() =>
    learnTuning(gpu, SUBJECT, planning, tuning, options)
  );
  return { said, table };
}

/** What is said on stderr meanwhile. */
async function listen<T>(work: () => Promise<T>): Promise<{ readonly said: string; value: T }> {
  const { writeSync } = Deno.stderr;
  let said = "";
  Deno.stderr.writeSync = (bytes) => {
    said += new TextDecoder().decode(bytes);
    return bytes.length;
  };
  try {
    const value = await work();
    return { said, value };
  } finally {
    Deno.stderr.writeSync = writeSync;
  }
}

Deno.test("tests have a cache of their own, not the user's", () => {
  assert.match(tuningPath()!, /wgconv-test-cache/);
});

Deno.test("a budget is one second on GPUs without figures of their own, and what is asked for elsewhere", () => {
  const device = { backend: "wgpu", adapter: "Radeon X", driver: "", limits: {} };
  const gpu = { software: false, model: undefined, device };
  assert.equal(budgetMs(gpu, {}, {}), 1000);
  assert.equal(budgetMs({ ...gpu, software: true }, {}, {}), 0);
  assert.equal(budgetMs({ ...gpu, model: H200 }, {}, {}), 0);
  assert.equal(budgetMs({ ...gpu, device: { ...device, adapter: "NVIDIA H100" } }, {}, {}), 0);
  assert.equal(budgetMs(gpu, { device: H200 }, {}), 0);
  assert.equal(budgetMs(gpu, {}, { tuning: "none" }), 0);
  assert.equal(budgetMs(gpu, {}, { tuneBudget: 0 }), 0);
  assert.equal(budgetMs({ ...gpu, software: true }, {}, { tuneBudget: 2.5 }), 2500);
});

Deno.test("learnTuning() takes and remembers the fastest, and times nothing twice", async () => {
  using temporary = temporaryDirectory();
  const tuning = `${temporary.path}/tuning.jsonl`;
  const gpu = pretendGpu([3, 2, 4, 5]);
  const { said, table } = await learn(gpu, { tuning });
  assert.match(
    said,
    /^timed 4 ways in 0\.\d s: \S+( F\(\S+\))? is fastest; remembered in \S+\.jsonl\n$/,
  );
  const plan = gpu.plan(SUBJECT, { ...PLANNING, tuning: table! });
  assert.ok(plan && "measured" in plan && plan.measured);
  assert.deepEqual(await learn(gpu, { tuning }, table), { said: "", table });
  assert.equal((await learn(gpu, { tuning })).said, "");
  const records = Deno.readTextFileSync(tuning).trim().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(records.map(({ chosen, winner }) => [chosen, winner]), [
    [true, false],
    [false, true],
    [false, false],
    [false, false],
  ]);
  assert.ok(
    records.every(({ verdict, budget_ms }) => verdict === "none" && budget_ms === 1000),
  );
  assert.equal(gpu.timed, 1);
});

Deno.test("learnTuning() learns nothing of one way alone, nor where the choice is limited or made", async () => {
  const gpu = pretendGpu([3]);
  for (const _ of ["timed", "known to give nothing"]) {
    assert.equal((await learn(gpu, {})).said, "");
  }
  const limits = [{ exact: true }, { maxBoundRatio: 9 }, { maxWorkspaceShare: 0.5 }];
  for (const limit of [...limits, { algorithm: "direct" }, { schedule: { policy: "tiny" } }]) {
    const table = await learn(gpu, {}, undefined, { ...PLANNING, ...limit });
    assert.equal(table.said, "");
  }
  assert.equal(gpu.timed, 1);
});

Deno.test("learnTuning() says where it cannot remember, and takes the fastest all the same", async () => {
  using temporary = temporaryDirectory();
  const folder = temporary.path;
  for (
    const [tuning, why] of [
      [folder, /: not remembered: Cannot write |; not remembered: Cannot write /],
      ["none", /; not remembered: there is no file for it\n$/],
    ] as const
  ) {
    const gpu = pretendGpu([3, 2, 4, 5]);
    const { said, table } = await learn(gpu, { tuning, tuneBudget: 1 });
    assert.match(said, why);
    assert.equal(table!.size, 1);
  }
  assert.equal(tuningFile("none"), undefined);
});

Deno.test("learnSize() measures a new GPU once, keeps that, and says once where it cannot", async () => {
  const adapter = `Radeon ${crypto.randomUUID()}`;
  const device = { backend: "wgpu", adapter, driver: "1", limits: {} };
  const gpu = {
    limits: DEFAULT_LIMITS,
    causeOf: (error: unknown) => Promise.resolve(error),
  };
  const size = (given: typeof device, options: TuningChoice, ms: (name: string) => number) =>
    listen(() =>
      learnSize(
        gpu,
        { software: false, device: given },
        {},
        options,
        (plans) =>
          Promise.resolve(plans.map(({ name }) => timeRecord([1e6 * ms(name)], 1, "wall"))),
      )
    );
  const healthy = (name: string) => {
    const grid = /^busy (\d+)$/.exec(name)?.[1];
    return grid === undefined ? 1 : 0.2 * Math.ceil(Number(grid) / 20);
  };
  const { said, value } = await size(device, {}, healthy);
  assert.match(said, /^measured this GPU's size in 0\.\d s: 20 multiprocessors, .* remembered in /);
  assert.equal(value!.multiprocessors, 20);
  using _kept = keptFiles(device);
  assert.equal(keptCalibration(device, "size")!.model.multiprocessors, 20);
  assert.equal(keptCalibration(device), undefined);
  const other = { ...device, driver: "2" };
  using _other = keptFiles(other);
  const failed = await size(other, {}, () => NaN);
  assert.match(
    failed.said,
    /^wgconv: note: this GPU's size is not measured: .*1 workgroups cannot/,
  );
  assert.deepEqual([failed.value, await size(other, {}, () => NaN)], [
    undefined,
    { said: "", value: undefined },
  ]);
  const slow = { ...device, driver: "3" };
  using _slow = keptFiles(slow);
  const late: Measuring["time"] = async (plans) => {
    await new Promise((done) => setTimeout(done, 2100));
    return plans.map(() => timeRecord([1e6], 1, "wall"));
  };
  const executor = { software: false, device: slow };
  const told = await listen(() => learnSize(gpu, executor, {}, {}, late, "windows"));
  assert.match(
    told.said,
    /^this GPU's compiler takes 2\.\d s for a short kernel: auto takes no longer/,
  );
  assert.equal(keptCalibration(slow, "size")!.model.slowCompiler, true);
  const h200 = { ...device, adapter: "NVIDIA H200" };
  for (const [given, options] of [[device, { tuneBudget: 0 }], [h200, {}]] as const) {
    assert.deepEqual(await size(given, options, healthy), { said: "", value: undefined });
  }
});

/** Software that passes for a GPU of another name; its devices are lost at calls of these numbers, each of one, and then of none. */
function losingGpu(adapter: string, moments: readonly number[]) {
  const { requestDevice } = GPUAdapter.prototype;
  const info = GPUAdapterInfo.prototype;
  const { description, isFallbackAdapter } = Object.getOwnPropertyDescriptors(info);
  const opened: (() => number)[] = [];
  Object.defineProperties(info, {
    description: { get: () => adapter, configurable: true },
    isFallbackAdapter: { get: () => false, configurable: true },
  });
  GPUAdapter.prototype.requestDevice = async function (...wanted) {
    const device = await requestDevice.apply(this, wanted);
    opened.push(loseDeviceAt({ device }, moments[opened.length] ?? Infinity));
    return device;
  };
  return {
    opened,
    [Symbol.dispose]() {
      Object.defineProperties(info, { description, isFallbackAdapter });
      GPUAdapter.prototype.requestDevice = requestDevice;
    },
  };
}

Deno.test("a device that is lost while it is measured, or kernels are timed on it, is opened again", async () => {
  using temporary = temporaryDirectory();
  const adapter = `Radeon ${crypto.randomUUID()}`;
  using _kept = keptFiles({ backend: "wgpu", adapter, driver: "" });
  using gpu = losingGpu(adapter, [60, Infinity, 60, 60]);
  const open = () => openGpuExecutor({ backend: "wgpu" }, [], {}, { tuneBudget: 60 });
  const { said, value: executor } = await listen(open);
  assert.match(said, /^wgconv: note: this GPU's size is not measured: .* the device was lost/);
  assert.ok(executor.isOpen);
  executor.close();
  const problem = "conv --problem mb1ic8ih12oc16kh3ph1 --json --quiet --runs 1 --tune-budget 60";
  const { code, stdout } = await wgconvHere([
    ...problem.split(" "),
    ...["--tuning", `${temporary.path}/tuning.jsonl`],
  ]);
  assert.deepEqual([code, JSON.parse(stdout).verdict, gpu.opened.length], [0, "pass", 5]);
});

/** What is kept of a device, which goes with this. */
function keptFiles(device: CalibratedDevice): Disposable {
  const path = calibrationPath(device, "size")!;
  return {
    [Symbol.dispose]() {
      for (
        const one of ["size.json", "unsized", "noted"].map((end) => path.replace("size.json", end))
      ) {
        try {
          Deno.removeSync(one);
        } catch { /* It is not there. */ }
      }
    },
  };
}

Deno.test("conv and gemm learn on a software device where they are asked to, and say so in records", async () => {
  using temporary = temporaryDirectory();
  const tuning = `${temporary.path}/new.jsonl`;
  for (const what of ["conv --problem mb1ic8ih12oc16kh3ph1", "gemm --size 64,64,256"]) {
    const run = (...more: string[]) =>
      wgconvHere([...what.split(" "), "--json", "--runs", "1", ...more]);
    const first = await run("--tuning", tuning, "--tune-budget", "60");
    assert.equal(first.code, 0, first.stderr);
    assert.match(first.stderr, /^timed [234] ways in .* is fastest; remembered in .*new\.jsonl\n$/);
    assert.equal(JSON.parse(first.stdout).choice, "measured");
    const second = await run("--tuning", tuning);
    assert.equal(second.stderr, "");
    const { choice, kernel } = JSON.parse(second.stdout);
    assert.deepEqual({ choice, kernel }, {
      choice: "measured",
      kernel: JSON.parse(first.stdout).kernel,
    });
    const usual = await run("--tuning", "none");
    assert.deepEqual([usual.stderr, JSON.parse(usual.stdout).choice], ["", undefined]);
  }
  const bench = ["bench", "mb1ic8ih12oc16kh3ph1", "mb1ic8ih12oc8kh3ph1", "--runs", "1"];
  const learned = ["--json", "--tuning", tuning, "--tune-budget", "60"];
  const { stdout, stderr } = await wgconvHere([...bench, ...learned]);
  assert.equal(stderr.match(/^timed /mg)?.length, 1, stderr);
  const [environment, ...cases] = stdout.trim().split("\n").map((line) => JSON.parse(line));
  assert.equal(environment.options["tune-budget"], 60);
  assert.deepEqual(cases.map(({ choice }) => choice), ["measured", "measured"]);
  await refuses(
    ["gemm", "--size", "4,4,4", "--tune-budget", "-1"],
    /--tune-budget.*expected a number >= 0/,
  );
});
