import { refuseWrite } from "../npy/atomic_write.ts";
import { printable, printableLine, printableMessage } from "../printable.ts";
import { isQuiet, verdictPainter } from "./talk.ts";

const encoder = new TextEncoder();

/** What ended the first write to stdout that failed. */
let stdoutFailure: unknown;

/** Whether the reader of our output went away (`wgconv … | head`). */
export function isBrokenPipe(error: unknown): boolean {
  return error instanceof Deno.errors.BrokenPipe;
}

/**
 * Writes text whole. Nothing is thrown: stdout's failure is kept for the command's end, lest it hide what the command
 * finds out; there is no other place to tell of stderr's.
 */
export function writeText(stream: "stdout" | "stderr", text: string): void {
  const bytes = encoder.encode(text);
  try {
    for (let written = 0; written < bytes.length;) {
      written += Deno[stream].writeSync(bytes.subarray(written));
    }
  } catch (error) {
    if (stream === "stdout" && !isBrokenPipe(error)) stdoutFailure ??= error;
  }
}

/**
 * Says whether all that was printed on stdout so far was written.
 *
 * @throws {Deno.errors.WriteZero} when the disk is full.
 */
export function checkStdout(): void {
  const failure = stdoutFailure;
  stdoutFailure = undefined;
  if (failure !== undefined) refuseWrite("stdout", failure);
}

/** Where a command prints: stderr when stdout carries a tensor. */
export interface Printer {
  line(text?: string): void;
  /** Prints a sentence, however long the names in it are. */
  message(text: string): void;
  /** Prints lines of words that are printable already, and may have colours. */
  painted(text: string): void;
}

/** Prints what was asked for; see {@linkcode writeText}. */
export function printer(target: "stdout" | "stderr"): Printer {
  return {
    line: (text = "") => writeText(target, `${printable(text)}\n`),
    message: (text) => writeText(target, `${printableMessage(text)}\n`),
    painted: (text) => writeText(target, `${text}\n`),
  };
}

/** Prints reports and notes, which `--quiet` leaves out. */
export function reporter(target: "stdout" | "stderr"): Printer {
  const silent = () => {};
  return isQuiet() ? { line: silent, message: silent, painted: silent } : printer(target);
}

/** Says on stderr what failed, where `--quiet` leaves out the report that says it otherwise: no verdict is hidden. */
export function sayFailed(text: string): void {
  if (isQuiet()) printer("stderr").painted(verdictPainter("stderr")(printableMessage(text)));
}

/** Shows how far long work is, on stderr and only where a person looks. */
export interface Progress {
  readonly visible: boolean;
  update(text: string): void;
  done(): void;
}

/** One line that overwrites itself; silent when stderr is no terminal. Shows from 0.5 s on. */
export function progress(): Progress {
  const visible = Deno.stderr.isTerminal() && !isQuiet();
  return progressLine(
    visible,
    (text) => writeText("stderr", text),
    () => terminalColumns("stderr"),
  );
}

/**
 * {@linkcode progress} where it is `visible`: what comes too early or too soon after another is shown when its time comes.
 *
 * @param columns Those of the terminal now: a line that it would break could not be overwritten.
 */
export function progressLine(
  visible: boolean,
  write: (text: string) => void,
  columns: () => number | undefined = () => undefined,
): Progress {
  let due = performance.now() + 500;
  let latest = "";
  let timer: ReturnType<typeof setTimeout> | undefined;
  let dirty = false;
  const stop = () => {
    clearTimeout(timer);
    timer = undefined;
  };
  const show = () => {
    stop();
    due = performance.now() + 100;
    dirty = true;
    const room = columns();
    // Behind the last column some terminals go on in the next line.
    const shown = room === undefined ? printableMessage(latest) : printableLine(latest, room - 1);
    write(`\r\x1b[K${shown}`);
  };
  return {
    visible,
    update(text) {
      if (!visible) return;
      latest = text;
      const left = due - performance.now();
      if (left <= 0) return show();
      if (timer !== undefined) return;
      timer = setTimeout(show, left);
      // Nobody waits for it.
      Deno.unrefTimer(timer);
    },
    done() {
      stop();
      if (dirty) write("\r\x1b[K");
      dirty = false;
    },
  };
}

const USUAL = 80;

/** Columns of the terminal that a stream writes to; undefined where it is none. */
export function terminalColumns(stream: "stdout" | "stderr"): number | undefined {
  if (!Deno[stream].isTerminal()) return undefined;
  try {
    return Deno.consoleSize().columns || USUAL;
  } catch {
    return USUAL;
  }
}

/**
 * Says how to go on when the user ends a command (Ctrl-C), which then exits with 130. Other listeners, which remove unfinished
 * files, have their turn before that.
 */
export function onInterrupt(say: () => string): Disposable {
  const listener = () => {
    // The terminal's line has ^C on it.
    printer("stderr").line();
    printer("stderr").message(`wgconv: ${say()}`);
    setTimeout(() => Deno.exit(130));
  };
  Deno.addSignalListener("SIGINT", listener);
  return { [Symbol.dispose]: () => Deno.removeSignalListener("SIGINT", listener) };
}
