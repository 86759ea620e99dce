/**
 * Which faults of kernels the gate finds, beside the checks that are usual: a table of Markdown.
 *   deno run -A bench/fault_table.ts [PROBLEMS]
 * Each fault of examples/workers/faults.py computes 25 random problems on three kinds of data. It counts on a problem where it moves
 * a result by more than one typical error. Needs Python with NumPy and no GPU.
 */
import { fileURLToPath } from "node:url";
import { markdownTable } from "markdown-table";
import { readNpy, tensor, writeNpy } from "../mod.ts";
import { randomStream } from "../src/reference/sample.ts";
import type { HostOperands, Subject } from "../src/run/subject.ts";
import { permute } from "../src/tensor/layout.ts";
import { type DataKind, makeOperands } from "../src/verify/data.ts";
import { diagnose, diagnosisText } from "../src/verify/diagnose.ts";
import { type FuzzCase, requestOf } from "../src/verify/fuzz.ts";
import { randomConv, subjectOf } from "../src/verify/problems.ts";
import { parseRanges } from "../src/verify/ranges.ts";
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
  const { values, magnitudes } = await subject.reference(operands, {});
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
      for (const [role, data] of Object.entries(makeOperands(subject, one))) {
        const { dtype, shape } = subject.operands.find((operand) => operand.role === role)!;
        const path = request.words[role === "output" ? "grad_output" : role]!;
        await writeNpy(path, tensor(dtype, shape, data as never));
      }
      const answered = await worker.ask(request).then(() => true, (error) => {
        console.error(words.join(" "), error.message);
        return false;
      });
      results.push(
        answered ? (await readNpy(request.words.output!)).data as Result : undefined,
      );
    }
  } finally {
    await worker.close();
    await Deno.remove(folder, { recursive: true });
  }
  return results;
}

const problems = Number(Deno.args[0] ?? 25);
const ranges = parseRanges("bias=0:1");
const cases = Array.from({ length: problems }, (_, index) => {
  const random = randomStream(index + 1);
  const asked = randomConv(random, ranges, {
    op: OPS[index % OPS.length]!,
    layout: index % 2 === 0 ? "nchw" : "nhwc",
    activation: index % 3 === 0 ? "relu" : "none",
  });
  return DATA.map((data): FuzzCase => ({ asked, dtype: "f32", data, special: [], seed: index }));
}).flat();

const right = await resultsOf(cases, []);
const prepared = await Promise.all(cases.map((one, i) => prepare(one, right[i]!)));
const names = new TextDecoder().decode(
  (await new Deno.Command("python3", {
    args: ["-c", "from faults import FAULTS; print(*FAULTS, sep='\\n')"],
    cwd: WORKERS,
  }).output()).stdout,
).trim().split("\n");

const checks = ["wgconv verify", ...Object.keys(USUAL)];
const rows: string[][] = [];
const totals = checks.map(() => [0, 0] as [number, number]);
for (const [at, name] of [undefined, ...names].entries()) {
  const results = at === 0 ? right : await resultsOf(cases, ["--fault", name!]);
  const found = checks.map(() => 0);
  let count = 0;
  let said = "";
  for (const [i, { subject, operands, reference, errors }] of prepared.entries()) {
    const got = results[i];
    if (got === undefined) continue;
    const moved = got.some((value, j) => !(Math.abs(value - right[i]![j]!) <= errors[j]!));
    if (at > 0 && !moved) continue;
    count++;
    const verified = await verifySubject(subject, operands, got, { arithmetic: "f32" });
    const refused = [
      verified.verdict === "fail",
      ...Object.values(USUAL).map((accepts) => !accepts(got, reference)),
    ];
    refused.forEach((one, j) => found[j]! += Number(one));
    if (at > 0 && !refused[0]) console.error(`missed: ${name}`, cases[i], verified.accuracy);
    if (at > 0 && said === "" && refused[0]) {
      const asked = { arithmetic: "f32", seed: 1 };
      said = diagnosisText(
        await diagnose({ subject, operands, result: got, verified, results: undefined, ...asked }),
      );
    }
  }
  const shares = found.map((one) => `${one} of ${count}`);
  rows.push([name ?? "none: false alarms", ...shares, said.split("; ").at(-1)!]);
  console.error(rows.at(-1)!.join(" | "));
  if (at > 0) totals.forEach((total, j) => (total[0] += found[j]!, total[1] += count));
}
rows.push(["all faults", ...totals.map(([one, all]) => `${(100 * one / all).toFixed(1)} %`), ""]);
console.log(markdownTable([["fault", ...checks, "diagnosis"], ...rows]));
