import { harmful } from "../support/harmful.ts";

/** What happened in a case that held: a word or two, by which cases are counted. */
export type Outcome = string;

/** What an attack found: a promise that was broken. */
export class Finding extends Error {
  override readonly name = "Finding";
}

/** One kind of attack. A case is made of the seed and its number alone, so that it can be run again. */
export interface Attack {
  readonly kind: string;
  /** Seconds that a case may take. */
  readonly limit: number;
  /** Its part of the time, where that is shared. */
  readonly weight: number;
  open(seed: number): Promise<Runner>;
}

/** Runs an attack's cases. */
interface Runner extends AsyncDisposable {
  /** What case `number` does, in words that allow to do it by hand. */
  describe(number: number): string;
  /** @throws {Finding} where a promise is broken; any other error is a finding too. */
  run(number: number): Promise<Outcome>;
}

/** Longest message the program may print. */
const LONGEST_MESSAGE = 300;

/** What the engine says, and no user should read. */
const ENGINE =
  /undefined is not|Cannot read propert|Cannot destructure|is not a function|is not iterable|is not a constructor|is not defined|Cannot convert (undefined or null|object to|a (BigInt|Symbol))|Invalid array length|Maximum call stack|\bat file:\/\/|^\s+at .*:\d+:\d+\)?$/m;

/** What is wrong with a text that a user reads; undefined where nothing is. */
export function textFault(text: string): string | undefined {
  const control = harmful(text);
  if (control !== undefined) {
    const code = control.charCodeAt(0).toString(16).padStart(4, "0");
    const at = shown(text, text.indexOf(control));
    return `the control character U+${code} reached the terminal: ${at}`;
  }
  const engine = ENGINE.exec(text);
  if (engine) return `the engine's own words reached the user: ${shown(text, engine.index)}`;
  return undefined;
}

/** What is wrong with a message, a text of one sentence. */
export function messageFault(message: string): string | undefined {
  if (message.length > LONGEST_MESSAGE) {
    return `a message has ${message.length} characters: ${shown(message, 0)}`;
  }
  if (message.includes("\n")) return `a message has several lines: ${shown(message, 0)}`;
  return textFault(message);
}

/** A part of a text around a place, as JSON. */
function shown(text: string, at: number): string {
  return JSON.stringify(text.slice(Math.max(0, at - 60), at + 120));
}

/** Bytes as text that a shell or a test can turn back. */
export function base64(bytes: Uint8Array): string {
  return bytes.toBase64();
}
