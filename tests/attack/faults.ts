import { openNpy } from "../../src/npy/mod.ts";
import { parseRecords } from "../../src/report/read_records.ts";
import { type Attack, Finding, messageFault, type Outcome } from "./attack.ts";
import { attackedProgram, attackFolder } from "./folder.ts";
import {
  describeCommand,
  enterFolder,
  holdEnded,
  holdNoTemporaries,
  runInProcess,
} from "./in_process.ts";
import { SAMPLE_FILES } from "./sample_files.ts";
import { failWrites, loseDevice } from "./failing_system.ts";
import { type Fault, faultOf, type WriteCase } from "./fault_cases.ts";

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
  const args = before ? [...one.args, "--force"] : one.args;
  const ended = await runInProcess(args).finally(() => failing[Symbol.dispose]());
  holdEnded(ended, { args });
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
    args: attackedProgram(root, new URL("../../main.ts", import.meta.url), args),
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
