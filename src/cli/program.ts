import { Command, type CommandUnknownOpts } from "#cli-types";
import { EXIT, EXIT_HELP, InputTypeError } from "../errors.ts";
import { onFetch } from "../npm_package.ts";
import { printableMessage } from "../printable.ts";
import { VERSION } from "../version.ts";
import { optionDescription } from "./command_tree.ts";
import { runToEnd, sayFailure } from "./failure.ts";
import { closest } from "../problem/closest.ts";
import { meant, meantOption } from "./other_words.ts";
import { COLORS, reporter, setTalk, writeText } from "./output.ts";
import { GROUPS, orderedGroups } from "./shared_options.ts";
import { gather, oneOf } from "./values.ts";

/** A subcommand: its module is loaded only when it is asked for, so that `--version` stays quick. */
interface Entry {
  readonly name: string;
  readonly summary: string;
  readonly load: () => Promise<CommandUnknownOpts>;
}

const COMMANDS: readonly Entry[] = [
  {
    name: "conv",
    summary: "convolve .npy tensors or compute gradients; check and time the result",
    load: async () => (await import("./conv.ts")).convCommand(),
  },
  {
    name: "gemm",
    summary: "multiply .npy matrices; check and time the result",
    load: async () => (await import("./gemm.ts")).gemmCommand(),
  },
  {
    name: "bench",
    summary: "time and check many problems; write a JSON record for each",
    load: async () => (await import("./bench.ts")).benchCommand(),
  },
  {
    name: "check",
    summary: "check the accuracy of many problems in CI, with JUnit XML",
    load: async () => (await import("./check.ts")).checkCommand(),
  },
  {
    name: "verify",
    summary: "check the accuracy of a result that another program computed",
    load: async () => (await import("./verify.ts")).verifyCommand(),
  },
  {
    name: "compare",
    summary: "compare the accuracy and speed of two runs",
    load: async () => (await import("./compare.ts")).compareCommand(),
  },
  {
    name: "report",
    summary: "show records as a table, CSV, Markdown or an HTML page",
    load: async () => (await import("./report.ts")).reportCommand(),
  },
  {
    name: "history",
    summary: "show what changed over the records of many runs",
    load: async () => (await import("./history.ts")).historyCommand(),
  },
  {
    name: "tune",
    summary: "find the fastest kernel on this GPU; auto uses it from then on",
    load: async () => (await import("./tune.ts")).tuneCommand(),
  },
  {
    name: "calibrate",
    summary: "measure this GPU, so that auto predicts its times",
    load: async () => (await import("./calibrate.ts")).calibrateCommand(),
  },
  {
    name: "plan",
    summary: "show which kernel would run and why, without a GPU",
    load: async () => (await import("./plan.ts")).planCommand(),
  },
  {
    name: "layers",
    summary: "list a network's convolutions and products, from ONNX or logs",
    load: async () => (await import("./layers.ts")).layersCommand(),
  },
  {
    name: "tensor",
    summary: "make, describe, convert, compare and draw .npy tensors",
    load: async () => (await import("./tensor.ts")).tensorCommand(),
  },
  {
    name: "transform",
    summary: "print the exact transforms of Winograd's F(n,r)",
    load: async () => (await import("./transform.ts")).transformCommand(),
  },
  {
    name: "devices",
    summary: "list GPUs, their features, limits and drivers",
    load: async () => (await import("./devices.ts")).devicesCommand(),
  },
  {
    name: "completions",
    summary: "print a completion script: bash, zsh, fish, PowerShell",
    load: async () => (await import("./completions.ts")).completionsCommand(makeProgram),
  },
];

const EXAMPLES = `
Examples:
  wgconv tensor make x.npy --shape 1,3,32,32 --fill uniform11 --seed 1
  wgconv tensor make w.npy --shape 8,3,3,3 --fill normal --seed 2
  wgconv conv --input x.npy --filter w.npy --output y.npy --padding 1
  wgconv conv --problem mb8ic64ih56oc64kh3ph1 --algorithm implicit-gemm
  wgconv bench --suite resnet3x3 --op fwd,bwd-data --jsonl out.jsonl

${EXIT_HELP}`;

/**
 * Runs the program with `args` and returns its exit code. Nothing is thrown: errors become one
 * sentence on stderr (with the stack where `--debug` is given).
 */
export async function main(args: readonly string[]): Promise<number> {
  const debug = args.includes("--debug");
  setTalk(args);
  onFetch((text) => reporter("stderr").message(`wgconv: ${text}`));
  globalThis.addEventListener("unhandledrejection", endUnhandled);
  return await runToEnd(async () => {
    const given = args.filter((arg) => arg !== "--debug");
    const asksHelp = given[0] === "help";
    const words = asksHelp ? given.slice(1) : given;
    const named = commandWords(words);
    const program = await makeProgram((name) => name === named[0]);
    const command = commandOf(program, named);
    if (asksHelp) command.outputHelp();
    else await program.parseAsync(given, { from: "user" });
  }, debug);
}

/**
 * The words that name a command: from the first on that is no option, nor the value of the one option that may stand before it, up to
 * the next option.
 */
function commandWords(args: readonly string[]): string[] {
  const isWord = (arg: string, place: number) =>
    !arg.startsWith("-") && args[place - 1] !== "--color";
  const first = args.findIndex(isWord);
  if (first < 0) return [];
  const words = args.slice(first);
  const end = words.findIndex((word) => word.startsWith("-"));
  return end < 0 ? words : words.slice(0, end);
}

/** Says what nobody caught; the same listener however often the program runs. */
function endUnhandled(event: PromiseRejectionEvent): never {
  event.preventDefault();
  sayFailure(event.reason);
  Deno.exit(EXIT.internal);
}

/**
 * The command that words name: a group's own where they name no other.
 *
 * @throws {TypeError} where there is none.
 */
function commandOf(program: CommandUnknownOpts, words: readonly string[]): CommandUnknownOpts {
  let command = program;
  for (const word of words) {
    if (command.commands.length === 0) break;
    const below = command.commands.find((one) => one.name() === word);
    if (below === undefined) {
      const names = command.commands.map((one) => one.name());
      const where = command === program ? "" : ` of ${command.name()}`;
      throw new InputTypeError(
        `Cannot run "${word}": there is no such command${where}` +
          `${meant(word, names) || `, there are ${names.join(", ")}`}`,
      );
    }
    command = below;
  }
  return command;
}

/** The program with every command. */
export function wholeProgram(): Promise<CommandUnknownOpts> {
  return makeProgram(() => true);
}

/** The command tree, of which only the `loaded` commands are more than a name. */
async function makeProgram(loaded: (name: string) => boolean): Promise<CommandUnknownOpts> {
  const program = new Command("wgconv")
    .description("Convolutions on any GPU that has Vulkan, Metal or D3D12: .npy in, .npy out.")
    .version(VERSION, "-V, --version", "print the version")
    .helpCommand("help [command...]", "show the help of a command")
    // What follows a command is its own, also the options of one below it.
    .enablePositionalOptions()
    .optionsGroup(GROUPS.general)
    .option("--debug", "print stack traces of errors")
    .addHelpText("after", EXAMPLES);
  for (const { name, summary, load } of COMMANDS) {
    program.addCommand((loaded(name) ? await load() : new Command(name)).summary(summary));
  }
  withTalkOptions(program);
  configure(program);
  return program;
}

/** Gives a command and those below it the options that all have, which {@linkcode setTalk} reads. */
function withTalkOptions(command: CommandUnknownOpts): void {
  command
    .optionsGroup(GROUPS.general)
    .option(
      "--quiet",
      "print only errors, failures and requested output: no reports, notes, progress",
    )
    .option("--color <when>", `${COLORS.join(", ")}; auto obeys NO_COLOR`, oneOf(COLORS), "auto")
    .helpOption("-h, --help", "show this help");
  command.commands.forEach(withTalkOptions);
}

/** Makes a command and those below it throw in place of exiting, and word errors our way. */
function configure(command: CommandUnknownOpts): void {
  command.exitOverride().showSuggestionAfterError(false);
  command.configureHelp({ groupItems: orderedGroups, optionDescription });
  command.configureOutput({
    writeOut: (text) => writeText("stdout", text),
    writeErr: (text) => writeText("stderr", text),
    outputError: (text, write) => write(usageMessage(text, command)),
  });
  command.options.forEach((option) => refuseMistakes(command, option));
  command.commands.forEach(configure);
}

/** Refuses a value that is another option, and a second value where the first would be lost. */
function refuseMistakes(
  command: CommandUnknownOpts,
  option: CommandUnknownOpts["options"][number],
): void {
  const { flags, required, optional, parseArg } = option;
  if (!required && !optional) return;
  let given = false;
  command.on(`option:${option.name()}`, (value: unknown) => {
    if (command.options.some(({ long }) => long === value)) {
      command.error(`error: option '${flags}' lacks its value, ${value} is an option`);
    }
    if (given && parseArg !== gather) {
      command.error(`error: option '${flags}' is given twice, one must go`);
    }
    given = true;
  });
}

function pathOf(command: CommandUnknownOpts): string {
  const above = command.parent;
  return above === null ? "" : `${pathOf(above)} ${command.name()}`.trim();
}

/** What commander says of a mistake in a command, in one sentence that says what to do. */
function usageMessage(text: string, command: CommandUnknownOpts): string {
  const said = text.replace(/^error: |\n$/g, "");
  const sentence = said.replace(/( is invalid[^.]*)\. /, "$1: ").replace(/\.$/, "");
  const next = optionHint(sentence, command) ??
    (/ is invalid[^:]*: |must go$/.test(sentence)
      ? ""
      : `, wgconv help ${pathOf(command)}`.trimEnd() + " shows examples");
  return `${printableMessage(`wgconv: ${sentence}${next}`)}\n`;
}

/** What an option that is not known was meant for: one that is called so elsewhere, the shortest that begins so, or one spelt like it. */
function optionHint(sentence: string, command: CommandUnknownOpts): string | undefined {
  const [, unknown] = /^unknown option '(-[^']*)'$/.exec(sentence) ?? [];
  if (unknown === undefined) return undefined;
  const names = command.createHelp().visibleOptions(command).flatMap(({ long }) => long ?? []);
  const lower = unknown.toLowerCase();
  if (names.includes(lower)) return `, did you mean ${lower}?`;
  const other = meantOption(unknown, names);
  if (other !== undefined || !/^--[\w-]{2,}$/.test(unknown)) return other;
  const [whole] = names.filter((name) => name.startsWith(unknown))
    .sort((one, other) => one.length - other.length);
  const near = whole?.slice(2) ?? closest(unknown.slice(2), names.map((name) => name.slice(2)));
  return near === undefined ? undefined : `, did you mean --${near}?`;
}
