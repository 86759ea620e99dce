import assert from "#assert";
import { CHECK_DEVICE } from "../bench/check_suite.ts";
import { findPolicy } from "../kernels/policy.ts";
import { parseDescriptor } from "../problem/descriptor.ts";
import { NO_EPILOGUE } from "../problem/epilogue.ts";
import { gemmProblem } from "../problem/gemm_problem.ts";
import { balanceOf, chooseCut, cutProduct } from "./cut.ts";
import { H200 } from "./device/h200.ts";
import { softwareDevice } from "./device/software.ts";
import { modelOf } from "./device/known.ts";
import type { DeviceModel } from "./device/model.ts";
import { cutGemm } from "./gemm/choose.ts";
import type { GemmRequest } from "./gemm/operands.ts";
import { planGemm } from "./gemm/plan.ts";
import { DEFAULT_LIMITS, type Pass } from "./plan.ts";
import { planConv } from "./planner.ts";
import type { Product } from "./product.ts";
import { expectPlanned } from "./refusal.ts";
import type { Balance } from "./schedule.ts";

const limits = {
  ...DEFAULT_LIMITS,
  maxComputeWorkgroupStorageSize: 49_152,
  maxComputeInvocationsPerWorkgroup: 1024,
  maxStorageBufferBindingSize: 2 ** 32 - 4,
  maxBufferSize: 2 ** 34,
};
const FLAT = { along: "place" } as const;

function product(rows: number, columns: number, steps: number, batches = 1): Product {
  const elements = batches * rows * columns;
  return { rows, columns, batches, steps: () => steps, elements, streams: true, a: FLAT, b: FLAT };
}

function request(m: number, n: number, k: number, balance: Balance, splits?: number) {
  const problem = gemmProblem({ m, n, k });
  return {
    problem,
    dtype: "f32",
    limits,
    schedule: { balance, ...(splits ? { splits } : {}) },
  } as const;
}

Deno.test("stream-K runs whole waves whole, and gives every other tile splits that all have steps", () => {
  const wide = findPolicy("wide")!;
  const slots = 3 * 132;
  for (
    const [rows, columns, steps, batches] of [
      [2048, 2048, 128, 1],
      [4096, 4096, 256, 1],
      [4095, 4097, 257, 1],
      [700, 900, 3, 7],
      [100, 100, 50, 1],
      [64 * slots, 128, 9, 1],
    ] as const
  ) {
    const tiles = Math.ceil(rows / 64) * Math.ceil(columns / 128) * batches;
    const asked = { limits, schedule: { balance: "stream-k" } } as const;
    const cut = chooseCut(product(rows, columns, steps, batches), asked, [wide])!;
    const { head, splits } = cut;
    // Fewer than a wave are cut as without it.
    assert.equal(head === undefined, tiles <= slots);
    assert.ok((head ?? 0) % slots === 0 && (head ?? 0) < tiles, `${head} of ${tiles}`);
    assert.ok(tiles - (head ?? 0) <= 2 * slots);
    assert.ok(
      splits >= (head ? 2 : 1) && Math.ceil(steps / splits) * (splits - 1) < steps,
      `${splits}`,
    );
  }
});

Deno.test("planGemm() makes of a stream-K cut one kernel of whole and split tiles, and their sums", () => {
  for (const [m, n, k] of [[2048, 2048, 2048], [4095, 4097, 4099], [16384, 1024, 1024]] as const) {
    const asked = request(m, n, k, "stream-k");
    const { policy, head = NaN, splits } = expectPlanned(cutGemm(asked));
    const tiles = Math.ceil(m / policy.rows) * Math.ceil(n / policy.columns);
    const plan = planGemm(asked);
    const [main, sums] = plan.passes.slice(-2);
    assert.match(plan.kernel, /_streamk$/);
    assert.match(sums!.kernel.name, /^reduce_tiles_/);
    assert.deepEqual(main!.grid, [head + (tiles - head) * splits, 1, 1]);
    const written = ({ kernel, bindings }: Pass) =>
      bindings.filter((_, at) => kernel.bindings[at] === "write")
        .map(({ buffer }) => plan.buffers[buffer]!.name);
    assert.deepEqual(written(main!), ["output", "partial results"]);
    assert.deepEqual(written(sums!), ["output"]);
    const partials = plan.buffers.find(({ name }) => name === "partial results")!;
    assert.equal(partials.bytes, 4 * (tiles - head) * splits * policy.rows * policy.columns);
    const whole = planGemm({
      ...asked,
      schedule: { ...asked.schedule, balance: "none", policy: policy.name },
    });
    assert.equal(plan.multiplications, whole.multiplications);
  }
});

Deno.test("planGemm() leaves the depth whole where stream-K's kernel would have a binding too many", () => {
  const asked = request(2048, 2048, 2048, "stream-k");
  const plan = (most: number) =>
    planGemm({ ...asked, limits: { ...limits, maxStorageBuffersPerShaderStage: most } });
  assert.match(plan(4).kernel, /_streamk$/);
  assert.doesNotMatch(plan(3).kernel, /_streamk|_split/);
  assert.match(
    plan(3).notes.join("\n"),
    /^no stream-K: its kernel would have more storage buffers/m,
  );
  assert.ok(plan(3).passes.every(({ bindings }) => bindings.length <= 3));
});

Deno.test("convolutions whose kernel of stream-K would have a binding too many are whole, and say why", () => {
  const problem = parseDescriptor("mb64ic128ih28oc128kh3ph1");
  for (const algorithm of ["implicit-gemm", "im2col", "im2win", "im2win-fused"] as const) {
    const plan = (most: number) =>
      planConv({
        ...{ problem, dtype: "f32", layout: "nhwc", filterLayout: "krsc", algorithm } as const,
        schedule: { balance: "stream-k" },
        ...{ epilogue: NO_EPILOGUE } as const,
        limits: { ...limits, maxStorageBuffersPerShaderStage: most },
      });
    const notes = (most: number) => plan(most).notes.join("\n");
    assert.match(notes(4), /stream-K: \d+ tiles whole/, algorithm);
    assert.doesNotMatch(notes(4), /no stream-K/);
    assert.match(notes(3), /no split of the depth/, algorithm);
    assert.match(notes(3), /^no stream-K: its kernel would have more storage buffers/m, algorithm);
    assert.ok(plan(3).passes.every(({ bindings }) => bindings.length <= 3));
  }
});

Deno.test("a balance that is asked for is taken, and auto takes stream-K only on clear prediction", () => {
  const balances = (m: number, n: number, k: number) =>
    (["none", "split-k", "stream-k", "auto"] as const).map((balance) =>
      balanceOf(expectPlanned(cutGemm(request(m, n, k, balance))))
    );
  assert.deepEqual(balances(2048, 2048, 2048).slice(0, 3), ["none", "split-k", "stream-k"]);
  assert.deepEqual(balances(10240, 4096, 4096), ["none", "split-k", "stream-k", "none"]);
  assert.deepEqual(balances(256, 256, 65536), ["none", "split-k", "split-k", "split-k"]);
  for (const [m, n, k] of [[2048, 2048, 2048], [16384, 1024, 1024], [4096, 4096, 4096]] as const) {
    const cost = (balance: Balance) => expectPlanned(cutGemm(request(m, n, k, balance))).cost;
    const other = Math.min(cost("none"), cost("split-k"));
    const streamed = cost("stream-k") < 0.99 * other;
    assert.equal(
      balanceOf(expectPlanned(cutGemm(request(m, n, k, "auto")))) === "stream-k",
      streamed,
    );
  }
  // One step is nothing to split.
  assert.deepEqual(balances(2048, 2048, 8), ["none", "none", "none", "none"]);
});

Deno.test("a user's splits are those of auto's even cut, of split-K or of stream-K's tail", () => {
  const of = (balance: Balance) => expectPlanned(cutGemm(request(2048, 2048, 2048, balance, 5)));
  assert.deepEqual([of("auto").splits, of("auto").head], [5, undefined]);
  assert.deepEqual([of("split-k").splits, of("split-k").head], [5, undefined]);
  assert.equal(of("stream-k").splits, 5);
  assert.ok(of("stream-k").head! > 0);
});

Deno.test("expectPlanned(cutProduct()) refuses splits that the balance contradicts", () => {
  const cut = (balance: Balance, splits: number) =>
    expectPlanned(cutProduct({ limits, schedule: { balance, splits } }, product(512, 512, 32)));
  assert.throws(() => cut("none", 2), /RangeError: Cannot plan: balance none contradicts 2 splits/);
  assert.throws(() => cut("split-k", 1), /balance split-k contradicts 1 splits/);
  assert.throws(() => cut("stream-k", 1), /balance stream-k contradicts 1 splits/);
  assert.equal(cut("none", 1).splits, 1);
});

Deno.test("stream-K that is asked for is taken by whichever policy has whole waves and room for its partial results", () => {
  const asked = {
    limits,
    schedule: { balance: "stream-k", splits: 3 },
    maxWorkspaceBytes: 4e6,
  } as const;
  const cut = expectPlanned(cutProduct(asked, product(2048, 2048, 128)));
  assert.ok(cut.head! > 0 && cut.splits === 3);
});

Deno.test("partial results keep within the workspace and a binding", () => {
  for (const balance of ["split-k", "stream-k"] as const) {
    const splitsOf = (maxWorkspaceBytes: number) =>
      expectPlanned(cutProduct(
        { limits, schedule: { balance, policy: "small" }, maxWorkspaceBytes },
        product(512, 512, 4096),
      ));
    const bytes = 4 * 512 * 512;
    assert.ok(splitsOf(Infinity).splits > 4);
    assert.ok(splitsOf(4 * bytes).splits <= 4);
    assert.equal(splitsOf(bytes - 1).head, undefined);
    assert.equal(splitsOf(bytes - 1).splits, 1);
  }
});

Deno.test("tiles whose workspace has no room give way to others, and where none has, to those that take least", () => {
  const padded = {
    ...product(100, 512, 64),
    workspaceBytes: ({ rows }: { readonly rows: number }) => 1e5 * rows,
  };
  const rowsOf = (maxWorkspaceBytes: number) =>
    chooseCut(padded, { limits, device: H200, maxWorkspaceBytes })!.policy.rows;
  assert.ok(rowsOf(1e9) > 16);
  assert.ok(rowsOf(1.6e6) <= 16);
  assert.equal(rowsOf(1), 4);
});

Deno.test("what transforms its input takes as many splits as a limit has room for, not all or none", () => {
  for (const algorithm of ["im2col", "im2win"] as const) {
    const problem = parseDescriptor("mb1ic512ih14oc512kh3ph1");
    const planned = (maxWorkspaceBytes: number) =>
      planConv({
        ...{ problem, layout: "nhwc", filterLayout: "krsc", epilogue: NO_EPILOGUE, limits },
        dtype: "f32",
        algorithm,
        maxWorkspaceBytes,
      });
    const splits = (maxWorkspaceBytes: number) => {
      const plan = planned(maxWorkspaceBytes);
      assert.ok(plan.workspaceBytes <= maxWorkspaceBytes);
      return Number(/the depth split in (\d+)/.exec(plan.notes.join("\n"))?.[1] ?? 1);
    };
    const { workspaceBytes } = planned(1e9);
    const [all, some] = [splits(workspaceBytes), splits(Math.floor(0.75 * workspaceBytes))];
    assert.ok(some > 1 && some < all, `${algorithm}: ${some} of ${all}`);
  }
});

Deno.test("split depth costs what as many tiles of less depth cost, the movement of partial results, and a dispatch", () => {
  const policy = findPolicy("wide")!;
  const device = { ...H200, costs: { ...H200.costs, element: 12, dispatch: 5e7 } };
  const cost = (batches: number, steps: number, splits: number, elements: number) => {
    const asked = { limits, device, candidates: [policy], schedule: { splits } };
    return chooseCut({ ...product(256, 512, steps, batches), elements, streams: false }, asked)!
      .cost;
  };
  const near = (value: number, expected: number) =>
    assert.ok(Math.abs(value / expected - 1) < 1e-6, `${value}, not ${expected}`);
  for (const splits of [2, 3, 8]) {
    const sums = (elements: number) =>
      cost(1, 8 * splits, splits, elements) - cost(splits, 8, 1, elements);
    const [few, many] = [sums(1e6), sums(3e6)];
    // Each partial result is written and read, each sum written.
    near((many - few) / 2e6 / (2 * splits + 1), device.costs.element);
    near(few - (many - few) / 2, device.costs.dispatch);
  }
});

Deno.test("filling and storing take a tile as long as so many more steps, on small devices two", () => {
  const { depth } = findPolicy("wide")!;
  const { fill, store } = H200.costs;
  for (const [device, ends] of [[H200, fill + store / depth], [softwareDevice(4), 2]] as const) {
    const cost = (steps: number) =>
      chooseCut(product(256, 512, steps), { limits, device, schedule: { balance: "none" } }, [
        findPolicy("wide")!,
      ])!.cost;
    for (const steps of [2, 10, 100]) {
      const share = cost(steps) / cost(1);
      const wanted = (steps + ends) / (1 + ends);
      assert.ok(Math.abs(share - wanted) < 1e-9 * share, `${steps} steps: ${share}`);
    }
  }
});

Deno.test("fewer splits are taken but where more save a fiftieth of the split tiles' time, and stream-K where it pays all the same", () => {
  const cutOf = (m: number, n: number, k: number, more: Partial<GemmRequest> = {}) =>
    expectPlanned(cutGemm({ ...request(m, n, k, "auto"), ...more }));
  let [streamed, even] = [0, 0];
  for (const m of [256, 1024, 2048, 3000, 4096]) {
    for (const n of [256, 1024, 2048, 5000]) {
      for (const k of [1024, 4096, 30_000]) {
        const { policy, splits, head, cost } = cutOf(m, n, k);
        if (splits === 1) continue;
        const tiles = Math.ceil(m / policy.rows) * Math.ceil(n / policy.columns);
        const share = head === undefined ? 1 : 1 - head / tiles;
        const balance = head === undefined ? "split-k" : "stream-k";
        const forced = { schedule: { policy: policy.name, balance } } as const;
        for (let fewer = 2; fewer < Math.min(splits, 33); fewer++) {
          const other = cutOf(m, n, k, {
            ...forced,
            schedule: { ...forced.schedule, splits: fewer },
          });
          if (other.head !== head || other.splits !== fewer) continue;
          assert.ok(cost <= (1 - 0.02 * share) * other.cost, `${m} ${n} ${k}: ${fewer}`);
        }
        if (head === undefined) even++;
        else {
          streamed++;
          assert.ok(
            cost < 0.99 * cutOf(m, n, k, { schedule: { balance: "none" } }).cost,
            `${m} ${n} ${k}`,
          );
        }
      }
    }
  }
  assert.ok(streamed > 5 && even > 5, `${streamed}, ${even}`);
});

Deno.test("on matrix units the ends of a tile take as long whatever multiplies it, and words their share", () => {
  const matrixUnits = {
    lanes: 32,
    units: [
      { component: "f16", result: "f32", m: 16, n: 16, k: 16 },
      { component: "i8", result: "i32", m: 16, n: 16, k: 32 },
    ],
  } as const;
  const { costs: { unitStore }, shares: { words, bytes } } = H200;
  const slopes = new Map<string, number>();
  for (const dtype of ["f16", "i8"] as const) {
    // Tiles that fill a wave: one of them a multiprocessor, or two.
    for (
      const [name, m, n] of [
        ["matrix-large", 128 * 11, 256 * 12],
        ["matrix-square", 128 * 22, 128 * 12],
        ["matrix-ahead-tall", 256 * 11, 128 * 12],
      ] as const
    ) {
      const cost = (values: number) => {
        const k = dtype === "i8" ? 4 * values : values;
        const problem = gemmProblem({ m, n, k, transpose: dtype === "i8" ? "nt" : "tn" });
        const cut = cutGemm({
          schedule: { policy: name, balance: "none" },
          ...{ problem, dtype, limits, device: H200, matrixUnits },
          ...(dtype === "i8" && { device: { ...H200, costs: { ...H200.costs, element: 1e9 } } }),
        });
        return expectPlanned(cut).cost / (m * n);
      };
      const [short, long] = [cost(64), cost(128)];
      assert.ok(
        Math.abs(2 * short - long - unitStore) < 1e-6 * unitStore,
        `${name}: ${2 * short - long}`,
      );
      slopes.set(`${dtype} ${name}`, (long - short) / 64);
    }
  }
  // Rows along the depth, as int8 has them here, have a share of their own: the same of all tiles of a depth.
  const ratio = (name: string) =>
    slopes.get(`f16 ${name}`)! / slopes.get(`i8 ${name}`)! / (bytes[name] ?? 1);
  assert.ok(Math.abs(ratio("matrix-large") / ratio("matrix-square") - 1) < 1e-6);
  assert.ok(ratio("matrix-square") <= words && ratio("matrix-square") > 0.7 * words);
});

Deno.test("CPUs take few policies, and matrix units where they have some; a check takes a GPU's", () => {
  const unit = { component: "f16", result: "f32", m: 8, n: 8, k: 8 } as const;
  const units = { dtype: "f16", matrixUnits: { lanes: 8, units: [unit] } } as const;
  const sizes = [1, 4, 16, 32, 64, 300, 40_000].flatMap((m) =>
    [4, 16, 32, 64, 3000, 40_000].map((n) => gemmProblem({ m, n, k: 500 }))
  );
  const taken = (device: DeviceModel, more: Partial<GemmRequest> = {}) => {
    const cuts = sizes.map((problem) =>
      expectPlanned(cutGemm({ ...request(1, 1, 1, "auto"), problem, device, ...more }))
    );
    return [...new Set(cuts.map(({ policy }) => policy.name))].sort();
  };
  for (const cores of [2, 8, 64]) {
    for (const device of [softwareDevice(2 * cores), modelOf(2 * cores, H200)]) {
      assert.deepEqual(taken(device), ["block", "tiny"]);
      assert.ok(taken(device, units).every((name) => name.startsWith("matrix-")));
    }
  }
  const checked = taken(CHECK_DEVICE, { limits: DEFAULT_LIMITS });
  assert.deepEqual(checked, ["small", "tall", "wide"]);
  for (const policy of ["short", "slim", "sliver"]) assert.ok(taken(H200).includes(policy), policy);
  const ofGpus = [...taken(H200), ...taken(H200, units)];
  assert.ok(!ofGpus.includes("block"), ofGpus.join());
});

Deno.test("chooseCut() never makes a split without steps, and honours a forced one", () => {
  const small = { ...product(64, 64, 10), streams: false };
  for (const multiprocessors of [1, 8, 132]) {
    const { splits } = chooseCut(small, {
      limits,
      device: { ...H200, multiprocessors },
    })!;
    assert.ok(Math.ceil(10 / splits) * (splits - 1) < 10, `${splits} splits`);
  }
  assert.equal(chooseCut(small, { limits, device: H200, schedule: { splits: 4 } })!.splits, 4);
  assert.equal(chooseCut(small, { limits, device: H200, schedule: { splits: 99 } })!.splits, 10);
});
