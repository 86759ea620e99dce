import assert from "#assert";
import { request } from "../../tests/plan_request.ts";
import { parseDescriptor } from "../problem/descriptor.ts";
import { kernelNames, OUTDATED_TUNING, problemClass } from "./cost/tuned.ts";
import { DEFAULT_LIMITS } from "./plan.ts";
import { planConv } from "./planner.ts";
import type { PlanRequest, TunedChoice } from "./request.ts";

const REQUEST = request(parseDescriptor("mb4ic16ih14oc32kh3ph1"), { limits: DEFAULT_LIMITS });

/** A request with a tuning for its class: `choice`, as measured on `problem`. */
function tuned(choice: Partial<TunedChoice>, problem = REQUEST.problem): PlanRequest {
  const { algorithm = "direct", policy } = choice;
  const named = {
    ...REQUEST,
    problem,
    algorithm,
    schedule: { ...REQUEST.schedule, ...(policy === undefined ? {} : { policy }) },
  };
  const kernels = kernelNames(planConv(named));
  const tuning = new Map([[problemClass(named), { problem, algorithm, kernels, ...choice }]]);
  return { ...REQUEST, tuning };
}

Deno.test("problemClass() tells apart all sizes, and batches by their octave", () => {
  const classOf = (text: string) => problemClass({ ...REQUEST, problem: parseDescriptor(text) });
  assert.equal(classOf("mb4ic16ih14oc32kh3ph1"), classOf('mb5ic16ih14oc32kh3ph1n"x"'));
  for (const other of ["mb8ic16ih14oc32kh3ph1", "mb4ic16ih14oc32kh3", "mb4ic16ih14oc32kh3sh2ph1"]) {
    assert.notEqual(classOf("mb4ic16ih14oc32kh3ph1"), classOf(other));
  }
});

Deno.test("planConv() takes what was measured for the class, and says so", () => {
  const direct = planConv(tuned({}));
  assert.equal(direct.algorithm, "direct");
  assert.match(direct.notes.at(-1)!, /^measured to be the fastest/);
  const small = planConv(tuned({ algorithm: "implicit-gemm", policy: "small" }));
  assert.match(small.kernel, /64x64x16/);
  const similar = planConv(tuned({}, parseDescriptor("mb5ic16ih14oc32kh3ph1")));
  assert.equal(similar.algorithm, "direct");
});

Deno.test("planConv() leaves aside what does not hold any more, or was not asked for", () => {
  const usual = planConv(REQUEST);
  const same = (request: PlanRequest) => assert.deepEqual(planConv(request), usual);
  const outdated = { ...usual, notes: [...usual.notes, OUTDATED_TUNING] };
  assert.deepEqual(planConv(tuned({ kernels: ["another"] })), outdated);
  same(tuned({}, parseDescriptor("mb64ic16ih14oc32kh3ph1")));
  const gone = tuned({ algorithm: "implicit-gemm", policy: "small" });
  const [key, choice] = [...gone.tuning!][0]!;
  const unknown = new Map([[key, { ...choice, policy: "no such policy" }]]);
  assert.deepEqual(planConv({ ...gone, tuning: unknown }), outdated);
  const named = { ...REQUEST, schedule: { ...REQUEST.schedule, policy: "tiny" } };
  assert.deepEqual(
    planConv({ ...tuned({}), schedule: { ...tuned({}).schedule, policy: "tiny" } }),
    planConv(named),
  );
  const winograd = tuned({ algorithm: "winograd2d-nonfused" });
  assert.equal(planConv(winograd).algorithm, "winograd2d-nonfused");
  assert.notEqual(planConv({ ...winograd, exact: true }).algorithm, "winograd2d-nonfused");
});

Deno.test("planConv() does not take a tuned tile that enlarges errors more than auto may", () => {
  const tile = "F(10x10,3x3)";
  const named = { ...REQUEST, algorithm: "winograd2d-nonfused", tile } as const;
  const kernels = kernelNames(planConv(named));
  const choice = {
    problem: REQUEST.problem,
    algorithm: "winograd2d-nonfused",
    tile,
    kernels,
  } as const;
  const tuning = new Map([[problemClass(named), choice]]);
  assert.deepEqual(planConv({ ...REQUEST, tuning }), planConv(REQUEST));
  const allowed = planConv({ ...REQUEST, tuning, maxBoundRatio: 1e6 });
  assert.match(allowed.notes.at(-1)!, /^measured to be the fastest/);
});

Deno.test("planConv() takes what was measured to be fastest within the bound ratio allowed", () => {
  const winograd = tuned({ algorithm: "winograd2d-nonfused" });
  const algorithmAt = (maxBoundRatio: number) => {
    const plan = planConv({ ...winograd, maxBoundRatio });
    return /^measured/.test(plan.notes.at(-1)!) ? plan.algorithm : "";
  };
  assert.equal(algorithmAt(1), "");
  assert.equal(algorithmAt(1e4), "winograd2d-nonfused");
});

Deno.test("planConv() keeps what was measured to be fastest within the workspace allowed", () => {
  for (const algorithm of ["winograd2d-nonfused", "im2col"] as const) {
    const measured = tuned({ algorithm });
    const whole = planConv(measured).workspaceBytes;
    for (const maxWorkspaceBytes of [whole, whole - 1, whole * 3 / 4]) {
      const plan = planConv({ ...measured, maxWorkspaceBytes });
      // A batch of four is cut in chunks, and what runs is still what was measured.
      assert.equal(plan.algorithm, algorithm);
      assert.match(plan.notes.at(-1)!, /^measured to be the fastest/);
      assert.ok(plan.workspaceBytes <= maxWorkspaceBytes, `${plan.workspaceBytes}`);
    }
    const none = { maxWorkspaceBytes: 0 };
    assert.deepEqual(planConv({ ...measured, ...none }), planConv({ ...REQUEST, ...none }));
  }
});

Deno.test("planConv() takes the segments of WinRS that were measured, unless others are said or they do not fit", () => {
  const problem = parseDescriptor("mb4ic16ih14oc32kh3ph1", "bwd-filter");
  const request = { ...REQUEST, problem };
  const named = { algorithm: "winrs", pair: "a4n3r2" } as const;
  const segmentsOf = (asked: PlanRequest) =>
    /Z = (\d+)/.exec(planConv(asked).notes.join("\n"))?.[1] ?? "";
  const chosen = Number(segmentsOf({ ...request, ...named }));
  const segments = 2 * chosen + 1;
  const measured = planConv({
    ...request,
    ...named,
    schedule: { ...request.schedule, splits: segments },
  });
  const choice = { problem, ...named, segments, kernels: kernelNames(measured) };
  const tuning = new Map([[problemClass(request), choice]]);
  const tunedRequest = { ...request, tuning };
  const plan = planConv(tunedRequest);
  assert.equal(
    segmentsOf(tunedRequest),
    segmentsOf({ ...request, ...named, schedule: { ...request.schedule, splits: segments } }),
  );
  assert.notEqual(segmentsOf(tunedRequest), `${chosen}`);
  assert.deepEqual(kernelNames(plan), choice.kernels);
  assert.match(plan.notes.at(-1)!, /^measured to be the fastest/);
  for (
    const said of [{ schedule: { splits: 2 } }, { schedule: { flush: 64 } }, { pair: "a8n3r6" }]
  ) {
    const asked = { ...request, ...said };
    assert.deepEqual(planConv({ ...asked, tuning }), planConv(asked));
  }
  const less = { maxWorkspaceBytes: measured.workspaceBytes - 1 };
  assert.deepEqual(planConv({ ...tunedRequest, ...less }), planConv({ ...request, ...less }));
  const elsewhere = new Map([[problemClass(request), { ...choice, algorithm: "direct" as const }]]);
  const usual = planConv(request);
  const outdated = { ...usual, notes: [...usual.notes, OUTDATED_TUNING] };
  assert.deepEqual(planConv({ ...request, tuning: elsewhere }), outdated);
});
