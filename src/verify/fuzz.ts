/** One case of fuzzing a kernel of others: its files, its verdict, and a smaller problem that fails as well. */
import { defined } from "../defined.ts";
import { isInputError } from "../errors.ts";
import { printableMessage } from "../printable.ts";
import { writeError } from "../npy/atomic_write.ts";
import { npyBytes } from "../npy/header.ts";
import { openNpy, type TensorSource } from "../npy/mod.ts";
import { elementCount, type Tensor, tensor } from "../tensor/tensor.ts";
import { arrayConstructor, type DType } from "../tensor/dtype.ts";
import { printDescriptor } from "../problem/descriptor.ts";
import { printGemm } from "../problem/gemm_suite.ts";
import { caseRecord } from "../run/case_record.ts";
import type { CaseRecord } from "../report/record.ts";
import { type HostData, type HostOperands, isIntegral, type Subject } from "../run/subject.ts";
import { bf16round, convertDType } from "../tensor/convert.ts";
import { permute } from "../tensor/layout.ts";
import { diagnose, diagnosisText } from "./diagnose.ts";
import { type FuzzData, makeOperands } from "./data.ts";
import { type Asked, smallerProblems, subjectOf } from "./problems.ts";
import { verifySubject, verifyUnrounded } from "./verify.ts";
import { type ForeignKernel, KernelFault, type KernelRequest } from "./worker.ts";
import { makeTemporary } from "../temporary.ts";

/** A problem and its data. */
export interface FuzzCase extends FuzzData {
  readonly asked: Asked;
}

/** How cases are judged. */
interface FuzzJudging {
  /** What the kernel claims; of `auto` what goes with the operands' type. */
  readonly arithmetic: string;
  /** Name of the kernel in records. */
  readonly provider: string;
}

/** Names of operands in requests and commands. */
const ROLES: Readonly<Record<string, string>> = { output: "grad_output" };

/** What a claim of `auto` is of operands of a type. */
function claimOf({ dtype }: FuzzCase, arithmetic: string): string {
  if (arithmetic !== "auto") return arithmetic;
  return dtype === "f16" || dtype === "bf16" ? `${dtype}-f32` : dtype;
}

/** The problem as plain fields. */
function problemFields(asked: Asked): Record<string, unknown> {
  if ("gemm" in asked) {
    const { name: _name, bias, residual: _added, ...problem } = asked.gemm;
    return { op: "gemm", descriptor: printGemm(asked.gemm), ...problem, bias_side: bias };
  }
  const { problem, layout, filterLayout, epilogue } = asked.conv;
  const { name: _, op, ...sizes } = problem;
  const plain = Object.entries(sizes).map(([field, value]) => [
    field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    value,
  ]);
  return {
    op,
    descriptor: printDescriptor(problem),
    ...Object.fromEntries(plain),
    ...{ layout, filter_layout: filterLayout, activation: epilogue?.activation ?? "none" },
  };
}

/** What a kernel is asked for, of files in a folder. */
export function requestOf(one: FuzzCase, subject: Subject, folder: string): KernelRequest {
  const paths = Object.fromEntries([
    ...subject.operands.map(({ role }) => ROLES[role] ?? role),
    ...["output"],
  ].map((name) => [name, `${folder}/${name}.npy`]));
  const fields = { ...problemFields(one.asked), dtype: one.dtype, ...paths };
  const { op, descriptor } = fields as { op?: string; descriptor?: string };
  const words = { ...paths, op: op!, problem: descriptor!, json: JSON.stringify(fields) };
  return { fields, words, asked: one.asked };
}

/**
 * Asks a kernel for the result of a case, and judges it. Whatever the kernel does is the case's verdict.
 *
 * @param folder Where its files are, for as long as it runs.
 * @throws {TypeError} where its program does not start, or the claim is none.
 */
export async function runCase(
  kernel: ForeignKernel,
  one: FuzzCase,
  folder: string,
  judging: FuzzJudging,
): Promise<CaseRecord> {
  const subject = subjectOf(one.asked, one.dtype);
  const operands = makeOperands(subject, one);
  const claim = claimOf(one, judging.arithmetic);
  const setup = {
    ...subject.traits,
    ...{ algorithm: "other", device: "", provider: judging.provider, dtype: one.dtype },
    made: { fill: [one.data, ...one.special].join("+"), seed: one.seed },
  };
  const own = await makeTemporary("folder", { dir: folder });
  try {
    const request = requestOf(one, subject, own);
    for (const { role, dtype, shape } of subject.operands) {
      const path = request.words[ROLES[role] ?? role]!;
      await writeOperand(path, one, tensor(dtype, shape, operands[role]! as never));
    }
    const poison = await writePoison(request.words.output!, one, subject);
    const answer = await kernel.ask(request);
    if (answer.unsupported !== undefined) {
      return caseRecord(setup, {
        verdict: "none",
        message: printableMessage(`not supported: ${answer.unsupported}`),
      });
    }
    using output = await openResult(request.words.output!, poison, one, subject, claim);
    const { time } = answer;
    const judged = await judge(one, claim, { subject, operands, output });
    const { arithmetic, diagnosis, ...checked } = judged;
    const named = claim === one.dtype ? {} : { math: claim };
    return caseRecord(
      {
        ...setup,
        ...defined({ outDtype: outDtypeOf(one, output) }),
        claimed: { ...named, arithmetic, ...defined({ diagnosis }) },
      },
      { ...checked, ...(time === undefined ? {} : { time: timeOf(time) }) },
    );
  } catch (error) {
    if (!(error instanceof KernelFault)) throw error;
    return caseRecord(setup, { verdict: "error", message: printableMessage(error.message) });
  } finally {
    // The kernel may have removed it.
    await Deno.remove(own, { recursive: true }).catch(() => {});
  }
}

function timeOf(microseconds: number) {
  const ms = microseconds / 1000;
  return { median: ms, min: ms, mad: 0, samples: [ms], repeats: 1, clock: "worker" };
}

function outDtypeOf({ dtype }: FuzzCase, output: TensorSource): string | undefined {
  const stored = output.dtype;
  return stored === dtype || dtype === "i8" ? undefined : stored;
}

async function writeBytes(path: string, pieces: Iterable<Uint8Array>): Promise<void> {
  try {
    using file = await Deno.open(path, { write: true, create: true, truncate: true });
    for (const piece of pieces) {
      for (let at = 0; at < piece.length;) at += await file.write(piece.subarray(at));
    }
  } catch (error) {
    throw writeError(path, error);
  }
}

async function writeOperand(path: string, { dtype }: FuzzCase, value: Tensor): Promise<void> {
  const stored = dtype === "f16" || dtype === "bf16" ? convertDType(value, dtype) : value;
  await writeBytes(path, npyBytes(stored));
}

/** Fills the result's file with NaN, in integers -1: a kernel that does not write it is found out. Gives its bytes. */
async function writePoison(
  path: string,
  { dtype }: FuzzCase,
  { result: { shape } }: Subject,
): Promise<Uint8Array> {
  const stored = dtype === "i8" ? "i32" : dtype;
  const data = new (arrayConstructor(stored))(elementCount(shape));
  new Uint8Array(data.buffer).fill(0xff);
  await writeBytes(path, npyBytes(tensor(stored, shape, data as never)));
  return await Deno.readFile(path);
}

/** Types that results may have, by their operands'. */
const RESULTS: Readonly<Record<string, readonly DType[]>> = {
  f32: ["f32", "f64"],
  f16: ["f16", "f32", "f64"],
  bf16: ["bf16", "f32", "f64"],
  i8: ["i32"],
};

/**
 * Opens what the kernel wrote.
 *
 * @throws {KernelFault} where there is no result of the right shape and type.
 */
async function openResult(
  path: string,
  poison: Uint8Array,
  { dtype }: FuzzCase,
  { result: { shape } }: Subject,
  claim: string,
): Promise<TensorSource> {
  const info = await Deno.lstat(path).catch(() => undefined);
  if (info === undefined) throw new KernelFault("it wrote no output");
  if (!info.isFile) throw new KernelFault("its output is no file");
  if (info.size === poison.length && isSame(await Deno.readFile(path), poison)) {
    throw new KernelFault("it did not write the output");
  }
  let output: TensorSource;
  try {
    output = await openNpy(path, dtype === "bf16" ? { as: "bf16" } : {});
  } catch (error) {
    throw new KernelFault(`its output is no tensor: ${said(error, path)}`);
  }
  const own = output.shape;
  const fault = own.length !== shape.length || own.some((size, axis) => size !== shape[axis])
    ? `its output has shape [${own.join(", ")}], expected [${shape.join(", ")}]`
    : isAllowed(output.dtype, dtype, claim)
    ? undefined
    : `its output is ${output.dtype}, expected ${RESULTS[dtype]!.join(" or ")}`;
  if (fault === undefined) return output;
  output[Symbol.dispose]();
  throw new KernelFault(fault);
}

function isAllowed(stored: DType, dtype: string, claim: string): boolean {
  return RESULTS[dtype]!.includes(stored) || claim.split(":")[0]!.split("-")[2] === stored;
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, at) => byte === other[at]);
}

/** What is wrong with a file, without its path, which is gone when it is read. */
function said(error: unknown, path: string): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.replaceAll(`${path}: `, "").replaceAll(path, "it");
}

/** What the gate makes of a result. */
async function judge(
  one: FuzzCase,
  arithmetic: string,
  { subject, operands, output }: {
    readonly subject: Subject;
    readonly operands: HostOperands;
    readonly output: TensorSource;
  },
) {
  const stored = output.dtype;
  let result: HostData;
  try {
    const read = isIntegral(subject) ? subject.result.dtype : stored === "f64" ? "f64" : "f32";
    result = (await output.readAs(read)).data as HostData;
  } catch (error) {
    if (!isInputError(error) && !(error instanceof Error)) throw error;
    throw new KernelFault(`its output is no tensor: ${said(error, output.path)}`);
  }
  const asked = {
    ...{ arithmetic, seed: one.seed },
    results: stored === "f16" || stored === "bf16" ? stored : undefined,
  } as const;
  const verified = await verifySubject(subject, operands, result, asked);
  const found = verified.verdict === "fail"
    ? await diagnose({ subject, operands, result, verified, ...asked })
    : undefined;
  const inexact = verified.verdict === "fail" || !isExact(one, arithmetic)
    ? undefined
    : await inexactOutput(subject, operands, result, stored);
  const tiled = inexact === undefined
    ? undefined
    : await verifyUnrounded(subject, operands, result, asked, verified);
  return {
    ...(tiled ?? verified),
    ...(found && { diagnosis: diagnosisText(found) }),
    ...(inexact === undefined || tiled ? {} : { verdict: "fail" as const, message: inexact }),
  };
}

/** Whether sums of whole numbers come out as they are: neither Winograd nor Fourier transforms leave them whole. */
function isExact({ data, special, dtype, asked }: FuzzCase, claim: string): boolean {
  const activation = "conv" in asked ? asked.conv.epilogue?.activation : asked.gemm.activation;
  return data === "integers" && special.length === 0 && dtype !== "i8" &&
    (activation === "none" || activation === "relu") &&
    ("conv" in asked ||
      (Number.isInteger(asked.gemm.alpha) && Number.isInteger(asked.gemm.beta))) &&
    /^(f32|f16-f32|bf16-f32)(-f16|-bf16|-f32)?$/.test(claim);
}

/** Whole numbers that f32 holds up to here. */
const EXACT = 2 ** 24;

/** Says which output is not exact, of whole numbers whose sums are. */
async function inexactOutput(
  subject: Subject,
  operands: HostOperands,
  result: HostData,
  stored: DType,
): Promise<string | undefined> {
  const { values } = await subject.reference.of(operands, {});
  const round = stored === "f16" ? Math.f16round : stored === "bf16" ? bf16round : Math.fround;
  const memory = inMemory(subject, values);
  const at = memory.findIndex((value, i) =>
    Math.abs(value) < EXACT && result[i] !== round(value) && !(value === 0 && result[i] === 0)
  );
  return at < 0
    ? undefined
    : `sums of whole numbers are exact: an output is ${result[at]}, expected ${round(memory[at]!)}`;
}

function inMemory(subject: Subject, values: Float64Array): Float64Array {
  return permute(tensor("f64", subject.shape, new Float64Array(values)), subject.axes)
    .data as Float64Array;
}

/** Whether a case did not pass. */
export function isBad({ verdict }: CaseRecord): boolean {
  return verdict === "fail" || verdict === "error";
}

/**
 * A smaller problem on which a kernel fails as well.
 *
 * @param fails Runs it.
 * @param tries How many are run at most.
 */
export async function shrink(
  one: FuzzCase,
  fails: (one: FuzzCase) => Promise<boolean>,
  tries: number,
): Promise<FuzzCase> {
  let smallest = one;
  let again = true;
  while (again) {
    again = false;
    for (const asked of smallerProblems(smallest.asked)) {
      if (tries-- <= 0) return smallest;
      const smaller = { ...smallest, asked };
      if (!await fails(smaller)) continue;
      smallest = smaller;
      again = true;
      break;
    }
  }
  return smallest;
}
