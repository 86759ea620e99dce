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

const LAST = "mb16ic3ih224oc65kh3ph1";

Deno.test("auto leaves a last channel to depthwise where that is clearly faster, each pass on its part of the tensors", () => {
  const asked = request(LAST, { epilogue: { ...NO_EPILOGUE, bias: true } });
  const { passes, buffers, predictedMs, rivals, notes } = planConv(asked);
  const last = passes.at(-1)!;
  assert.match(last.kernel.name, /^depthwise_fwd/);
  const begins = Object.fromEntries(
    last.bindings.map(({ buffer, offset }) => [buffers[buffer]!.role, offset]),
  );
  assert.deepEqual(begins, { input: 0, filter: 4 * 64 * 27, output: 4 * 64 * 224 ** 2, bias: 256 });
  for (const { bindings } of passes) {
    for (const { buffer, offset, size } of bindings) {
      assert.equal(offset + size, buffers[buffer]!.bytes);
    }
  }
  const [own, ...others] = rivals!;
  assert.equal(own!.predictedMs, predictedMs);
  assert.ok(
    others.every(({ predictedMs: ms = Infinity, algorithm }) =>
      algorithm === "direct" || ms > predictedMs! / 0.8
    ),
  );
  assert.match(notes.join("\n"), /the last channel by depthwise/);
});

Deno.test("gradients of a filter's input channels are joined by a last pass, which alone writes the result", () => {
  const asked = request("mb32ic65ih56oc256kh1", {}, "bwd-filter");
  const { passes, buffers } = planConv(asked);
  const result = buffers.findIndex(({ role }) => role === "filter");
  const writing = passes.filter(({ bindings }) => bindings.some(({ buffer }) => buffer === result));
  assert.deepEqual(writing, passes.slice(-1));
  assert.match(writing[0]!.kernel.name, /^join_runs_f32/);
  assert.equal(buffers[result]!.bytes, 4 * 256 * 65);
});

Deno.test("a plan of parts takes no more workspace than is allowed", () => {
  const asked = request("mb32ic64ih56oc129kh3sh2ph1");
  const { workspaceBytes, passes } = planConv(asked);
  assert.match(passes.at(-1)!.kernel.name, /^depthwise/);
  assert.ok(workspaceBytes > 0);
  const less = planConv({ ...asked, maxWorkspaceBytes: workspaceBytes - 1 });
  assert.ok(less.workspaceBytes < workspaceBytes);
});

Deno.test("channels have no parts that fill tiles, are of groups, at which no binding begins, or that are no faster", () => {
  const nhwc = { layout: "nhwc" } as const;
  const half = { ...nhwc, dtype: "f16" } as const;
  const none: PlanRequest[] = [
    request("mb32ic64ih56oc64kh3ph1"),
    // A vector is for tiles, too.
    request("mb32ic64ih56oc68kh3ph1"),
    request("mb32ic64ih56oc3kh3ph1"),
    request("g2mb32ic64ih56oc66kh3ph1"),
    // Every 64th channel of f32, every 128th of f16.
    request("mb32ic64ih56oc33kh3ph1", nhwc),
    request("mb32ic64ih56oc65kh3ph1", half),
    request(LAST, { filterLayout: "crsk" }, "bwd-filter"),
    request(LAST, { dtype: "i8" }),
    request(LAST, { tile: "F(2x2,3x3)" }),
    // Tensors of several bindings.
    request(LAST, { limits: { ...h200, maxStorageBufferBindingSize: 1 << 24 } }),
    // What the rest reads again takes too long: of one tap, of places of nchw that several channels are summed for, of single channels.
    request("mb32ic64ih56oc65kh1"),
    request("mb32ic65ih56oc64kh3ph1", {}, "bwd-data"),
    request("mb32ic63ih56oc65kh3ph1", nhwc),
    request("mb32ic64ih56oc129kh3ph1", { dtype: "f16" }),
    request("mb32ic129ih56oc64kh3ph1", half, "bwd-filter"),
  ];
  for (const one of none) assert.equal(channelParts(one), undefined, JSON.stringify(one.problem));
  assert.ok(channelParts(request("mb32ic64ih56oc129kh3ph1", half)));
  assert.ok(channelParts(request("mb32ic65ih56oc64kh3ph1", nhwc, "bwd-data")));
});
