import { refuseWrite } from "../npy/atomic_write.ts";
import { printable, printableMessage } from "../printable.ts";
import { isBrokenPipe } from "./failure.ts";

const encoder = new TextEncoder();

function write(stream: typeof Deno.stdout, text: string): void {
  const bytes = encoder.encode(text);
  try {
    for (let written = 0; written < bytes.length;) {
      written += stream.writeSync(bytes.subarray(written));
    }
  } catch (error) {
    if (!isBrokenPipe(error)) refuseWrite(stream === Deno.stdout ? "stdout" : "stderr", error);
  }
}

/** Where a command prints its report: stderr when stdout carries a tensor. */
export interface Printer {
  /** Prints a line of the report. */
  line(text?: string): void;
  /** Prints a sentence, however long the names in it are. */
  message(text: string): void;
}

/** Prints reports to stdout, or to stderr. A reader that went away is no error. */
export function printer(target: "stdout" | "stderr"): Printer {
  const stream = target === "stdout" ? Deno.stdout : Deno.stderr;
  return {
    line: (text = "") => write(stream, `${printable(text)}\n`),
    message: (text) => write(stream, `${printableMessage(text)}\n`),
  };
}

/** Shows how far long work is, on stderr and only where a person looks. */
export interface Progress {
  update(text: string): void;
  done(): void;
}

/** One line that overwrites itself; silent when stderr is no terminal. Shows from 0.5 s on. */
export function progress(): Progress {
  const shown = Deno.stderr.isTerminal();
  const start = performance.now();
  let last = start;
  let dirty = false;
  return {
    update(text) {
      const now = performance.now();
      if (!shown || now - start < 500 || now - last < 100) return;
      last = now;
      dirty = true;
      write(Deno.stderr, `\r\x1b[K${printableMessage(text)}`);
    },
    done() {
      if (dirty) write(Deno.stderr, "\r\x1b[K");
      dirty = false;
    },
  };
}
