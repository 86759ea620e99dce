import { openNpy } from "../../src/npy/mod.ts";
import { npyBytes } from "../../src/npy/header.ts";
import { parseDescriptor } from "../../src/problem/descriptor.ts";
import { gemmProblem } from "../../src/problem/gemm_problem.ts";
import type { Subject } from "../../src/run/subject.ts";
import { convertDType } from "../../src/tensor/convert.ts";
import { permute } from "../../src/tensor/layout.ts";
import { tensor } from "../../src/tensor/tensor.ts";
import { makeOperands } from "../../src/verify/data.ts";
import { type FuzzCase, runCase } from "../../src/verify/fuzz.ts";
import { type Asked, convAsked, subjectOf } from "../../src/verify/problems.ts";
import { type ForeignKernel, startWorker } from "../../src/verify/worker.ts";
import { NO_EPILOGUE } from "../../src/problem/epilogue.ts";
import { type Attack, Finding, messageFault, type Outcome } from "./attack.ts";
import { Draw } from "./draw.ts";
import { editHeader } from "./files.ts";
import { attackFolder } from "./folder.ts";
import { mutateBytes } from "./mutate.ts";

const conv = (descriptor: string, op: "fwd" | "bwd-filter"): Asked =>
  convAsked({ ...parseDescriptor(descriptor), op }, { layout: "nchw", epilogue: NO_EPILOGUE });

/** Small problems. */
const ASKED: readonly Asked[] = [
  conv("mb1ic3ih5oc2kh3ph1", "fwd"),
  conv("mb2ic2iw9oc3kw2", "fwd"),
  conv("mb2ic2ih4oc3kh2", "bwd-filter"),
  { gemm: gemmProblem({ m: 3, n: 5, k: 7 }) },
  { gemm: gemmProblem({ m: 1, n: 1, k: 4 }) },
];

/**
 * How far a result that passes may be from the right one, over the sum of its products' magnitudes: the gate allows some ten times
 * what rounding makes.
 */
const ROUNDING = { f32: 2 ** -18, f16: 2 ** -8, bf16: 2 ** -5, i8: 0 } as const;

/** A case, its right result, and how far each output may be from it. */
interface Prepared {
  readonly one: FuzzCase;
  readonly subject: Subject;
  readonly right: Float64Array;
  readonly allowed: Float64Array;
  /** The right result's file. */
  readonly file: Uint8Array<ArrayBuffer>;
}

async function prepare(one: FuzzCase): Promise<Prepared> {
  const subject = subjectOf(one.asked, one.dtype);
  const { values, magnitudes } = await subject.reference.of(makeOperands(subject, one), {});
  const { shape } = subject.result;
  const lying = (of: Float64Array) =>
    permute(tensor("f64", subject.shape, new Float64Array(of)), subject.axes).data as Float64Array;
  const right = new Float64Array(lying(values));
  const stored = one.dtype === "i8" ? "i32" : one.dtype;
  const bytes = npyBytes(convertDType(tensor("f64", shape, right), stored));
  return {
    ...{ one, subject, right },
    allowed: lying(magnitudes).map((size) => ROUNDING[one.dtype] * size),
    file: Uint8Array.from([...bytes].flatMap((piece) => [...piece])),
  };
}

/** Whether a file of a result holds what is right, as far as its type allows. */
async function isRight(path: string, { one, right, allowed }: Prepared): Promise<boolean> {
  using output = await openNpy(path, one.dtype === "bf16" ? { as: "bf16" } : {});
  const { data } = await output.readAs("f64");
  return data.length === right.length &&
    data.every((value, i) => Math.abs(value - right[i]!) <= allowed[i]!);
}

/** A kernel that writes something in place of a result: bytes, or what is no file. */
function writingKernel(write: (path: string) => void, look: (path: string) => Promise<void>) {
  return {
    ask: async ({ words }) => {
      Deno.removeSync(words.output!);
      write(words.output!);
      await look(words.output!);
      return {};
    },
    close: () => Promise.resolve(),
  } satisfies ForeignKernel;
}

/** Answers that are none, or nearly none. `PATH` stands for the output. */
const ANSWERS = [
  `{"output": "PATH", "time_us": 12.5}`,
  `{"output": "PATH"}`,
  `{"time_us": null}`,
  `{"output": "PATH", "time_us": -1}`,
  `{"output": "PATH", "time_us": 1e999}`,
  `{"output": "PATH", "time_us": "${"9".repeat(2000)}"}`,
  `{"output": ["PATH"]}`,
  `{"output": "/etc/passwd"}`,
  `{"output": "${"p".repeat(3000)}"}`,
  `{"error": "\\u001b[31mred\\u0007"}`,
  `{"error": "${"e".repeat(3000)}"}`,
  `{"error": "two\\nlines"}`,
  `{"error": {"message": 1}}`,
  `{"unsupported": "${"u".repeat(3000)}"}`,
  `{"unsupported": true}`,
  `{"__proto__": {"output": "PATH"}}`,
  `{}`,
  `[]`,
  `null`,
  `0`,
  `"PATH"`,
  `{"output": "PATH"`,
  `Traceback (most recent call last):`,
  `\\377\\376`,
  ``,
];

/** A program that copies the right result, or not, and prints a text. */
function answeringKernel(draw: Draw, file: string): { kernel: ForeignKernel; copies: boolean } {
  const encoder = new TextEncoder();
  const plain = draw.pick(ANSWERS);
  const bytes = draw.chance(0.5)
    ? encoder.encode(plain)
    : mutateBytes(draw, encoder.encode(plain), encoder.encode(draw.pick(ANSWERS)));
  const text = new TextDecoder().decode(bytes).replaceAll(/[\0'%]/g, "");
  const copies = draw.chance(0.7);
  const script = [
    "read -r line",
    `path=$(printf '%s' "$line" | sed 's/.*"output":"\\([^"]*\\)".*/\\1/')`,
    copies ? `cp '${file}' "$path"` : ":",
    `printf '%s\\n' '${text}' | sed "s#PATH#$path#g"`,
    draw.pick(["exit 0", "exit 3", "kill -9 $$", "read -r more"]),
  ].join("\n");
  return { kernel: startWorker(["sh", "-c", script], 5000), copies };
}

function call(program: string, ...args: string[]): void {
  new Deno.Command(program, { args }).outputSync();
}

/** What takes the place of a result's file that holds other bytes. */
function odd(draw: Draw, path: string, bytes: Uint8Array): void {
  switch (draw.int(0, 5)) {
    case 0:
      return Deno.mkdirSync(path);
    case 1:
      return call("ln", "-s", draw.pick(["/dev/zero", "/etc/passwd", path, "/dev/full"]), path);
    case 4:
      return call("mkfifo", path);
    case 2:
      return;
    case 3:
      return Deno.writeFileSync(path, new Uint8Array(0));
    default:
      // Sparse, and larger than memory.
      Deno.writeFileSync(path, bytes);
      return Deno.truncateSync(path, 2 ** 40);
  }
}

/** Kernels of others that write and answer anything. */
export const KERNELS: Attack = {
  kind: "kernels",
  limit: 30,
  weight: 1,
  open(seed) {
    const folder = attackFolder();
    const draw = (number: number) => new Draw(seed, "kernels", number);
    const run = async (number: number): Promise<Outcome> => {
      const made = draw(number);
      const one: FuzzCase = {
        ...{ asked: made.pick(ASKED), dtype: made.pick(["f32", "f16", "bf16", "i8"] as const) },
        ...{ data: made.pick(["normal", "integers"] as const), special: [], seed: made.int(1, 9) },
      };
      const prepared = await prepare(one);
      const way = made.int(0, 9);
      let right = false;
      let kernel: ForeignKernel;
      if (way < 3) {
        const file = `${folder}/right.npy`;
        Deno.writeFileSync(file, prepared.file);
        const answering = answeringKernel(made, file);
        [kernel, right] = [answering.kernel, answering.copies];
      } else {
        const bytes = way === 9
          ? undefined
          : way < 5
          ? editHeader(made, prepared.file)
          : mutateBytes(made, prepared.file, prepared.file);
        kernel = writingKernel(
          (path) =>
            bytes === undefined ? odd(made, path, prepared.file) : Deno.writeFileSync(path, bytes),
          async (path) => {
            right = bytes !== undefined && await isRight(path, prepared).catch(() => false);
          },
        );
      }
      try {
        const { verdict, message = "" } = await runCase(kernel, one, folder, {
          ...{ arithmetic: "auto", provider: "attack" },
        });
        const fault = messageFault(message);
        if (fault !== undefined) throw new Finding(fault);
        if (verdict === "pass" && !right) throw new Finding("a wrong result passes");
        return `${way < 3 ? "answers" : "files"}: ${verdict}`;
      } finally {
        await kernel.close();
      }
    };
    return Promise.resolve({
      run,
      describe: (number) => `case ${number}: ${JSON.stringify(draw(number).pick(ASKED))}`,
      [Symbol.asyncDispose]: () => Promise.resolve(),
    });
  },
};
