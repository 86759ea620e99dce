import { styleText } from "node:util";
import { refuseWrite } from "../npy/atomic_write.ts";
import { printable, printableLine, printableMessage } from "../printable.ts";
import { formatDuration } from "../report/format.ts";

/** When colours are shown: `auto` is on terminals, where NO_COLOR does not say otherwise. */
export const COLORS = ["auto", "always", "never"] as const;

interface Talk {
  /** Whether only errors and what was asked for are printed. */
  readonly quiet: boolean;
  readonly color: (typeof COLORS)[number];
}

const USUAL: Talk = { quiet: false, color: "auto" };

let talk = USUAL;

/** Takes what the command line says of it; the command's own parser says what is wrong with that. */
export function setTalk(args: readonly string[]): void {
  const at = args.findLastIndex((arg) => /^--color(=|$)/.test(arg));
  const said = args[at]?.split("=")[1] ?? args[at + 1];
  const color = at < 0 ? USUAL.color : COLORS.find((one) => one === said?.toLowerCase());
  talk = { quiet: args.includes("--quiet"), color: color ?? USUAL.color };
}

/** Whether reports, notes and progress are left out. */
export function isQuiet(): boolean {
  return talk.quiet;
}

/** What words stand out by. */
type Style = "good" | "bad" | "doubtful" | "heading";

const FORMATS = { good: "green", bad: "red", doubtful: "yellow", heading: "bold" } as const;

/** Gives words the colour of a style, where a stream shows colours. */
export function painter(stream: "stdout" | "stderr"): (style: Style, text: string) => string {
  const { color } = talk;
  const shown = color === "always" ||
    (color === "auto" && !Deno.noColor && Deno[stream].isTerminal());
  return shown
    ? (style, text) => styleText(FORMATS[style], text, { validateStream: false })
    : (_, text) => text;
}

/** Gives the words that say how something came out their colours, and what follows them none. */
export function verdictPainter(stream: "stdout" | "stderr"): (text: string) => string {
  const paint = painter(stream);
  return (text) =>
    text.replace(/^[A-Za-z]+/, (word) => {
      const style = verdictStyle(word);
      return style === undefined ? word : paint(style, word);
    });
}

function verdictStyle(word: string): Style | undefined {
  switch (word) {
    case "pass":
    case "FASTER":
      return "good";
    case "fail":
    case "error":
    case "SLOWER":
    case "WRONG":
      return "bad";
    case "regressed":
    case "AMBIGUOUS":
      return "doubtful";
    default:
      return undefined;
  }
}

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
interface Progress {
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

const USUAL_COLUMNS = 80;

/** Columns of the terminal that a stream writes to; undefined where it is none. */
export function terminalColumns(stream: "stdout" | "stderr"): number | undefined {
  if (!Deno[stream].isTerminal()) return undefined;
  try {
    return Deno.consoleSize().columns || USUAL_COLUMNS;
  } catch {
    return USUAL_COLUMNS;
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

/** Shows on a terminal which of how many cases runs, and how long the others will take. */
interface CaseProgress extends Pick<Progress, "done" | "visible"> {
  /** Says that a case begins, or goes on: the `index`-th of `count`, from 1. */
  begin(index: number, count: number, what: string): void;
}

/**
 * Counts the time from the first case on, and anew where a first case begins again.
 *
 * @param noun What is counted.
 * @param before Of them, how many an earlier run has done.
 */
export function caseProgress(noun = "case", before = 0, shown = progress()): CaseProgress {
  let start = performance.now();
  let last = 0;
  return {
    begin(index, count, what) {
      const now = performance.now();
      if (index === 1 && last !== 1) start = now;
      last = index;
      const left = timeLeft({ ended: index - 1, all: count }, now - start);
      shown.update(`${noun} ${before + index} of ${before + count}${left}: ${what}`);
    },
    visible: shown.visible,
    done: () => shown.done(),
  };
}

/** How long what is left will take if it goes on as before; nothing before the first case has ended. */
export function timeLeft(
  { ended, all }: { readonly ended: number; readonly all: number },
  spentMs: number,
): string {
  return ended === 0 ? "" : `, about ${formatDuration(spentMs / ended * (all - ended))} left`;
}
