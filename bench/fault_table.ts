/**
 * Which faults of kernels the gate finds, beside the checks that are usual: tables of Markdown.
 *   deno run -A bench/fault_table.ts [PROBLEMS]
 * Each fault of examples/workers/faults.py computes 25 random problems on three kinds of data. It counts on a problem where it moves
 * a result by more than one typical error. Then coarser arithmetic is declared as a finer one, with sums of 64 products and more.
 * Needs Python with NumPy and no GPU.
 */
import { fileURLToPath } from "node:url";
import { markdownTable } from "markdown-table";
import { readNpy, tensor, writeNpy } from "../mod.ts";
import { randomStream } from "../src/reference/sample.ts";
import type { HostOperands, Subject } from "../src/run/subject.ts";
import { convertDType } from "../src/tensor/convert.ts";
import { permute } from "../src/tensor/layout.ts";
import { type DataKind, makeOperands } from "../src/verify/data.ts";
import { diagnose, diagnosisText } from "../src/verify/diagnose.ts";
import { type FuzzCase, requestOf } from "../src/verify/fuzz.ts";
import { parseRanges, randomConv, randomGemm, subjectOf } from "../src/verify/problems.ts";
import { verifySubject } from "../src/verify/verify.ts";
import { startWorker } from "../src/verify/worker.ts";

const WORKERS = fileURLToPath(new URL("../examples/workers/", import.meta.url));
const DATA: readonly DataKind[] = ["normal", "uniform", "outliers"];
const OPS = ["fwd", "fwd", "fwd", "bwd-data", "bwd-filter"] as const;

type Result = Float32Array<ArrayBuffer>;

/** Checks by fixed tolerances: whether they accept a result. */
const USUAL: Readonly<Record<string, (got: Result, ref: Float64Array) => boolean>> = {
  "allclose 1e-2": allclose(1e-2, 1e-2),
  "allclose 1e-3, 1e-5": allclose(1e-3, 1e-5),
  "assert_close": allclose(1.3e-6, 1e-5),
  "cosine > 0.9999": cosine(0.9999),
};

function allclose(relative: number, absolute: number) {
  return (got: Result, ref: Float64Array) =>
    got.every((value, i) => Math.abs(value - ref[i]!) <= absolute + relative * Math.abs(ref[i]!));
}

function cosine(least: number) {
  return (got: Result, ref: Float64Array) => {
    let [both, own, other] = [0, 0, 0];
    got.forEach((value, i) => {
      both += value * ref[i]!;
      own += value * value;
      other += ref[i]! * ref[i]!;
    });
    return both > least * Math.sqrt(own * other) || (own === 0 && other === 0);
  };
}

/** A case with what a right kernel makes of it. */
interface Prepared {
  readonly one: FuzzCase;
  readonly subject: Subject;
  readonly operands: HostOperands;
  readonly reference: Float64Array;
  /** One typical error of each result. */
  readonly errors: Float64Array;
}

async function prepare(one: FuzzCase, right: Result): Promise<Prepared> {
  const subject = subjectOf(one.asked, one.dtype);
  const operands = makeOperands(subject, one);
  const inMemory = (values: Float64Array) =>
    permute(tensor("f64", subject.shape, new Float64Array(values)), subject.axes)
      .data as Float64Array;
  const { values, magnitudes } = await subject.reference.of(operands, {});
  const { accuracy } = await verifySubject(subject, operands, right, { arithmetic: "f32" });
  const typical = 2 ** -24 * Math.max(1, accuracy.bound_typical);
  return {
    ...{ one, subject, operands, reference: inMemory(values) },
    errors: inMemory(magnitudes).map((magnitude) => typical * magnitude),
  };
}

/** Results of all cases by a worker; undefined where it gives none. */
async function resultsOf(cases: readonly FuzzCase[], words: readonly string[]) {
  const folder = await Deno.makeTempDir();
  const worker = startWorker(["python3", `${WORKERS}numpy_worker.py`, ...words], 60_000);
  const results: (Result | undefined)[] = [];
  try {
    for (const one of cases) {
      const subject = subjectOf(one.asked, one.dtype);
      const request = requestOf(one, subject, await Deno.makeTempDir({ dir: folder }));
      const operands = makeOperands(subject, one);
      for (const { role, dtype, shape } of subject.operands) {
        const path = request.words[role === "output" ? "grad_output" : role]!;
        const value = tensor(dtype, shape, operands[role] as never);
        await writeNpy(path, one.dtype === "f16" ? convertDType(value, "f16") : value);
      }
      const answered = await worker.ask(request).then(() => true, (error) => {
        console.error(words.join(" "), error.message);
        return false;
      });
      results.push(
        answered
          ? Float32Array.from((await readNpy(request.words.output!)).data as Result)
          : undefined,
      );
    }
  } finally {
    await worker.close();
    await Deno.remove(folder, { recursive: true });
  }
  return results;
}

/** Arithmetic that is declared as a finer one: the fault, the type of files, the claim. */
const DECLARED = [
  ["operands in TF32", "f32", "f32"],
  ["operands in bf16", "f16", "f16-f32"],
  ["sums in f16", "f16", "f16-f32"],
] as const;

/** How many of random problems with sums of at least 64 products are found, by operation. */
async function declaredTable(count: number): Promise<string[][]> {
  const long = parseRanges(
    "channels=64:256 groups=1 axes=2 filter=1,3 size=4:14 batch=1:2 k=64:512",
  );
  const ops = ["fwd", "bwd-data", "bwd-filter", "gemm"] as const;
  const asked = (op: typeof ops[number], seed: number): FuzzCase["asked"] => {
    const how = { layout: "nchw", activation: "none" } as const;
    for (let at = seed;; at += 1e6) {
      const random = randomStream(at);
      const made = op === "gemm"
        ? { gemm: randomGemm(random, long) }
        : randomConv(random, long, { op, ...how });
      if (subjectOf(made, "f32").sums.length >= 64) return made;
    }
  };
  const rows: string[][] = [];
  for (const [fault, dtype, arithmetic] of DECLARED) {
    const found = [];
    for (const op of ops) {
      const cases = Array.from({ length: count }, (_, seed): FuzzCase => ({
        ...{
          asked: asked(op, seed + 1),
          dtype,
          data: DATA[seed % DATA.length]!,
          special: [],
          seed,
        },
      }));
      const results = await resultsOf(cases, ["--fault", fault]);
      let failed = 0;
      for (const [i, one] of cases.entries()) {
        const subject = subjectOf(one.asked, dtype);
        const stored = dtype === "f16" ? { results: dtype } : {};
        const options = { arithmetic, ...stored };
        const operands = makeOperands(subject, one);
        const { verdict, accuracy } = await verifySubject(subject, operands, results[i]!, options);
        failed += Number(verdict === "fail");
        if (verdict !== "fail") console.error(`passed: ${fault} as ${arithmetic}`, one, accuracy);
      }
      found.push(`${failed} of ${count}`);
    }
    rows.push([fault, arithmetic, ...found]);
    console.error(rows.at(-1)!.join(" | "));
  }
  return [["arithmetic", "declared as", ...ops], ...rows];
}

/** Random problems on each kind of data, their right results, and what tells these from wrong ones. */
async function drawn(words: string) {
  const cases = Array.from({ length: problems }, (_, index) => {
    const asked = randomConv(randomStream(index + 1), parseRanges(words), {
      op: OPS[index % OPS.length]!,
      layout: index % 2 === 0 ? "nchw" : "nhwc",
      activation: index % 3 === 0 ? "relu" : "none",
    });
    return DATA.map((data): FuzzCase => ({ asked, dtype: "f32", data, special: [], seed: index }));
  }).flat();
  const right = await resultsOf(cases, []);
  return { right, prepared: await Promise.all(cases.map((one, i) => prepare(one, right[i]!))) };
}

/** What the checks find of results, those of a fault where it moves them, and what the first one's diagnosis says. */
async function judged(
  { right, prepared }: Awaited<ReturnType<typeof drawn>>,
  results: readonly (Result | undefined)[],
  fault?: string,
) {
  const found = CHECKS.map(() => 0);
  let [count, said] = [0, ""];
  for (const [i, { one, subject, operands, reference, errors }] of prepared.entries()) {
    const got = results[i];
    if (got === undefined) continue;
    const moved = got.some((value, j) => !(Math.abs(value - right[i]![j]!) <= errors[j]!));
    if (fault !== undefined && !moved) continue;
    count++;
    const asked = { arithmetic: "f32", seed: 1 };
    const verified = await verifySubject(subject, operands, got, asked);
    const refused = [
      verified.verdict === "fail",
      ...Object.values(USUAL).map((accepts) => !accepts(got, reference)),
    ];
    refused.forEach((wrong, j) => found[j]! += Number(wrong));
    if (fault === undefined) continue;
    if (!refused[0]) console.error(`missed: ${fault}`, one, verified.accuracy);
    else if (said === "") {
      const failed = { subject, operands, result: got, verified, results: undefined, ...asked };
      said = diagnosisText(await diagnose(failed)).split("; ").at(-1)!;
    }
  }
  return { found, count, said };
}

const problems = Number(Deno.args[0] ?? 25);
const CHECKS = ["wgconv verify", ...Object.keys(USUAL)];
const rows: string[][] = [];
const addRow = (name: string, { found, count, said }: Awaited<ReturnType<typeof judged>>) => {
  rows.push([name, ...found.map((one) => `${one} of ${count}`), said]);
  console.error(rows.at(-1)!.join(" | "));
};

const short = await drawn("bias=0:1");
addRow("none", await judged(short, short.right));
const long = await drawn("bias=0:1 channels=128:512 groups=1 axes=2 filter=3 size=6:12 batch=1");
addRow("none, long sums", await judged(long, long.right));
const { stdout } = await new Deno.Command("python3", {
  args: ["-c", "from faults import FAULTS; print(*FAULTS, sep='\\n')"],
  cwd: WORKERS,
}).output();
const total = CHECKS.map(() => 0);
let all = 0;
for (const fault of new TextDecoder().decode(stdout).trim().split("\n")) {
  const one = await judged(
    short,
    await resultsOf(short.prepared.map(({ one }) => one), ["--fault", fault]),
    fault,
  );
  addRow(fault, one);
  one.found.forEach((count, j) => total[j]! += count);
  all += one.count;
}
rows.push(["all faults", ...total.map((count) => `${(100 * count / all).toFixed(1)} %`), ""]);
console.log(markdownTable([["fault", ...CHECKS, "diagnosis"], ...rows]));
console.log(`\n${markdownTable(await declaredTable(4 * problems))}`);
