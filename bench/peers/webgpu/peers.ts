/**
 * Times what a library computes with WebGPU: a record a case, for `wgconv report` and `wgconv compare`.
 *
 *   deno task peers
 *   deno run -A dist/peers/peers.js tfjs resnet3x3 > tfjs.jsonl
 *   deno run -A dist/peers/peers.js jax-js gemm --op gemm --dtype f16 > products.jsonl
 *
 * Libraries: tfjs, jax-js (nchw), onnxruntime-web, onnxruntime-node, and wgconv, a submission a call. What one has no operation for
 * is left out, and said on stderr. Times are of compute passes; a record's message has them with what lies between the passes. Those
 * of onnxruntime-node and wgconv are the wall's. Exits with 1 where no case was timed.
 */
import { createRequire } from "node:module";
import { parseArgs } from "node:util";
import { readGemmSuite, readSuite } from "../../../src/bench/suite_files.ts";
import { oneOf, wholeNumber } from "../../../src/cli/values.ts";
import { nsPerTick } from "../../../src/gpu/calibrate.ts";
import { loadProvider } from "../../../src/gpu/load_provider.ts";
import { openOn } from "../../../src/gpu/open.ts";
import { BACKENDS } from "../../../src/gpu/provider.ts";
import { gpuTensor, prepareConvolution, prepareProduct } from "../../../src/layers/mod.ts";
import { OPERATIONS } from "../../../src/problem/conv_problem.ts";
import { median } from "../../../src/report/stats.ts";
import { caseRecord } from "../../../src/run/case_record.ts";
import { checkAgainst, computeReference } from "../../../src/run/check.ts";
import { convSubject } from "../../../src/run/conv_subject.ts";
import { gemmSubject } from "../../../src/run/gemm_subject.ts";
import { fillOperands } from "../../../src/run/operands.ts";
import { type Subject, titleOf } from "../../../src/run/subject.ts";
import { timeRivals } from "../../../src/run/timing.ts";
import { faults, lend, timeByGpu, timeByWall } from "./clock.ts";
import { jaxJs } from "./jax.ts";
import { onnxruntime } from "./onnxruntime.ts";
import { type Case, caseOf, type Library, type Peer } from "./peer.ts";
import { tfjs } from "./tfjs.ts";
import { environmentRecord } from "../../../src/report/environment.ts";

const text = (value: string) => ({ type: "string", default: value } as const);
const { values, positionals: [asked = "", ...suites] } = parseArgs({
  allowPositionals: true,
  options: {
    ...{ op: text(OPERATIONS.join()), dtype: text("f32"), layout: text("nhwc") },
    ...{ runs: text("15"), backend: text("wgpu") },
  },
});
/** Bytes of tensors whose calls are submitted before the queue is waited for. */
const MOST_HELD = 2 ** 33;
const made = { fill: "uniform11", seed: 1 } as const;
// onnxruntime-node would send what runs to its maker.
Deno.env.set("ORT_DISABLE_TELEMETRY", "1");
const provider = await loadProvider(oneOf(BACKENDS)(values.backend));
lend(provider.gpu);
const own = await openOn(provider, { optionalFeatures: ["shader-f16"] });
const { adapter, driver = "" } = own.info;
const load = (file: string) => import(new URL(file, import.meta.url).href);
const PEERS = {
  "tfjs": async () => tfjs(await load("tfjs.js")),
  "jax-js": async () => jaxJs(await load("jax-js.js")),
  "onnxruntime-web": async () => onnxruntime(await load("ort.webgpu.min.mjs")),
  "onnxruntime-node": () => onnxruntime(createRequire(import.meta.url)("onnxruntime-node")),
  "wgconv": (): Peer => ({ prepare: prepareOurs }),
};
const name = oneOf(Object.keys(PEERS) as (keyof typeof PEERS)[])(asked);
const { Worker } = globalThis;
const peer: Peer = await PEERS[name]();
// To onnxruntime-web Deno is Node.js, whose workers it makes global.
globalThis.Worker = Worker;
const wall = name === "onnxruntime-node" || name === "wgconv";
const [clock, tick] = wall ? [timeByWall, 1] : [timeByGpu, await nsPerTick(own)];

/** Prepares a case of wgconv itself. */
async function prepareOurs({ conv, gemm, layout = "nhwc", half, operands }: Case) {
  const dtype = half ? "f16" : "f32";
  const layer: Library = gemm
    ? await prepareProduct(own, gemm, { dtype })
    : await prepareConvolution(own, conv!, { dtype, layout, filterLayout: "kcrs" });
  const bound: Library = { [layer.result]: gpuTensor(own, layer.tensors[layer.result]) };
  for (const { role, data } of operands) {
    bound[role] = gpuTensor(own, layer.tensors[role], data as Library);
  }
  const call = () => layer.run(bound);
  const dispose = () => [layer, ...Object.values(bound)].forEach((one) => one[Symbol.dispose]());
  return { call, dispose, result: () => (call(), bound[layer.result].read()) };
}

const dtype = oneOf(["f32", "f16"])(values.dtype);
const layout = oneOf(["nhwc", "nchw"])(values.layout);
const filterLayout = name === "tfjs" ? "krsc" : "kcrs";
const subjects: Subject[] = values.op === "gemm"
  ? suites.flatMap((path) => readGemmSuite(path)).map((one) => gemmSubject(one, { dtype }))
  : suites.flatMap((path) => readSuite(path)).flatMap((problem) =>
    values.op.split(",").map(oneOf(OPERATIONS))
      .map((op) => convSubject({ problem: { ...problem, op }, layout, filterLayout, dtype }))
  );

/** Times a case by the protocol of `wgconv bench`; by the wall calls fill 100 ms. */
async function timeOf(call: () => unknown, most: number) {
  const all: number[] = [];
  const run = async ({ samples = 1, repeats = 1 }) => {
    const samplesNs: number[] = [];
    while (samplesNs.length < samples) {
      const took = await clock(peer, call, repeats, most);
      samplesNs.push(Math.max(1, took.passes * tick / repeats));
      all.push(took.all * tick / repeats / 1e6);
    }
    return { samplesNs, clock: "wall" } as const;
  };
  await run({ repeats: 2 });
  const protocol = { samples: wholeNumber(1)(values.runs), fillMs: wall ? 100 : 5 };
  const [time] = await timeRivals(own.info.software, [{ copies: 1, run }], protocol);
  const said = `${median(all.slice(-time!.samples.length)).toPrecision(3)} ms a call with gaps`;
  return wall ? { time: time! } : { time: { ...time!, clock: "timestamp" }, said };
}

/** The record of a case; of one that the peer fails at, its message. */
async function recordOf(subject: Subject) {
  const setup = { ...subject.traits, algorithm: "other", provider: name, device: adapter, made };
  const operands = fillOperands(subject, made.fill, made.seed);
  faults.length = 0;
  await using stack = new AsyncDisposableStack();
  try {
    const prepared = await peer.prepare(caseOf(subject, operands));
    stack.defer(async () => void await prepared.dispose());
    const result = await prepared.result();
    if (faults.length > 0) throw new Error(faults[0]);
    // Workers compute it while the GPU is timed.
    const reference = computeReference({ subject, operands, mode: "sample", seed: made.seed });
    reference.catch(() => {});
    const bytes = [...subject.operands, subject.result].reduce(
      (sum, { shape }) => sum + shape.reduce((a, b) => a * b, 4),
      0,
    );
    const { time, said = "" } = await timeOf(prepared.call, Math.ceil(MOST_HELD / bytes));
    // Of the orders that sums may be in the plainest allows most.
    const arithmetic = dtype === "f16" ? { sums: "f16" } as const : {};
    const checked = checkAgainst(await reference, result, arithmetic);
    const message = [checked.message, said].filter(Boolean).join("; ");
    return caseRecord(setup, { ...checked, time, ...(message && { message }) });
  } catch (error) {
    const { message: all, name } = error as Error;
    const [message = ""] = all.split("\n");
    const left = name === "Unsupported";
    console.error(`${left ? "left out" : "failed"}: ${titleOf(subject)}: ${message}`);
    return left ? undefined : caseRecord(setup, { verdict: "error", message });
  }
}

const backend = name === "onnxruntime-node" ? "dawn" : values.backend;
const environment = environmentRecord({ backend, adapter, driver, limits: {} }, made.seed);
const { version = environment.version }: Peer = peer;
console.log(JSON.stringify({ ...environment, program: name, version }));
let timed = 0;
for (const subject of subjects) {
  const record = await recordOf(subject);
  if (record !== undefined) console.log(JSON.stringify(record));
  if (record?.time_ms) timed++;
}
Deno.exit(timed > 0 ? 0 : 1);
