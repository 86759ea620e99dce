/**
 * `wgconv check` and `wgconv bench` with a fault put into the plans of the 3x3 problems:
 * `faults.ts <fault> check|bench [options]`. Prints and exits as wgconv does.
 */
import type { Pass, Plan } from "../src/algorithms/plan.ts";
import { benchCommand } from "../src/cli/bench.ts";
import { checkCommand } from "../src/cli/check.ts";
import { runToEnd } from "../src/cli/failure.ts";
import { parseDescriptor } from "../src/problem/descriptor.ts";
import { resultStrides } from "../src/run/check.ts";
import type { RunGroup } from "../src/bench/run_group.ts";
import { elementCount } from "../src/tensor/tensor.ts";

const CHANNEL = 5;

/** A pass over the result of a forward problem that makes `value` of each output y of one channel. */
function spoil({ buffers }: Plan, { subject }: RunGroup, value: string): Pass {
  const { shape, traits: { layout } } = subject;
  const stride = resultStrides(subject)[1]!;
  const count = elementCount(shape);
  const buffer = buffers.findIndex(({ role }) => role === "output");
  return {
    kernel: {
      name: `fault ${value} ${shape} ${layout}`,
      wgsl: `
@group(0) @binding(0) var<storage, read_write> output: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  let channel = id.x / ${stride}u % ${shape[1]}u;
  if (id.x < ${count}u && channel == ${CHANNEL}u) {
    let y = output[id.x];
    let sign = f32(i32((id.x * 2654435761u) >> 31u) * 2 - 1);
    output[id.x] = ${value};
  }
}`,
      workgroupSize: [64, 1, 1],
      workgroupBytes: 0,
      bindings: ["write"],
      features: [],
    },
    bindings: [{ buffer, offset: 0, size: buffers[buffer]!.bytes }],
    grid: [Math.ceil(count / 64), 1, 1],
    multiplications: 0,
  };
}

const spoilt = (value: string) => (plan: Plan, group: RunGroup): Plan => {
  const { problem, op } = group.subject.traits;
  return op === "fwd" && parseDescriptor(problem).filterSize.every((size) => size === 3)
    ? { ...plan, passes: [...plan.passes, spoil(plan, group, value)] }
    : plan;
};

let plans = 0;

const FAULTS: Readonly<Record<string, (plan: Plan, group: RunGroup) => Plan>> = {
  none: (plan) => plan,
  "wrong-channel": spoilt("0.99 * y"),
  "zeroed-places": spoilt("select(y, 0.0, id.x % 4096u - 1000u < 6u)"),
  nan: spoilt("bitcast<f32>(0x7fc00000u + min(id.x, 1u))"),
  // implicit-gemm's healthy errors are near 1e-7 of y here, so this makes them about four times as large.
  "fourfold-error": spoilt("y * (1.0 + sign * 4e-7)"),
  /** Every second plan runs three tenths of its last pass again. */
  slow: (plan) => {
    const last = plan.passes.at(-1)!;
    const [x, y, z] = last.grid;
    const again: Pass = { ...last, grid: [Math.ceil(0.3 * x), y, z] };
    return plans++ % 2 === 0 ? plan : { ...plan, passes: [...plan.passes, again] };
  },
};

const [fault, command, ...args] = Deno.args;
const alterPlan = FAULTS[fault ?? ""];
if (alterPlan === undefined) throw new TypeError(`Cannot inject ${fault}: no such fault`);
const program = command === "bench" ? benchCommand({ alterPlan }) : checkCommand({ alterPlan });
Deno.exit(await runToEnd(() => program.parseAsync(args, { from: "user" })));
