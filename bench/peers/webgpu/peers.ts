/**
 * Times what a library computes with WebGPU: a record a case, for `wgconv report` and `wgconv compare`.
 *
 *   deno task peers
 *   deno run -A dist/peers/peers.js tfjs resnet3x3 > tfjs.jsonl
 *   deno run -A dist/peers/peers.js jax-js gemm --op gemm --dtype f16 > products.jsonl
 *
 * tfjs computes in nhwc and f32, jax-js in nchw, onnxruntime-web and onnxruntime-node no gradients of filters: what a library has no
 * operation for is left out, and said on stderr. Times are of compute passes, by the GPU; a record's message has what lies between
 * them, too. The queue of onnxruntime-node is out of reach: it is timed by the wall, and so is wgconv here, which submits each call
 * as the others do. Exits with 1 where no case was timed.
 */
import { createRequire } from "node:module";
import { parseArgs } from "node:util";
import { readGemmSuite, readSuite } from "../../../src/bench/suite_files.ts";
import { oneOf, wholeNumber } from "../../../src/cli/values.ts";
import { nsPerTick } from "../../../src/gpu/calibrate.ts";
import { loadProvider } from "../../../src/gpu/load_provider.ts";
import { openOn } from "../../../src/gpu/open.ts";
import { BACKENDS } from "../../../src/gpu/provider.ts";
import { OPERATIONS } from "../../../src/problem/conv_problem.ts";
import { environmentRecord } from "../../../src/report/environment.ts";
import { median } from "../../../src/report/stats.ts";
import { caseRecord } from "../../../src/run/case_record.ts";
import { checkAgainst, computeReference } from "../../../src/run/check.ts";
import { convSubject } from "../../../src/run/conv_subject.ts";
import { gemmSubject } from "../../../src/run/gemm_subject.ts";
import { fillOperands } from "../../../src/run/operands.ts";
import type { Subject } from "../../../src/run/subject.ts";
import { timeRecord } from "../../../src/run/timing.ts";
import { VERSION } from "../../../src/version.ts";
import { faults, lend, timeByGpu, timeByWall } from "./clock.ts";
import { jaxJs } from "./jax.ts";
import { onnxruntime } from "./onnxruntime.ts";
import { ours } from "./ours.ts";
import { caseOf } from "./peer.ts";
import { tfjs } from "./tfjs.ts";

const text = (value: string) => ({ type: "string", default: value } as const);
const { values, positionals: [asked = "", ...suites] } = parseArgs({
  allowPositionals: true,
  options: {
    ...{ op: text(OPERATIONS.join()), dtype: text("f32"), layout: text("nhwc") },
    ...{ runs: text("15"), backend: text("wgpu") },
  },
});
const made = { fill: "normal", seed: 1 } as const;
const provider = await loadProvider(oneOf(BACKENDS)(values.backend));
lend(provider.gpu);
const own = await openOn(provider, { optionalFeatures: ["shader-f16"] });
const tickMs = await nsPerTick(own) / 1e6;
const load = (file: string) => import(new URL(file, import.meta.url).href);
const PEERS = {
  "tfjs": async () => tfjs(await load("tfjs.js")),
  "jax-js": async () => jaxJs(await load("jax-js.js")),
  "onnxruntime-web": async () => onnxruntime(await load("ort.webgpu.min.mjs")),
  "onnxruntime-node": () => onnxruntime(createRequire(import.meta.url)("onnxruntime-node")),
  "wgconv": () => ours(own, VERSION),
};
const name = oneOf(Object.keys(PEERS) as (keyof typeof PEERS)[])(asked);
const peer = await PEERS[name]();
const wall = name === "onnxruntime-node" || name === "wgconv";

function subjects(): Subject[] {
  const dtype = oneOf(["f32", "f16"])(values.dtype);
  const layout = oneOf(["nhwc", "nchw"])(values.layout);
  const filterLayout = name === "tfjs" ? "krsc" : "kcrs";
  if (values.op === "gemm") {
    return suites.flatMap((path) => readGemmSuite(path)).map((one) => gemmSubject(one, { dtype }));
  }
  const operations = values.op.split(",").map(oneOf(OPERATIONS));
  return suites.flatMap((path) => readSuite(path)).flatMap((problem) =>
    operations.map((op) =>
      convSubject({ problem: { ...problem, op }, layout, filterLayout, dtype })
    )
  );
}

/** Samples of calls that fill 5 ms of a warm device, or 100 ms of the wall's clock. */
async function samplesOf(call: () => unknown, warmUpMs: number) {
  let repeats = 4;
  const run = async () => {
    const took = await (wall ? timeByWall : timeByGpu)(peer, call, repeats);
    const each = (wall ? 1 : tickMs) / repeats;
    return { all: took.all * each, passes: Math.max(1e-6, took.passes * each) };
  };
  await run();
  let last = await run();
  const callsIn = (ms: number) => Math.min(wall ? 4096 : 200, Math.ceil(ms / last.passes));
  for (const end = performance.now() + warmUpMs; performance.now() < end; last = await run()) {
    repeats = callsIn(50);
  }
  repeats = callsIn(wall ? 100 : 5);
  const samples = [];
  for (let left = wholeNumber(1)(values.runs); left > 0; left--) samples.push(await run());
  const all = median(samples.map((one) => one.all)).toPrecision(3);
  const clock = wall ? "wall" : "timestamp, passes";
  return {
    time: timeRecord(samples.map(({ passes }) => passes * 1e6), repeats, clock),
    notes: wall ? [] : [`${all} ms a call with what lies between passes`],
  };
}

/** The record of a case; of one that the peer fails at, its message. */
async function recordOf(subject: Subject, warmUpMs: number) {
  const { traits } = subject;
  const setup = { ...traits, algorithm: "other", provider: name, device: own.info.adapter, made };
  const operands = fillOperands(subject, made.fill, made.seed);
  faults.length = 0;
  await using stack = new AsyncDisposableStack();
  try {
    const prepared = await peer.prepare(caseOf(subject, operands));
    stack.defer(async () => void await prepared.dispose());
    const result = await prepared.result();
    if (faults.length > 0) throw new Error(faults[0]);
    const asked = { subject, operands, mode: "sample", seed: made.seed } as const;
    // Of the orders that sums may be in the plainest allows most.
    const arithmetic = traits.dtype === "f16" ? { sums: "f16" } as const : {};
    const checked = checkAgainst(await computeReference(asked), result, arithmetic);
    const { time, notes } = await samplesOf(prepared.call, warmUpMs);
    const message = [checked.message ?? [], notes].flat().join("; ");
    return caseRecord(setup, { ...checked, time, ...(message && { message }) });
  } catch (error) {
    const { message, name } = error as Error;
    const left = name === "Unsupported";
    console.error(`${left ? "left out" : "failed"}: ${subject.title}: ${message}`);
    if (left) return undefined;
    return caseRecord(setup, { verdict: "error", message: message.split("\n")[0]! });
  }
}

const { adapter, driver = "" } = own.info;
const backend = name === "onnxruntime-node" ? "dawn" : values.backend;
const environment = environmentRecord({ backend, adapter, driver, limits: {} }, made.seed);
console.log(JSON.stringify({ ...environment, program: name, version: peer.version }));
let timed = 0;
for (const subject of subjects()) {
  const record = await recordOf(subject, timed === 0 ? 600 : 150);
  if (record !== undefined) console.log(JSON.stringify(record));
  if (record?.time_ms) timed++;
}
Deno.exit(timed > 0 ? 0 : 1);
