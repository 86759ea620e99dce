/**
 * Times what libraries compute with WebGPU, each case by one after the other: FOLDER gets a file of records for each, for
 * `wgconv report` and `wgconv compare`.
 *
 *   deno task peers
 *   deno run -A dist/peers/peers.js tfjs,onnxruntime-web,wgconv resnet3x3 --out FOLDER
 *   deno run -A dist/peers/peers.js jax-js,wgconv gemm --op gemm --dtype f16 --out FOLDER
 *
 * Libraries: tfjs (nhwc), jax-js (nchw), onnxruntime-web, onnxruntime-node, wgconv, and wgconv-wall, which is wgconv timed as
 * onnxruntime-node. What one has no operation for is left out, and said on stderr. Times are of compute passes; a record's message has
 * them with what lies between the passes. Those of onnxruntime-node and wgconv-wall are the wall's, which wants a quiet host: calls, a submission each, that fill
 * 50 ms. After `--seconds` no case begins. Programs with the same `--lock FILE` take turns on a GPU. Exits with 1 where a library
 * timed no case, with 2 where arguments are wrong.
 */
import { createRequire } from "node:module";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { readGemmSuite, readProblems } from "../../../src/bench/suite_files.ts";
import { oneOf, someOf, wholeNumber } from "../../../src/cli/values.ts";
import { nsPerTick } from "../../../src/gpu/calibrate.ts";
import { loadProvider } from "../../../src/gpu/load_provider.ts";
import { openOn } from "../../../src/gpu/open.ts";
import { BACKENDS } from "../../../src/gpu/provider.ts";
import { gpuTensor, prepareConvolution, prepareProduct } from "../../../src/layers/mod.ts";
import { OPERATIONS } from "../../../src/problem/conv_problem.ts";
import { parseGemm } from "../../../src/problem/gemm_suite.ts";
import { median } from "../../../src/report/stats.ts";
import { caseRecord } from "../../../src/run/case_record.ts";
import { checkAgainst, computeReference } from "../../../src/run/check.ts";
import { convSubject } from "../../../src/run/conv_subject.ts";
import { gemmSubject } from "../../../src/run/gemm_subject.ts";
import { fillOperands } from "../../../src/run/operands.ts";
import { type Subject, titleOf } from "../../../src/run/subject.ts";
import { protocolRepeats, timeRecord } from "../../../src/run/timing.ts";
import { byGpu, byWall, faults, lastLent, lend, type Lent, timeCalls } from "./clock.ts";
import { jaxJs } from "./jax.ts";
import { onnxruntime } from "./onnxruntime.ts";
import { type Case, caseOf, type Library, type Peer } from "./peer.ts";
import { tfjs } from "./tfjs.ts";
import { environmentRecord } from "../../../src/report/environment.ts";

/** What arguments say; a sentence, and exit code 2, where they are wrong. */
function given<T>(what: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    console.error(`peers: ${what}: ${(error as Error).message.split("\n")[0]}`);
    Deno.exit(2);
  }
}

const text = (value: string) => ({ type: "string", default: value } as const);
const { values, positionals: [asked = "", ...suites] } = given("arguments", () =>
  parseArgs({
    allowPositionals: true,
    options: {
      ...{ op: text(OPERATIONS.join()), dtype: text("f32"), layout: text("nhwc") },
      ...{ runs: text("15"), backend: text("wgpu"), out: text("."), seconds: text("86400") },
      lock: { type: "string" },
    },
  }));

/** A library that is timed. */
interface Timing {
  readonly name: string;
  readonly peer: Peer;
  readonly lent: Lent;
  readonly write: (record: unknown) => void;
  timed: number;
}

/** Bytes of tensors whose calls are submitted before the queue is waited for: ONNX Runtime keeps what they held. */
const MOST_HELD = 2 ** 30;
const made = { fill: "uniform11", seed: 1 } as const;
// onnxruntime-node would send what runs to its maker.
Deno.env.set("ORT_DISABLE_TELEMETRY", "1");
const PEERS = {
  "tfjs": async () => tfjs(await load("tfjs.js")),
  "jax-js": async () => jaxJs(await load("jax-js.js")),
  "onnxruntime-web": async () => onnxruntime(await load("ort.webgpu.min.mjs")),
  "onnxruntime-node": () => onnxruntime(createRequire(import.meta.url)("onnxruntime-node")),
  "wgconv": ours,
  "wgconv-wall": ours,
};
const WALL = ["onnxruntime-node", "wgconv-wall"];
const WGCONV = ["wgconv", "wgconv-wall"];
const names = given("libraries", () => someOf(Object.keys(PEERS) as (keyof typeof PEERS)[])(asked));
const dtype = given("--dtype", () => oneOf(["f32", "f16"])(values.dtype));
const layout = given("--layout", () => oneOf(["nhwc", "nchw"])(values.layout));
const samples = given("--runs", () => wholeNumber(1)(values.runs));
const seconds = given("--seconds", () => wholeNumber(1)(values.seconds));
const backend = given("--backend", () => oneOf(BACKENDS)(values.backend));
const subjects = given(values.op === "gemm" ? "suites of products" : "suites", readSubjects);
given("--out", () => Deno.mkdirSync(values.out, { recursive: true }));
const provider = await loadProvider(backend);
lend(provider.gpu);
const own = await openOn(provider, { optionalFeatures: ["shader-f16"] });
const ownLent = lastLent();
const { adapter, driver = "" } = own.info;
const lock = values.lock === undefined
  ? undefined
  : await Deno.open(values.lock, { create: true, write: true });
const tick = await nsPerTick(own);
const peers: Timing[] = [];
const { Worker } = globalThis;
// Libraries throw where nobody awaits: faults of the case, while what fails here leaves this exit code.
Deno.exitCode = 1;
for (const type of ["error", "unhandledrejection"]) {
  addEventListener(type, (event) => {
    event.preventDefault();
    faults.push(String((event as ErrorEvent).message ?? (event as PromiseRejectionEvent).reason));
  });
}
for (const name of names) {
  const peer: Peer | undefined = await loaded(name);
  // To onnxruntime-web Deno is Node.js, whose workers it makes global.
  globalThis.Worker = Worker;
  if (peer === undefined) continue;
  const lent = WGCONV.includes(name) ? ownLent : lastLent();
  const by = name === "onnxruntime-node" ? "dawn" : backend;
  const environment = environmentRecord({ backend: by, adapter, driver, limits: {} }, made.seed);
  const { version = environment.version } = peer;
  const write = await writer(join(values.out, `${name}.jsonl`));
  write({ ...environment, program: name, version });
  peers.push({ name, peer, lent, write, timed: 0 });
}
// The wall's time is disturbed by references, which workers compute while the others are timed.
peers.sort((a, b) => Number(WALL.includes(a.name)) - Number(WALL.includes(b.name)));

function load(file: string) {
  return import(new URL(file, import.meta.url).href);
}

function ours(): Peer {
  return { prepare: prepareOurs };
}

/** A library; what is said where it cannot be loaded. */
async function loaded(name: keyof typeof PEERS): Promise<Peer | undefined> {
  try {
    return await PEERS[name]();
  } catch (error) {
    console.error(`${name} failed: ${(error as Error).message.split("\n")[0]}`);
    return undefined;
  }
}

/** Appends lines of JSON to a new file. */
async function writer(path: string): Promise<(record: unknown) => void> {
  const file = await Deno.create(path);
  return (record) => file.writeSync(new TextEncoder().encode(`${JSON.stringify(record)}\n`));
}

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
  const result = () => (call(), bound[layer.result].read());
  return { plan: layer.plan, call, result, dispose };
}

/** What raises the GPU's clocks: our calls of a product, for 300 ms. */
async function prepareWarmUp(): Promise<() => Promise<void>> {
  const subject = gemmSubject(parseGemm("2048 2048 2048"), { dtype: "f32" });
  const { call } = await prepareOurs(caseOf(subject, fillOperands(subject, made.fill, made.seed)));
  return async () => {
    const until = performance.now() + 300;
    while (performance.now() < until) {
      for (let i = 0; i < 100; i++) call();
      await ownLent.device.queue.onSubmittedWorkDone();
    }
  };
}

/** The cases of the suites. */
function readSubjects(): Subject[] {
  if (suites.length === 0) throw new Error("expected one at least, such as resnet3x3");
  if (values.op === "gemm") {
    return suites.flatMap((path) => readGemmSuite(path)).map((one) => gemmSubject(one, { dtype }));
  }
  const ops = someOf(OPERATIONS)(values.op);
  return suites.flatMap(readProblems).flatMap((problem) =>
    ops.map((op) =>
      convSubject({ problem: { ...problem, op }, layout, filterLayout: "kcrs", dtype })
    )
  );
}

/**
 * Times a case: samples of calls whose passes fill 5 ms, by the wall 50 ms, and which take 60 ms at most with what lies between. A
 * product of ours warms the GPU up, because a library whose calls wait for the host would do so at idle clocks for seconds.
 */
async function timeOf({ name, peer, lent }: Timing, call: () => unknown, most: number) {
  const wall = WALL.includes(name);
  const [clock, unit] = wall ? [byWall, 1] as const : [byGpu, tick] as const;
  const sample = async (repeats: number) => {
    const { passes, all } = await timeCalls(clock, { peer, lent, call, most }, repeats);
    return { ns: Math.max(1, passes * unit / repeats), ms: all * unit / repeats / 1e6 };
  };
  await sample(2);
  const once = await sample(2);
  // On a busy machine a call may seem to take no time.
  const fill = protocolRepeats({ samples, fillMs: wall ? 50 : 5 }, once.ns / 1e6);
  const repeats = Math.ceil(Math.min(fill, Math.max(1, 60 / once.ms)));
  if (!own.info.software) await warmUp();
  await sample(repeats);
  const taken: Awaited<ReturnType<typeof sample>>[] = [];
  while (taken.length < samples) taken.push(await sample(repeats));
  const time = timeRecord(taken.map(({ ns }) => ns), repeats, wall ? "wall" : "timestamp");
  const gaps = `${median(taken.map(({ ms }) => ms)).toPrecision(3)} ms a call with gaps`;
  return wall ? { time } : { time, gaps };
}

/** Times a case by each library, and writes its record; of one that a library fails at, its message. */
async function measure(subject: Subject): Promise<void> {
  const operands = fillOperands(subject, made.fill, made.seed);
  const reference = computeReference({ subject, operands, mode: "sample", seed: made.seed });
  reference.catch(() => {});
  const bytes = [...subject.operands, subject.result].reduce(
    (sum, { shape }) => sum + shape.reduce((a, b) => a * b, 4),
    0,
  );
  for (const one of peers) {
    const algorithm = WGCONV.includes(one.name) ? "auto" : "other";
    const setup = { ...subject.traits, algorithm, provider: one.name, device: adapter, made };
    faults.length = 0;
    await using stack = new AsyncDisposableStack();
    try {
      if (WALL.includes(one.name)) await reference;
      await lock?.lock(true);
      const prepared = await one.peer.prepare(caseOf(subject, operands));
      stack.defer(async () => void await prepared.dispose());
      const result = await prepared.result();
      if (faults.length > 0) throw new Error(faults[0]);
      // Ours holds nothing, and a wait in Deno takes 10 ms: many of them let the GPU's clocks fall.
      const most = WGCONV.includes(one.name) ? Infinity : 1 + Math.ceil(MOST_HELD / bytes);
      const { time, gaps = "" } = await timeOf(one, prepared.call, most);
      if (faults.length > 0) throw new Error(faults[0]);
      await lock?.unlock();
      const { plan } = prepared;
      // Of the orders that a library's sums may be in the plainest allows most.
      const arithmetic = plan?.arithmetic ?? (dtype === "f16" ? { sums: "f16" } as const : {});
      const checked = checkAgainst(await reference, result, arithmetic);
      const message = [checked.message, gaps].filter(Boolean).join("; ");
      one.write(caseRecord(setup, { ...checked, plan, time, ...(message && { message }) }));
      one.timed++;
    } catch (error) {
      const { message: all, name } = error as Error;
      const [message = ""] = all.split("\n");
      const left = name === "Unsupported";
      console.error(`${one.name} ${left ? "left out" : "failed"}: ${titleOf(subject)}: ${message}`);
      if (!left) one.write(caseRecord(setup, { verdict: "error", message }));
    } finally {
      await lock?.unlock();
    }
  }
}

const warmUp = await prepareWarmUp();
const until = performance.now() + 1000 * seconds;
for (const subject of subjects) {
  if (performance.now() > until) break;
  await measure(subject);
}
Deno.exit(peers.length === names.length && peers.every(({ timed }) => timed > 0) ? 0 : 1);
