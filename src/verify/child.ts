/** Programs that kernels of others run in, each with the programs that it starts. */
import { stripVTControlCharacters } from "node:util";
import { InputTypeError } from "../errors.ts";

/** A line that is longer is no answer. */
const LONGEST_LINE = 1 << 20;
/** What is kept of what a program says on stderr. */
const KEPT = 4000;
/** Characters of it that messages hold. */
const SHOWN = 200;

const running = new Set<Child>();

/** Ends all programs that run, at once: for signals. */
export function killChildren(): void {
  running.forEach((child) => child.kill());
}

/** A program that runs. */
export class Child {
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
    const said = reasonIn(this.#complaint).slice(0, SHOWN);
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
  return error instanceof Error ? error.message : String(error);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => Deno.unrefTimer(setTimeout(resolve, ms)));
}
