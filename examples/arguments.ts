import { dirname } from "node:path";
import { parseArgs, type ParseArgsConfig } from "node:util";

/** Ends the program: what cannot be done, and why, in one sentence. */
export function refuse(sentence: string): never {
  console.error(sentence);
  Deno.exit(2);
}

/**
 * The options of the command line, as `parseArgs` has them; ends the program where it cannot read them, and after `usage`
 * where they have `--help`.
 *
 * @param doing What a sentence of refusal begins with, such as `Cannot train`.
 */
export function readOptions<const T extends NonNullable<ParseArgsConfig["options"]>>(
  doing: string,
  usage: string,
  options: T,
) {
  if (Deno.args.includes("--help")) {
    console.log(usage);
    Deno.exit(0);
  }
  try {
    return parseArgs({ args: Deno.args, options }).values;
  } catch (error) {
    const [sentence] = (error as Error).message.split(/\n|\. /);
    refuse(`${doing}: ${sentence}, the usage is ${usage}`);
  }
}

/** The whole number that an option's text is; ends the program where it is none from `least` on. */
export function wholeNumber(doing: string, option: string, text: string, least = 1): number {
  const value = /^\d+$/.test(text) ? Number(text) : NaN;
  if (Number.isSafeInteger(value) && value >= least) return value;
  refuse(`${doing}: ${option} is ${JSON.stringify(text)}, expected a whole number >= ${least}`);
}

/** The one of some words that an option's text is; ends the program where it is none. */
export function oneOf<T extends string>(
  doing: string,
  option: string,
  text: string,
  words: readonly T[],
): T {
  return words.find((word) => word === text) ??
    refuse(`${doing}: ${option} is ${JSON.stringify(text)}, expected ${words.join(", ")}`);
}

/** Ends the program where a file to be written has no directory, or is one. */
export function expectOutput(doing: string, option: string, path: string): void {
  const isDirectory = (at: string) => {
    try {
      return Deno.statSync(at).isDirectory;
    } catch {
      return false;
    }
  };
  if (!isDirectory(dirname(path))) {
    refuse(`${doing}: ${option} is ${path}, but there is no directory ${dirname(path)}`);
  }
  if (isDirectory(path)) refuse(`${doing}: ${option} is ${path}, which is a directory`);
}
