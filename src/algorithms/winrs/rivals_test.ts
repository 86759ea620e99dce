import assert from "#assert";
import { h200, request } from "../../../tests/plan_request.ts";
import { parseDescriptor } from "../../problem/descriptor.ts";
import { DEFAULT_LIMITS } from "../plan.ts";
import { expectPlanned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { mostSegments } from "./baseline.ts";
import type { Configuration } from "./configure.ts";
import { pairText } from "./pair.ts";
import { configured, figuresOf } from "./plan.ts";
import { winrsRivals } from "./price.ts";

function asked(text: string, more: Partial<PlanRequest> = {}): PlanRequest {
  return request(parseDescriptor(text, "bwd-filter"), { limits: DEFAULT_LIMITS, ...more });
}

function configuredAs(wanted: PlanRequest): Configuration {
  return expectPlanned(configured(wanted));
}

const LAYER = "mb32ic64ih28oc64kh3ph1";

Deno.test("winrsRivals() has half and twice the model's segments, each of another number, and each pair without", () => {
  const layer = asked(LAYER);
  const rivals = winrsRivals(layer);
  const bySegments = Map.groupBy(rivals, ({ segments }) => segments === undefined);
  const pairs = bySegments.get(true)!.map(({ pair }) => pair);
  assert.ok(pairs.length > 1 && !pairs.includes(undefined));
  const counted = bySegments.get(false)!;
  assert.ok(counted.every(({ pair }) => pairs.includes(pair)));
  for (const [pair, several] of Map.groupBy(counted, ({ pair }) => pair!)) {
    const { segmentation } = configuredAs({ ...layer, pair });
    const model = segmentation.rows * segmentation.firstColumns;
    const grids = [
      segmentation,
      ...several.map(({ segments }) =>
        configuredAs({ ...layer, pair, schedule: { ...layer.schedule, splits: segments! } })
          .segmentation
      ),
    ];
    const counts = grids.map(({ count }) => count);
    assert.equal(new Set(counts).size, counts.length, pair);
    const numbers = several.map(({ segments }) => segments);
    assert.ok(
      numbers.includes(2 * model) || numbers.includes(Math.floor(model / 2)),
      `${pair}: ${numbers} around ${model}`,
    );
  }
});

Deno.test("winrsRivals() keeps buckets within the workspace", () => {
  const free = asked(LAYER);
  const tight = asked(LAYER, { maxWorkspaceBytes: 4 * 9 * 64 * 64 * 2 });
  const { workspaceShare } = expectPlanned(figuresOf(tight));
  const most = mostSegments(tight.problem, workspaceShare);
  assert.equal(most, 3);
  const counts = (layer: PlanRequest) =>
    winrsRivals(layer).filter(({ segments }) => segments !== undefined)
      .map(({ pair, segments }) =>
        configuredAs({ ...layer, pair: pair!, schedule: { ...layer.schedule, splits: segments! } })
          .segmentation.count
      );
  assert.ok(counts(free).some((count) => count > most));
  assert.ok(counts(tight).every((count) => count <= most), counts(tight).join());
});

Deno.test("winrsRivals() has the pair that is configured, whatever rates a request's kernels have", () => {
  const unit = { component: "f16", result: "f32", m: 16, n: 16, k: 16 } as const;
  const half = {
    dtype: "f16",
    layout: "nhwc",
    schedule: { halfTile: true },
    matrixUnits: { lanes: 32, units: [unit] },
    limits: h200,
  } as const;
  for (const problem of [LAYER, "mb64ic256ih14oc256kh3ph1", "mb32ic64ih30oc64kh4"]) {
    for (const more of [{ layout: "nhwc" }, { layout: "nchw" }, half] as const) {
      const wanted = asked(problem, more);
      const name = pairText(configuredAs(wanted).pair);
      const pairs = winrsRivals(wanted).map(({ pair }) => pair);
      assert.ok(pairs.includes(name), `${name} of ${new Set(pairs)}`);
      if (more.layout === "nchw") assert.ok(!pairs.some((pair) => /xa8/.test(pair!)));
    }
  }
});

Deno.test("winrsRivals() counts segments of the direct kernel where there is no choice of pairs", () => {
  const rivals = winrsRivals(asked("mb32ic64ih28oc64kh3sh2ph1"));
  assert.ok(rivals.length > 0);
  assert.ok(rivals.every(({ pair, segments }) => pair === undefined && segments! >= 1));
});

Deno.test("winrsRivals() has none of what WinRS cannot do", () => {
  const problem = parseDescriptor(LAYER, "fwd");
  assert.deepEqual(winrsRivals({ ...asked(LAYER), problem }), []);
});
