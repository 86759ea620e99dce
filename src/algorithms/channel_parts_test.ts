import assert from "#assert";
import { h200, request as requestFor } from "../../tests/plan_request.ts";
import type { Operation } from "../problem/conv_problem.ts";
import { parseDescriptor } from "../problem/descriptor.ts";
import { NO_EPILOGUE } from "../problem/epilogue.ts";
import { channelParts } from "./channel_parts.ts";
import { planConv } from "./planner.ts";
import type { PlanRequest } from "./request.ts";

function request(
  problem: string,
  more: Partial<PlanRequest> = {},
  op: Operation = "fwd",
): PlanRequest {
  return requestFor(parseDescriptor(problem, op), more);
}

const LAST = "mb32ic256ih56oc65kh1";

Deno.test("auto leaves a last channel to depthwise where that is clearly faster, each pass on its part of the tensors", () => {
  const asked = request(LAST, { epilogue: { ...NO_EPILOGUE, bias: true } });
  const { passes, buffers, predictedMs, rivals, notes } = planConv(asked);
  const last = passes.at(-1)!;
  assert.match(last.kernel.name, /^depthwise_fwd/);
  const begins = Object.fromEntries(
    last.bindings.map(({ buffer, offset }) => [buffers[buffer]!.role, offset]),
  );
  assert.deepEqual(begins, { input: 0, filter: 4 * 64 * 256, output: 4 * 64 * 56 ** 2, bias: 256 });
  for (const { bindings } of passes) {
    for (const { buffer, offset, size } of bindings) {
      assert.equal(offset + size, buffers[buffer]!.bytes);
    }
  }
  const [own, ...others] = rivals!;
  assert.equal(own!.predictedMs, predictedMs);
  assert.ok(
    others.every(({ predictedMs: ms = Infinity, algorithm }) =>
      algorithm === "direct" || ms > predictedMs! / 0.94
    ),
  );
  assert.match(notes.join("\n"), /the last channel by depthwise/);
});

Deno.test("a plan of parts takes no more workspace than is allowed", () => {
  const asked = request("mb32ic64ih56oc129kh3sh2ph1");
  const { workspaceBytes, passes } = planConv(asked);
  assert.match(passes.at(-1)!.kernel.name, /^depthwise/);
  assert.ok(workspaceBytes > 0);
  const less = planConv({ ...asked, maxWorkspaceBytes: workspaceBytes - 1 });
  assert.ok(less.workspaceBytes < workspaceBytes);
});

Deno.test("channels have no parts that fill tiles, are of groups, or at which no binding begins", () => {
  const none: PlanRequest[] = [
    request("mb32ic256ih56oc64kh1"),
    // As many are for tiles.
    request("mb32ic256ih56oc73kh1"),
    request("mb32ic256ih56oc7kh1"),
    request("g2mb32ic256ih56oc66kh1"),
    // Every 64th channel of f32, every 128th of f16.
    request("mb32ic256ih56oc33kh1", { layout: "nhwc" }),
    request("mb32ic256ih56oc65kh1", { layout: "nhwc", dtype: "f16" }),
    request(LAST, { filterLayout: "crsk" }, "bwd-filter"),
    request(LAST, { dtype: "i8" }),
    request(LAST, { tile: "F(2x2,3x3)" }),
    // Tensors of several bindings.
    request(LAST, { limits: { ...h200, maxStorageBufferBindingSize: 1 << 24 } }),
  ];
  for (const one of none) assert.equal(channelParts(one), undefined, JSON.stringify(one.problem));
  assert.ok(channelParts(request("mb32ic256ih56oc129kh1", { layout: "nhwc", dtype: "f16" })));
  assert.ok(channelParts(request("mb32ic72ih56oc256kh1", { layout: "nhwc" }, "bwd-data")));
});
