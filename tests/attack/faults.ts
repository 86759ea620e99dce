import { openNpy } from "../../src/npy/mod.ts";
import { parseRecords } from "../../src/report/read_records.ts";
import { type Attack, Finding, messageFault, type Outcome } from "./attack.ts";
import { Draw } from "./draw.ts";
import { attackFolder } from "./folder.ts";
import {
  describeCommand,
  enterFolder,
  holdEnded,
  holdNoTemporaries,
  runInProcess,
} from "./in_process.ts";
import { SAMPLE_FILES } from "./sample_files.ts";

/** Shares of the kinds of faults: what opens a device or a process takes longer. */
const SHARES = { write: 0.8, device: 0.14, signal: 0.06 };

/** A command that writes a file, and what is at that place before. */
interface WriteCase {
  readonly args: readonly string[];
  readonly output: string;
}

const SMALL = ["mb1ic4ih8oc4kh3ph1", "--algorithm", "direct"];
const CHECK = [
  "check",
  "--suite",
  "suite.txt",
  "--op",
  "fwd",
  "--algorithm",
  "direct",
  "--baseline",
  "none",
];

/** Commands whose writes fail. */
const WRITES: readonly ((output: string) => WriteCase)[] = [
  (output) => ({ args: ["tensor", "make", output, "--shape", "40,50"], output }),
  (output) => ({ args: ["tensor", "convert", "x.npy", output, "--dtype", "f64"], output }),
  (output) => ({ args: ["tensor", "show", "x.npy", output, "--channel", "0"], output }),
  (output) => ({ args: ["transform", "F(4x4,3x3)", "--output", output], output }),
  (output) => ({ args: ["report", "run.jsonl", "--format", "csv", "--output", output], output }),
  (output) => ({ args: ["report", "run.jsonl", "--format", "html", "--output", output], output }),
  (output) => ({
    args: ["conv", "--input", "x.npy", "--filter", "w.npy", "--device", "cpu", "--output", output],
    output,
  }),
  (output) => ({
    args: ["gemm", "--a", "a.npy", "--b", "b.npy", "--device", "cpu", "--output", output],
    output,
  }),
];

/** The same where a device computes. */
const DEVICE_WRITES: readonly ((output: string) => WriteCase)[] = [
  (output) => ({
    args: ["bench", ...SMALL, "--runs", "1", "--fill-ms", "0", "--jsonl", output],
    output,
  }),
  (output) => ({ args: [...CHECK, "--layout", "nchw", "--junit", output], output }),
  (output) => ({ args: [...CHECK, "--layout", "nchw", "--jsonl", output], output }),
  (output) => ({
    args: ["tune", ...SMALL, "--policy", "tiny", "--runs", "1", "--output", output],
    output,
  }),
];

type Operation = "write" | "sync" | "rename" | "open";

type Fault =
  | {
    readonly kind: "write";
    readonly one: WriteCase;
    readonly at: Operation;
    readonly after: number;
    readonly old: boolean;
  }
  | { readonly kind: "full"; readonly one: WriteCase }
  | { readonly kind: "device"; readonly args: readonly string[]; readonly after: number }
  | {
    readonly kind: "signal";
    readonly args: readonly string[];
    readonly signal: "SIGINT" | "SIGTERM" | "SIGHUP";
    readonly ms: number;
  };

function faultOf(seed: number, number: number): Fault {
  const draw = new Draw(seed, "faults", number);
  const at = draw.word() / 2 ** 32;
  if (at < SHARES.write) {
    const make = draw.pick(draw.chance(0.05) ? DEVICE_WRITES : WRITES);
    if (draw.chance(0.1)) return { kind: "full", one: make("/dev/full") };
    return {
      kind: "write",
      one: make("new.npy"),
      at: draw.pick(["write", "write", "sync", "rename", "open"] as const),
      after: draw.pick([0, 0, 1, 2, draw.int(0, 10)]),
      old: draw.chance(0.5),
    };
  }
  if (at < SHARES.write + SHARES.device) {
    return {
      kind: "device",
      args: draw.pick([
        [
          "conv",
          "--problem",
          "mb1ic4ih8oc4kh3ph1",
          "--algorithm",
          "implicit-gemm",
          "--policy",
          "tiny",
          "--runs",
          "2",
        ],
        ["gemm", "--size", "8,8,8", "--policy", "tiny", "--runs", "2"],
        [
          "bench",
          "mb1ic4ih8oc4kh3ph1",
          "mb1ic4ih9oc4kh3ph1",
          "--algorithm",
          "direct",
          "--runs",
          "2",
          "--fill-ms",
          "0",
        ],
        [...CHECK, "--layout", "nchw"],
      ]),
      after: draw.int(0, 60),
    };
  }
  return {
    kind: "signal",
    args: draw.pick([
      ["tensor", "make", "new.npy", "--shape", "3000,3000", "--fill", "normal"],
      [
        "conv",
        "--problem",
        "mb2ic16ih56oc16kh3ph1",
        "--device",
        "cpu",
        "--check",
        "none",
        "--output",
        "new.npy",
      ],
    ]),
    signal: draw.pick(["SIGINT", "SIGTERM", "SIGHUP"] as const),
    ms: draw.int(50, 1500),
  };
}

class Full extends Error {
  readonly code = "ENOSPC";
  constructor() {
    super("No space left on device (os error 28)");
  }
}

/** Puts `make` in the place of a method until the stack is disposed of; nothing where there is no such method. */
function replaceMethod(
  stack: DisposableStack,
  object: object,
  name: string,
  make: (call: () => unknown, args: readonly unknown[]) => unknown,
): void {
  const methods = object as Record<string, unknown>;
  const original = methods[name];
  if (typeof original !== "function") return;
  methods[name] = function (this: unknown, ...args: unknown[]) {
    return make(() => original.apply(this, args), args);
  };
  stack.defer(() => methods[name] = original);
}

/** Makes the operating system refuse a kind of calls once `after` of them went well. Its count tells how many came. */
function failWrites(at: Operation, after: number): { refused: boolean } & Disposable {
  const stack = new DisposableStack();
  let left = after;
  const state = { refused: false, [Symbol.dispose]: () => stack.dispose() };
  const refuse = () => {
    if (left-- > 0) return false;
    state.refused = true;
    return true;
  };
  const wrap = (
    object: object,
    name: string,
    fails: (...args: unknown[]) => boolean,
    sync: boolean,
  ) =>
    replaceMethod(stack, object, name, (call, args) => {
      if (!fails(...args)) return call();
      if (sync) throw new Full();
      return Promise.reject(new Full());
    });
  const file = Deno.FsFile.prototype;
  switch (at) {
    case "write":
      wrap(file, "write", refuse, false);
      wrap(file, "writeSync", refuse, true);
      wrap(Deno, "writeFile", refuse, false);
      wrap(Deno, "writeTextFile", refuse, false);
      wrap(Deno, "writeFileSync", refuse, true);
      wrap(Deno, "writeTextFileSync", refuse, true);
      break;
    case "sync":
      wrap(file, "sync", refuse, false);
      wrap(file, "syncSync", refuse, true);
      break;
    case "rename":
      wrap(Deno, "rename", refuse, false);
      wrap(Deno, "renameSync", refuse, true);
      break;
    case "open": {
      const writes = (_: unknown, given?: unknown) => {
        const { write, append } = (given ?? {}) as Deno.OpenOptions;
        return (write === true || append === true) && refuse();
      };
      wrap(Deno, "open", writes, false);
      wrap(Deno, "openSync", writes, true);
    }
  }
  return state;
}

const OLD = "what was there before";

/** A file that is whole: as it was, gone, or one that its readers take. */
async function holdWhole(folder: string, { output, args }: WriteCase, old: boolean): Promise<void> {
  const path = `${folder}/${output}`;
  const bytes = await Deno.readFile(path).catch(() => undefined);
  if (bytes === undefined) {
    if (old) throw new Finding(`${output} was there and is lost`);
    return;
  }
  const text = new TextDecoder().decode(bytes);
  if (old && text === OLD) return;
  if (args.includes("--jsonl")) {
    // A stream: whole lines, of which the last may be cut off.
    const end = text.lastIndexOf("\n") + 1;
    if (old && text.startsWith(OLD)) return;
    parseRecords(text.slice(0, end), output);
    return;
  }
  // What is merged is locked first, which makes a file of no records.
  if (args[0] === "tune" && bytes.length === 0) return;
  throw new Finding(`${output} holds ${bytes.length} bytes after a write that failed`);
}

async function failedWrite(root: string, fault: Fault & { kind: "write" }): Promise<Outcome> {
  const { one, at, after, old } = fault;
  const before = old && !one.args.includes("--jsonl") && one.args[0] !== "tune";
  const files = before ? { ...SAMPLE_FILES, [one.output]: OLD } : SAMPLE_FILES;
  const folder = enterFolder(root, { files });
  const failing = failWrites(at, after);
  const ended = await runInProcess(one.args).finally(() => failing[Symbol.dispose]());
  holdEnded(ended, { args: one.args });
  holdNoTemporaries(folder);
  if (!failing.refused) return "writes that held";
  // Caches and notes may fail without a word; the output may not.
  if (ended.code === 0) throw new Finding(`${at} failed and the exit code is 0`);
  if (ended.code !== 2) throw new Finding(`${at} failed and the exit code is ${ended.code}`);
  if (!/Cannot write|Cannot make/.test(ended.stderr)) {
    throw new Finding(`${at} failed, and this is said: ${JSON.stringify(ended.stderr)}`);
  }
  await holdWhole(folder, one, before);
  return `failed ${at}s`;
}

async function fullDisk(root: string, { args }: WriteCase): Promise<Outcome> {
  const folder = enterFolder(root, { files: SAMPLE_FILES });
  const ended = await runInProcess(args);
  holdEnded(ended, { args });
  holdNoTemporaries(folder);
  if (ended.code !== 2) {
    throw new Finding(`/dev/full is the output, and the exit code is ${ended.code}`);
  }
  return "full disks";
}

/** Calls of WebGPU after any of which the device may be lost. */
const GPU_CALLS: readonly (readonly [object: () => object, names: readonly string[]])[] = [
  [() => GPUDevice.prototype, [
    "createBuffer",
    "createBindGroup",
    "createCommandEncoder",
    "createComputePipelineAsync",
    "createComputePipeline",
    "createShaderModule",
    "popErrorScope",
  ]],
  [() => GPUQueue.prototype, ["submit", "writeBuffer"]],
  [() => GPUBuffer.prototype, ["mapAsync", "getMappedRange", "unmap"]],
];

/** Loses the device that is open after so many calls. */
function loseDevice(after: number): { lost: boolean } & Disposable {
  const stack = new DisposableStack();
  let left = after;
  let device: GPUDevice | undefined;
  const state = { lost: false, [Symbol.dispose]: () => stack.dispose() };
  replaceMethod(stack, GPUAdapter.prototype, "requestDevice", (call) => {
    const made = call() as Promise<GPUDevice>;
    made.then((opened) => device = opened, () => {});
    return made;
  });
  const count = () => {
    if (state.lost || device === undefined || left-- > 0) return;
    state.lost = true;
    device.destroy();
  };
  for (const [object, names] of GPU_CALLS) {
    for (const name of names) {
      replaceMethod(stack, object(), name, (call) => {
        count();
        return call();
      });
    }
  }
  return state;
}

async function lostDevice(root: string, args: readonly string[], after: number): Promise<Outcome> {
  const folder = enterFolder(root, { files: SAMPLE_FILES });
  const losing = loseDevice(after);
  const ended = await runInProcess(args).finally(() => losing[Symbol.dispose]());
  holdNoTemporaries(folder);
  holdEnded(ended, { args, internal: true });
  if (!losing.lost) return "devices that held";
  const { code, stdout, stderr } = ended;
  const text = `${stdout}${stderr}`;
  // It may be lost when all is done.
  if (code === 0) return "devices lost at the end";
  if (code !== 5) {
    throw new Finding(
      `the device was lost and the exit code is ${code}: ${JSON.stringify(text.slice(-300))}`,
    );
  }
  if (!/the device (was lost|is closed)/.test(text)) {
    throw new Finding(`the device was lost, and this is said: ${JSON.stringify(text.slice(-400))}`);
  }
  const errors = text.match(/^error: /gm)?.length ?? 0;
  if (errors > 1) {
    throw new Finding(`the lost device cost ${errors} cases: ${JSON.stringify(text.slice(-400))}`);
  }
  return "devices lost";
}

async function signalled(root: string, fault: Fault & { kind: "signal" }): Promise<Outcome> {
  const { args, signal, ms } = fault;
  const folder = enterFolder(root, { files: { ...SAMPLE_FILES, "new.npy": OLD } });
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "--no-check", "--quiet", "--cached-only"],
      ...["--allow-read", "--allow-env", "--allow-sys", "--allow-run", "--allow-ffi"],
      `--allow-write=${root}`,
      new URL("../../main.ts", import.meta.url).href,
      ...args,
    ],
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();
  const timer = setTimeout(() => {
    try {
      child.kill(signal);
    } catch {
      // It has ended.
    }
  }, ms);
  const { code, stderr } = await child.output();
  clearTimeout(timer);
  const text = new TextDecoder().decode(stderr);
  const wrong = text.split("\n").map(messageFault).find((one) => one !== undefined);
  if (wrong !== undefined) throw new Finding(wrong);
  holdNoTemporaries(folder);
  const expected = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 }[signal];
  if (code !== 0 && code !== expected) {
    throw new Finding(
      `${signal} after ${ms} ms ended it with ${code}: ${JSON.stringify(text.slice(-300))}`,
    );
  }
  const old = await Deno.readTextFile(`${folder}/new.npy`) === OLD;
  if (code === 0 && old) throw new Finding("it ended with 0 and wrote nothing");
  if (!old) {
    // Whole, or this throws.
    using source = await openNpy(`${folder}/new.npy`);
    await source.read();
  }
  return code === 0 ? "signals too late" : "signals";
}

/** Writes that fail, devices that are lost, signals. */
export const FAULTS: Attack = {
  kind: "faults",
  limit: 60,
  weight: 1,
  open(seed) {
    const root = attackFolder();
    return Promise.resolve({
      describe: (number) => {
        const fault = faultOf(seed, number);
        const { args } = "one" in fault ? fault.one : fault;
        return `${JSON.stringify(fault)} with ${describeCommand({ args, files: {} })}`;
      },
      run: async (number): Promise<Outcome> => {
        const fault = faultOf(seed, number);
        switch (fault.kind) {
          case "write":
            return await failedWrite(root, fault);
          case "full":
            return await fullDisk(root, fault.one);
          case "device":
            return await lostDevice(root, fault.args, fault.after);
          case "signal":
            return await signalled(root, fault);
        }
      },
      [Symbol.asyncDispose]: () => Promise.resolve(Deno.chdir(root)),
    });
  },
};
