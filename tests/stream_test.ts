/** Convolutions in chunks of their batch: bits, verdicts, faults, and what is left of them. */
import assert from "#assert";
import { exitCodeOf } from "../src/errors.ts";
import { openDevice } from "../src/gpu/device.ts";
import { encodeNpyHeader, openNpy, readNpy, writeNpy, writeNpyParts } from "../src/npy/mod.ts";
import { operandTensors } from "../src/problem/conv_problem.ts";
import { parseDescriptor } from "../src/problem/descriptor.ts";
import type { CaseRecord } from "../src/report/record.ts";
import { type ConvAsked, convSubject } from "../src/run/conv_subject.ts";
import type { CheckMode } from "../src/run/coverage.ts";
import { batchedSubject } from "../src/run/cut_batch.ts";
import { cpuExecutor, type Executor, gpuExecutor } from "../src/run/executor.ts";
import { fillOperands } from "../src/run/operands.ts";
import { type OperandFiles, runStream, type StreamJob } from "../src/run/run_stream.ts";
import { runSubject } from "../src/run/run_subject.ts";
import type { Planning } from "../src/run/subject.ts";
import type { DType } from "../src/tensor/dtype.ts";
import { filterLayoutFor, type Layout } from "../src/tensor/layout.ts";
import { fillTensor } from "../src/tensor/fill.ts";
import { tensor } from "../src/tensor/tensor.ts";
import { startWgconv, temporaryDirectory, until, wgconv } from "./cli.ts";

const MADE = { fill: "uniform11", seed: 5 } as const;

interface Case {
  readonly problem: string;
  readonly op?: "fwd" | "bwd-data" | "bwd-filter";
  readonly layout?: Layout;
  readonly planning?: Partial<Planning>;
  readonly images: number;
  readonly check?: CheckMode | "none";
  readonly relu?: boolean;
  readonly dtype?: "f16" | "f32" | "i8";
  /** Of int8 results. */
  readonly scale?: number;
  readonly lossScale?: number;
}

function askedOf(one: Case): ConvAsked {
  const { problem, op = "fwd", layout = "nchw", relu = false, dtype = "f32", scale } = one;
  const activation = relu ? "relu" : "none";
  return {
    problem: parseDescriptor(problem, op),
    layout,
    filterLayout: filterLayoutFor(layout),
    epilogue: { bias: relu, activation, ...(scale === undefined ? {} : { scale }) },
    dtype,
    ...(scale === undefined ? {} : { outDtype: "i8" }),
  };
}

function madeOf({ dtype, lossScale }: Case) {
  const fill = dtype === "i8" ? "int8" as const : MADE.fill;
  return { ...MADE, fill, ...(lossScale === undefined ? {} : { lossScale }) };
}

/** Writes a case's seeded operands into files, and opens them for as long as `body` takes. */
async function withFiles(
  one: Case,
  body: (files: OperandFiles, folder: string) => Promise<void>,
): Promise<void> {
  using temporary = temporaryDirectory();
  using opened = new DisposableStack();
  const subject = convSubject(askedOf(one));
  const data = fillOperands(subject, madeOf(one).fill, MADE.seed);
  const files: Record<string, Awaited<ReturnType<typeof openNpy>>> = {};
  for (const { role, dtype, shape } of subject.operands) {
    const path = `${temporary.path}/${role}.npy`;
    await writeNpy(path, tensor(dtype, shape, data[role]! as never));
    files[role] = opened.use(await openNpy(path));
  }
  await body(files, temporary.path);
}

function jobOf(one: Case, files: OperandFiles): StreamJob {
  const subject = batchedSubject(askedOf(one));
  const { images, planning = {}, check = "auto" } = one;
  return {
    subject,
    cut: { images, chunks: Math.ceil(subject.batch / images) },
    source: { ...madeOf(one), files },
    planning,
    algorithm: planning.algorithm ?? "auto",
    device: "a device",
    check,
  };
}

/** Runs a case in chunks; the result as its file has it. */
async function streamed(executor: Executor, one: Case) {
  let record: CaseRecord | undefined;
  let result: ArrayLike<unknown> = [];
  await withFiles(one, async (files, folder) => {
    const job = jobOf(one, files);
    const { whole, axis, summed } = job.subject;
    const path = `${folder}/y.npy`;
    await writeNpyParts(path, { ...whole.result, axis: summed ? 0 : axis }, async (take) => {
      record = await runStream(executor, { ...job, take });
    });
    const { dtype, shape, data } = await readNpy(path);
    assert.deepEqual({ dtype, shape }, { dtype: whole.result.dtype, shape: whole.result.shape });
    result = data as ArrayLike<unknown>;
  });
  return { record: record!, result };
}

/** Runs a case at once, on the same operands. */
async function atOnce(executor: Executor, one: Case, files: OperandFiles = {}) {
  return await runSubject(executor, {
    subject: convSubject(askedOf(one)),
    source: { ...madeOf(one), files },
    planning: one.planning ?? {},
    algorithm: one.planning?.algorithm ?? "auto",
    device: "a device",
    check: "none",
    protocol: { samples: 1, fillMs: 0 },
  });
}

const GEMM = { algorithm: "implicit-gemm", policy: "small", splits: 1 } as const;
const F2 = "F(2x2,3x3)";

const SAME: readonly Case[] = [
  { problem: "mb7ic5ih9iw10oc6kh3sh2ph1", images: 3, planning: GEMM },
  { problem: "mb7ic5ih9iw10oc6kh3sh2ph1", images: 3, planning: GEMM, relu: true },
  { problem: "mb9ic8ih9oc16kh3ph1", images: 4, planning: { algorithm: "winograd2d", tile: F2 } },
  { problem: "mb7ic4id5ih6oc4kd3kh3pd1ph1", images: 2, layout: "nhwc", planning: GEMM },
  { problem: "g4mb6ic8ih9oc8kh3", images: 5, layout: "chwn", planning: { algorithm: "direct" } },
  { problem: "mb12ic8ih12oc8kh3ph1", images: 8, layout: "chwn", planning: { algorithm: "im2win" } },
  { problem: "mb5ic8ih9oc12kh3ph1", images: 1, op: "bwd-data", planning: { ...GEMM, splits: 2 } },
  {
    ...{ problem: "mb7ic16ih8oc8kh3ph1", images: 3, op: "bwd-data", layout: "nhwc" },
    planning: { algorithm: "winograd2d", tile: F2 },
  },
  { problem: "mb7ic8ih9oc8kh3ph1", images: 3, layout: "nhwc", dtype: "i8", planning: GEMM },
  {
    ...{ problem: "mb7ic8ih9oc8kh3ph1", images: 2, layout: "nhwc", dtype: "i8" },
    ...{ scale: 0.002, relu: true, planning: GEMM },
  },
];

Deno.test("chunks of forward and backward-data have the bits of the same plan at once, and pass", async () => {
  using executor = gpuExecutor(await openDevice());
  for (const one of SAME) {
    const what = JSON.stringify(one);
    const { record, result } = await streamed(executor, one);
    assert.equal(record.verdict, "pass", `${what}: ${record.message}`);
    assert.equal(record.accuracy!.checked, result.length, what);
    assert.equal(record.accuracy!.total, result.length, what);
    const whole = await atOnce(executor, one);
    assert.equal(record.kernel, whole.record.kernel, what);
    assert.deepEqual(result, whole.result, what);
    const batch = convSubject(askedOf(one)).shape[0]!;
    assert.equal(record.stream!.chunks, Math.ceil(batch / one.images), what);
    assert.equal(record.stream!.checked_chunks, record.stream!.chunks, what);
  }
});

Deno.test("chunks of backward-filter are added up in doubles: the same bits for the same chunks", async () => {
  using executor = gpuExecutor(await openDevice());
  const cases: Case[] = [
    { problem: "mb7ic6ih11oc5kh3ph1", images: 3, op: "bwd-filter", planning: GEMM },
    {
      ...{ problem: "mb9ic8ih12oc8kh3ph1", images: 4, op: "bwd-filter", layout: "nhwc" },
      planning: { algorithm: "winrs" },
    },
  ];
  for (const one of cases) {
    const { record, result } = await streamed(executor, one);
    assert.equal(record.verdict, "pass", record.message);
    assert.equal(record.accuracy!.checked, result.length);
    assert.deepEqual((await streamed(executor, one)).result, result);
    const sums = new Float64Array(result.length);
    const { batch } = parseDescriptor(one.problem, "bwd-filter");
    await withFiles(one, async (files) => {
      for (let first = 0; first < batch; first += one.images) {
        const parts = Object.fromEntries(
          operandTensors("bwd-filter").map((role) => {
            return [role, files[role]!.part(0, first, one.images)];
          }),
        );
        const part = { ...one, problem: one.problem.replace(/mb\d+/, `mb${one.images}`) };
        const { result } = await atOnce(executor, part, parts as OperandFiles);
        for (let i = 0; i < sums.length; i++) sums[i]! += result[i]!;
      }
    });
    assert.deepEqual(result, Float32Array.from(sums));
  }
});

Deno.test("the CPU takes chunks, too", async () => {
  const executor = cpuExecutor();
  const cases: Case[] = [
    { problem: "mb5ic3ih8oc4kh3ph1", images: 2, layout: "chwn" },
    {
      ...{ problem: "mb5ic3ih8oc4kh3ph1", images: 2, op: "bwd-filter", dtype: "f16" },
      lossScale: 0.25,
    },
  ];
  for (const one of cases) {
    const { record, result } = await streamed(executor, one);
    await withFiles(one, async (files) => {
      assert.deepEqual(result, (await atOnce(executor, one, files)).result);
    });
    assert.equal((record as { loss_scale?: number }).loss_scale, one.lossScale);
    assert.equal(record.verdict, "none");
  }
});

/** The executor with results that `spoil` has been at: those of the chunk with the given number. */
function spoilt(
  executor: Executor,
  chunk: number,
  spoil: (result: Float32Array) => void,
): Executor {
  let fetched = 0;
  return {
    ...executor,
    load: (subject, operands) => {
      const loaded = executor.load(subject, operands);
      return {
        ...loaded,
        [Symbol.dispose]: () => loaded[Symbol.dispose](),
        prepare: async (plan, copies) => {
          const ready = await loaded.prepare(plan, copies);
          return {
            ...ready,
            fetch: async () => {
              const mine = fetched++ === chunk;
              const result = await ready.fetch();
              if (mine) spoil(result as Float32Array);
              return result;
            },
          };
        },
      };
    },
  };
}

Deno.test("large chunks are projected one by one; a sample looks at some of them", async () => {
  using executor = gpuExecutor(await openDevice());
  const large = { problem: "mb31ic32ih40oc32kh3ph1", images: 8, planning: GEMM } as const;
  const projected = await streamed(executor, large);
  assert.equal(projected.record.verdict, "pass", projected.record.message);
  const { accuracy, projection, stream } = projected.record;
  assert.equal(projection!.places * projection!.members, 31 * 32 * 40 * 40);
  assert.ok(accuracy!.checked >= 4 * 256 && accuracy!.checked < accuracy!.total);
  assert.equal(stream!.checked_chunks, 4);
  // One output of the last, shorter chunk that no sample meets.
  const wrong = spoilt(executor, 3, (result) => result[7 * 32 * 1600 - 1234]! += 0.5);
  const { record } = await streamed(wrong, large);
  assert.equal(record.verdict, "fail");
  assert.match(record.message!, /^images 24 to 30: the projection over channels /);

  const many = { problem: "mb20ic8ih9oc8kh3", images: 1, check: "sample" } as const;
  const sampled = await streamed(executor, many);
  assert.equal(sampled.record.verdict, "pass", sampled.record.message);
  assert.equal(sampled.record.stream!.checked_chunks, 8);
  for (const [chunk, verdict] of [[0, "fail"], [1, "pass"], [19, "fail"]] as const) {
    const { record } = await streamed(spoilt(executor, chunk, (y) => y.fill(3)), many);
    assert.equal(record.verdict, verdict, `image ${chunk}`);
    if (verdict === "fail") assert.match(record.message!, new RegExp(`^image ${chunk}: `));
  }
});

Deno.test("without its activation a chunk is projected, and every output compared with it", async () => {
  using executor = gpuExecutor(await openDevice());
  const one = { problem: "mb15ic32ih40oc32kh3ph1", images: 8, planning: GEMM, relu: true } as const;
  const { record } = await streamed(executor, one);
  assert.equal(record.verdict, "pass", record.message);
  assert.equal(record.projection!.activated, 15 * 32 * 1600);
  // A chunk's share of the sample leaves some of its outputs out, as the whole sample does not.
  const few = { problem: "mb8ic2800ih8oc16kh3ph1", images: 4, planning: GEMM, relu: true } as const;
  const { record: { verdict, message, projection } } = await streamed(executor, few);
  assert.equal(verdict, "pass", message);
  assert.equal(projection!.activated, 8 * 16 * 64);
});

/** Runs a stream into a file; what it throws, when nothing is left of it. */
async function failed(one: Case, run: (job: StreamJob, folder: string) => Promise<unknown>) {
  let error: unknown;
  await withFiles(one, async (files, folder) => {
    const { whole } = jobOf(one, files).subject;
    const before = [...Deno.readDirSync(folder)].map(({ name }) => name);
    try {
      await writeNpyParts(`${folder}/y.npy`, { ...whole.result, axis: 0 }, async (take) => {
        await run({ ...jobOf(one, files), take }, folder);
      });
    } catch (thrown) {
      error = thrown;
    }
    assert.deepEqual([...Deno.readDirSync(folder)].map(({ name }) => name), before);
  });
  if (!(error instanceof Error)) throw new Error("The stream did not fail");
  return { code: exitCodeOf(error), message: error.message };
}

Deno.test("a device that is lost, a file cut short or a full disk amid a stream leave nothing", async () => {
  const one = { problem: "mb12ic4ih9oc4kh3", images: 1, planning: GEMM } as const;
  {
    const gpu = await openDevice();
    using executor = gpuExecutor(gpu);
    const lost = spoilt(executor, 4, () => gpu.device.destroy());
    const { code, message } = await failed(one, async (job) => {
      await runStream(lost, job).catch(async (error) => {
        throw await executor.causeOf(error);
      });
    });
    assert.equal(code, 5);
    assert.match(message, /the device was lost/);
  }
  using executor = gpuExecutor(await openDevice());
  const short = await failed(one, async (job, folder) => {
    await Deno.truncate(`${folder}/input.npy`, 128 + 5 * 4 * 81 * 4 + 3);
    await runStream(executor, job);
  });
  assert.equal(short.code, 2);
  assert.match(
    short.message,
    /input\.npy: byte 6611: expected 1293 more bytes, found the end of the file$/,
  );
  const full = await failed(one, async (job) => {
    let parts = 0;
    const take: StreamJob["take"] = async (data, part) => {
      if (parts++ === 5) throw new Deno.errors.WriteZero("Cannot write y.npy: the disk is full");
      await job.take!(data, part);
    };
    await runStream(executor, { ...job, take });
  });
  assert.deepEqual(full, { code: 2, message: "Cannot write y.npy: the disk is full" });
});

/** Writes seeded values, in Fortran order where that is asked for. */
async function makeFile(
  path: string,
  shape: readonly number[],
  fortran = false,
  dtype: DType = "f32",
) {
  const made = fillTensor(dtype, shape, "uniform11", 1);
  if (!fortran) return await writeNpy(path, made);
  const header = encodeNpyHeader(dtype, shape);
  const text = String.fromCharCode(...header).replace("False", "True ");
  const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  await Deno.writeFile(path, bytes);
  await Deno.writeFile(path, new Uint8Array(made.data.buffer as ArrayBuffer), { append: true });
}

Deno.test("wgconv conv --chunk writes what conv writes, from files, archives and stdin to files and stdout", async () => {
  using temporary = temporaryDirectory();
  const at = (name: string) => `${temporary.path}/${name}`;
  await makeFile(at("x.npy"), [7, 3, 12, 12]);
  await makeFile(at("w.npy"), [4, 3, 3, 3]);
  const pinned = ["--algorithm", "implicit-gemm", "--policy", "small", "--splits", "1"];
  const conv = ["conv", "--filter", at("w.npy"), "--padding", "1", ...pinned];
  const whole = await wgconv([...conv, "--input", at("x.npy"), "--output", at("y.npy")]);
  assert.equal(whole.code, 0, whole.stderr);
  const expected = await Deno.readFile(at("y.npy"));
  const input = await Deno.readFile(at("x.npy"));
  const chunked = [...conv, "--chunk", "2"];
  const file = await wgconv([...chunked, "--input", at("x.npy"), "--output", at("z.npy")]);
  assert.equal(file.code, 0, file.stderr);
  assert.match(file.stdout, /^stream +4 chunks of 2 images, 4 of them checked$/m);
  assert.match(file.stdout, /^verdict +pass$/m);
  assert.deepEqual(await Deno.readFile(at("z.npy")), expected);
  const pipe = await wgconv([...chunked, "--input", "-", "--output", "-"], { input });
  assert.equal(pipe.code, 0, pipe.stderr);
  assert.deepEqual(pipe.bytes, expected);
  const made = await wgconv(["conv", "--problem", "mb4ic1ih3oc1kh3", "--chunk", "2"]);
  assert.equal(made.code, 2);
  assert.equal(
    made.stderr,
    "wgconv: Cannot convolve: --chunk is of files, --problem must go without\n",
  );
});

Deno.test("wgconv conv --chunk reads and writes long pieces where the batch lies innermost, and refuses short ones", async () => {
  using temporary = temporaryDirectory();
  const at = (name: string) => `${temporary.path}/${name}`;
  const N = 40_000;
  await makeFile(at("x.npy"), [1, 2, 3, N]);
  await makeFile(at("f.npy"), [N, 1, 2, 3], true);
  await makeFile(at("w.npy"), [1, 2, 2, 1]);
  await makeFile(at("k.npy"), [1, 1, 2, 2]);
  const conv = (...more: string[]) => wgconv(["conv", "--algorithm", "direct", ...more]);
  const chwn = ["--layout", "chwn", "--input", at("x.npy"), "--filter", at("w.npy")];
  const whole = await conv(...chwn, "--output", at("y.npy"));
  assert.equal(whole.code, 0, whole.stderr);
  const chunked = await conv(...chwn, "--output", at("z.npy"), "--chunk", "17000");
  assert.equal(chunked.code, 0, chunked.stderr);
  assert.deepEqual(await readNpy(at("z.npy")), await readNpy(at("y.npy")));
  const fortran = ["--input", at("f.npy"), "--filter", at("k.npy")];
  await conv(...fortran, "--output", at("y.npy"));
  const permuted = await conv(...fortran, "--output", at("z.npy"), "--chunk", "17000");
  assert.equal(permuted.code, 0, permuted.stderr);
  assert.deepEqual(await readNpy(at("z.npy")), await readNpy(at("y.npy")));

  const refused = async (line: string, ...args: string[]) => {
    const { code, stderr } = await conv(...args, "--chunk", "100");
    assert.deepEqual({ code, stderr }, { code: 2, stderr: `wgconv: ${line}\n` });
  };
  const short = (name: string) =>
    `Cannot read ${
      at(name)
    } in chunks of 100 images: 400 bytes of its innermost batch at a time, ` +
    `expected 65536; wgconv tensor convert ${at(name)} out.npy`;
  await refused(
    `${short("x.npy")} --from-layout chwn --to-layout nchw mends it, then --layout nchw ` +
      "--filter-layout crsk",
    ...chwn,
  );
  await refused(`${short("f.npy")} mends it`, ...fortran);
  // The commands that it names do what it says.
  const names = [at("x.npy"), at("out.npy")];
  const layouts = ["--from-layout", "chwn", "--to-layout", "nchw"];
  const converted = await wgconv(["tensor", "convert", ...names, ...layouts]);
  assert.equal(converted.code, 0, converted.stderr);
  const again = ["--layout", "nchw", "--filter-layout", "crsk", "--input", at("out.npy")];
  const { code, stderr } = await conv(...again, "--filter", at("w.npy"), "--chunk", "10000");
  assert.equal(code, 0, stderr);
});

Deno.test("Ctrl-C amid a stream leaves nothing", async () => {
  using temporary = temporaryDirectory();
  const at = (name: string) => `${temporary.path}/${name}`;
  await makeFile(at("x.npy"), [4000, 4, 16, 16]);
  await makeFile(at("w.npy"), [4, 4, 3, 3]);
  const files = ["--input", at("x.npy"), "--filter", at("w.npy"), "--output", at("y.npy")];
  const child = startWgconv(["conv", ...files, "--chunk", "2", "--check", "none"], {
    stdout: "null",
    stderr: "null",
  });
  const names = () => [...Deno.readDirSync(temporary.path)].map(({ name }) => name);
  const written = () =>
    names().some((name) => {
      return name.startsWith("y.npy.tmp-") && Deno.statSync(at(name)).size > 1000;
    });
  await until(written, child);
  child.kill("SIGINT");
  assert.equal((await child.status).code, 130);
  assert.deepEqual(names().sort(), ["w.npy", "x.npy"]);
});
