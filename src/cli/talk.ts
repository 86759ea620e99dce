import { styleText } from "node:util";

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
