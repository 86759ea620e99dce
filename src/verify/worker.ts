/** Kernels of others as programs: a worker that stays and answers lines of JSON, or a command that is run for each problem. */
import { stripVTControlCharacters } from "node:util";
import { InputTypeError, systemWords } from "../errors.ts";
import type { Subject } from "../run/subject.ts";

/** A line that is longer is no answer. */
const LONGEST_LINE = 1 << 20;
/** What is kept of what a program says on stderr. */
const KEPT = 4000;
/** Characters of it that messages hold. */
const SHOWN_COMPLAINT = 200;

const running = new Set<Child>();

/** Ends all programs that run, at once: for signals. */
export function killChildren(): void {
  running.forEach((child) => child.kill());
}

/** A program that runs. */
class Child {
  readonly #process: Deno.ChildProcess;
  readonly #lines: ReadableStreamDefaultReader<string>;
  readonly #input: WritableStreamDefaultWriter<Uint8Array> | undefined;
  readonly #heard: Promise<void>;
  #rest = "";
  #complaint = "";
  /** How it ended, once it has. */
  ended: Deno.CommandStatus | undefined;

  /**
   * Starts a program in a process group of its own.
   *
   * @throws {TypeError} where it cannot be started.
   */
  constructor([program, ...args]: readonly string[], stdin: "piped" | "null") {
    try {
      const options = { args, stdin, stdout: "piped", stderr: "piped", detached: true } as const;
      this.#process = new Deno.Command(program!, options).spawn();
    } catch (error) {
      throw new InputTypeError(`Cannot verify: ${program} does not start: ${reason(error)}`);
    }
    running.add(this);
    this.#lines = this.#process.stdout.pipeThrough(new TextDecoderStream()).getReader();
    this.#input = stdin === "piped" ? this.#process.stdin.getWriter() : undefined;
    this.#input?.closed.catch(() => {});
    this.#heard = this.#hear();
    this.#process.status.then((status) => this.ended = status);
  }

  async #hear(): Promise<void> {
    try {
      for await (const text of this.#process.stderr.pipeThrough(new TextDecoderStream())) {
        this.#complaint = (this.#complaint + text).slice(-KEPT);
      }
    } catch {
      // What it says is for messages alone.
    }
  }

  /** Hands it a line; what it does not take is told by its end. */
  async write(line: string): Promise<void> {
    await this.#input?.write(new TextEncoder().encode(`${line}\n`)).catch(() => {});
  }

  /** The next line that it prints; undefined at the end, or where a line has none. */
  async line(): Promise<string | undefined> {
    while (!this.#rest.includes("\n")) {
      if (this.#rest.length > LONGEST_LINE) return undefined;
      const { value, done } = await this.#lines.read().catch(() => ({ value: "", done: true }));
      if (done) {
        const last = this.#rest;
        this.#rest = "";
        return last === "" ? undefined : last;
      }
      this.#rest += value;
    }
    const end = this.#rest.indexOf("\n");
    const line = this.#rest.slice(0, end);
    this.#rest = this.#rest.slice(end + 1);
    return line;
  }

  /** Waits for its end, which what it started may outlive. */
  async end(): Promise<Deno.CommandStatus> {
    return await this.#process.status;
  }

  /** How it ended, and the last that it said on stderr. */
  async ending(): Promise<string> {
    const { code, signal } = await this.end();
    this.kill();
    await Promise.race([this.#heard, pause(100)]);
    const said = reasonIn(this.#complaint).slice(0, SHOWN_COMPLAINT);
    return (signal === null ? `exit code ${code}` : signal) + (said === "" ? "" : `: ${said}`);
  }

  /** Ends it and all that it started. */
  kill(): void {
    running.delete(this);
    for (const pid of Deno.build.os === "windows" ? [] : [-this.#process.pid]) {
      try {
        Deno.kill(pid, "SIGKILL");
      } catch {
        // Nothing of it is left.
      }
    }
    try {
      this.#process.kill("SIGKILL");
    } catch {
      // It has ended.
    }
  }

  /** Lets it end by itself, and ends what is left of it. */
  async close(patience: number): Promise<void> {
    await this.#input?.close().catch(() => {});
    await Promise.race([this.end(), pause(patience)]);
    this.kill();
    await this.end();
    await Promise.race([this.#heard, pause(100)]);
    await this.#lines.cancel().catch(() => {});
  }
}

/** The line that says why a program ended: the last that names an error, or else the last that is no place of a stack. */
function reasonIn(complaint: string): string {
  const lines = stripVTControlCharacters(complaint).trim().split("\n").map((line) => line.trim());
  return lines.findLast((line) => /^[\w.]*(error|exception)\b/i.test(line)) ??
    lines.findLast((line) => !line.startsWith("at ")) ?? "";
}

function reason(error: unknown): string {
  if (error instanceof Deno.errors.NotFound) return "there is no such program";
  if (!(error instanceof Error)) return String(error);
  // The system's error is the last that Deno says of it.
  return systemWords(new Error(error.message.split(": ").at(-1)));
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => Deno.unrefTimer(setTimeout(resolve, ms)));
}

/** What a kernel is asked for. */
export interface KernelRequest {
  /** The problem as plain fields, and the paths. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** What stands for `{name}` in a command. */
  readonly words: Readonly<Record<string, string>>;
  /** What kernels of this process are asked for. */
  readonly asked: Subject["asked"];
}

/** What came of it. */
interface KernelAnswer {
  /** Microseconds, where the kernel tells them. */
  readonly time?: number;
  /** Why it does not compute this problem, where it says so. */
  readonly unsupported?: string;
}

/** What a kernel did in place of an answer. */
export class KernelFault extends Error {
  /** As errors print it. */
  override readonly name = "KernelFault";
}

/** A kernel of others. */
export interface ForeignKernel {
  /**
   * Asks for a result, which is in its file then.
   *
   * @throws {KernelFault} where there is none.
   * @throws {TypeError} where the program does not start.
   */
  ask(request: KernelRequest): Promise<KernelAnswer>;
  /** Ends its program. */
  close(): Promise<void>;
}

/** Milliseconds that a worker has to end by itself. */
const PATIENCE = 500;
/** Characters of an answer that messages hold. */
const SHOWN = 80;

/** A worker: it gets a request a line, as JSON, and answers with a line of JSON. One that fails is started again. */
export function startWorker(argv: readonly string[], timeoutMs: number): ForeignKernel {
  let child: Child | undefined;
  const drop = (fault: string): never => {
    child?.kill();
    child = undefined;
    throw new KernelFault(fault);
  };
  return {
    async ask({ fields }) {
      // It may have ended after its last answer.
      if (child?.ended) child.kill();
      if (child === undefined || child.ended) child = new Child(argv, "piped");
      const own = child;
      const exchange = async () => {
        await own.write(JSON.stringify(fields));
        return await own.line();
      };
      const line = await within(exchange(), timeoutMs);
      if (line === LATE) return drop(`no answer within ${timeoutMs / 1000} s`);
      if (line === undefined) {
        const ending = await within(own.ending(), PATIENCE);
        return drop(
          ending === LATE ? "it closed its output" : `it ended with ${ending}`,
        );
      }
      try {
        return parseAnswer(line, fields.output as string);
      } catch (error) {
        // Lines and requests may not belong to each other any more.
        if (error instanceof Rubbish) drop(error.message);
        throw error;
      }
    },
    async close() {
      await child?.close(PATIENCE);
    },
  };
}

/** A command with `{names}` in its words, which is run for each request. Its last line of output may tell a time. */
export function runCommand(
  argvOf: (words: KernelRequest["words"]) => readonly string[],
  timeoutMs: number,
): ForeignKernel {
  return {
    async ask({ fields, words }) {
      const child = new Child(argvOf(words), "null");
      try {
        const done = async () => {
          let last = "";
          const reading = (async () => {
            for (let line; (line = await child.line()) !== undefined;) last = line;
          })();
          const { success } = await child.end();
          await within(reading, PATIENCE);
          return { success, last };
        };
        const ran = await within(done(), timeoutMs);
        if (ran === LATE) throw new KernelFault(`not done within ${timeoutMs / 1000} s`);
        if (!ran.success) throw new KernelFault(`it ended with ${await child.ending()}`);
        const said = ran.last.startsWith("{") && ran.last.includes("time_us");
        return said ? parseAnswer(ran.last, fields.output as string) : {};
      } finally {
        child.kill();
        await child.close(0);
      }
    },
    close: () => Promise.resolve(),
  };
}

/** A line that is no answer. */
class Rubbish extends KernelFault {}

/**
 * Reads an answer: `{"output": path, "time_us": number}`, `{"error": text}` or `{"unsupported": text}`.
 *
 * @throws {KernelFault} for an error, and for what is no answer.
 */
function parseAnswer(line: string, output: string): KernelAnswer {
  let answer: Record<string, unknown>;
  try {
    answer = Object(JSON.parse(line));
  } catch {
    throw new Rubbish(`it printed "${line.slice(0, SHOWN)}" in place of a line of JSON`);
  }
  const { error, unsupported, time_us: time, output: path = output } = answer;
  if (typeof error === "string") throw new KernelFault(`error: ${error}`);
  if (typeof unsupported === "string") return { unsupported };
  if (!("output" in answer) && time === undefined) {
    throw new Rubbish(`its answer has no "output": ${line.slice(0, SHOWN)}`);
  }
  if (path !== output) throw new Rubbish(`its output is ${path}, expected ${output}`);
  if (time === undefined || time === null) return {};
  if (typeof time === "number" && time >= 0 && Number.isFinite(time)) return { time };
  throw new Rubbish(`its time_us is ${JSON.stringify(time)}, expected microseconds`);
}

const LATE = Symbol("late");

/** What a promise gives, unless it takes longer. */
async function within<T>(promise: Promise<T>, ms: number): Promise<T | typeof LATE> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<typeof LATE>((resolve) => timer = setTimeout(() => resolve(LATE), ms));
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
