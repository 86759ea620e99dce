import type { CommandUnknownOpts } from "#cli-types";
import { isChoiceParser } from "./values.ts";

/** What may stand as a value: one of words, a comma list of them, a path, or anything. */
export type ValueKind =
  | { readonly kind: "choice"; readonly choices: readonly string[] }
  | { readonly kind: "list"; readonly choices: readonly string[] }
  | { readonly kind: "file" }
  | { readonly kind: "text" };

/** An option as its command defines it. */
export interface OptionNode {
  /** As on the command line, e.g. `-V` and `--version`; the long one last. */
  readonly names: readonly string[];
  readonly description: string;
  /** Heading of the group that its command's help shows it in. */
  readonly group: string;
  /** Missing where the option takes no value; `name` with its brackets. */
  readonly value?: ValueKind & { readonly name: string };
}

/** An argument by position; `name` with its brackets. */
type ArgumentNode = ValueKind & {
  readonly name: string;
  readonly description: string;
};

/** A command as data, for completions, docs/commands.md and tests. */
export interface CommandNode {
  /** Names from the program's on, e.g. `wgconv tensor make`. */
  readonly path: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly options: readonly OptionNode[];
  readonly arguments: readonly ArgumentNode[];
  readonly commands: readonly CommandNode[];
  /** What its help says after the options. */
  readonly notes: string;
}

/** Describes a command and those below it. */
export function commandTree(
  command: CommandUnknownOpts,
  above: readonly string[] = [],
): CommandNode {
  const path = [...above, command.name()];
  const help = command.createHelp();
  const visible = help.visibleCommands(command);
  const choices = visible.map((child) => child.name()).filter((name) => name !== "help");
  // The argument of help is a command beside it.
  const named = ({ name, description }: ArgumentNode): ArgumentNode => ({
    kind: "choice",
    choices,
    name,
    description,
  });
  return {
    path,
    summary: command.summary() || command.description(),
    description: command.description(),
    options: help.visibleOptions(command).map(optionNode),
    arguments: command.registeredArguments.map(argumentNode),
    commands: visible.map((child) => {
      const node = commandTree(child, path);
      return child.name() === "help" ? { ...node, arguments: node.arguments.map(named) } : node;
    }),
    notes: notesOf(command),
  };
}

/** A command and all below it, each before those below it. */
export function allCommands(root: CommandNode): CommandNode[] {
  return [root, ...root.commands.flatMap(allCommands)];
}

type Option = CommandUnknownOpts["options"][number];
type Argument = CommandUnknownOpts["registeredArguments"][number];

function optionNode(option: Option): OptionNode {
  const { long, short, flags, required, optional } = option;
  const group = option.helpGroupHeading ?? "Options:";
  const names = [short, long].filter((name) => name !== undefined);
  const described = optionDescription(option);
  if (!required && !optional) return { names, description: described, group };
  const name = /[<[].*$/.exec(flags)?.[0] ?? "";
  const value = valueKind(name, option.argChoices, option.parseArg, "text");
  return { names, description: described, group, value: { ...value, name } };
}

/** What an option does, and its default: the same in help and in docs/commands.md. */
export function optionDescription(option: Option): string {
  const { description, defaultValue, parseArg } = option;
  const standard = option.defaultValueDescription ?? shownDefault(defaultValue, parseArg);
  return `${description}${standard === "" ? "" : ` (default ${standard})`}`;
}

function argumentNode(argument: Argument): ArgumentNode {
  const { description, required, variadic, argChoices } = argument;
  const inner = `${argument.name()}${variadic ? "..." : ""}`;
  const name = required ? `<${inner}>` : `[${inner}]`;
  return { ...valueKind(name, argChoices, argument.parseArg, "file"), name, description };
}

/** The kind that choices or the name of a value tell, or `otherwise`. */
function valueKind(
  name: string,
  choices: readonly string[] | undefined,
  parser: unknown,
  otherwise: "file" | "text",
): ValueKind {
  if (choices) return { kind: "choice", choices };
  if (isChoiceParser(parser)) {
    return { kind: parser.list ? "list" : "choice", choices: parser.choices };
  }
  return { kind: /\b(file|folder|directory|path)/.test(name) ? "file" : otherwise };
}

function shownDefault(value: unknown, parser: unknown): string {
  if (value === undefined || value === false) return "";
  if (
    isChoiceParser(parser) && Array.isArray(value) && value.length === parser.choices.length - 1
  ) {
    return "all";
  }
  return Array.isArray(value) ? value.join(",") : String(value);
}

/** What `addHelpText("after", …)` added, which commander hands out only with the whole help. */
function notesOf(command: CommandUnknownOpts): string {
  let help = "";
  const output = command.configureOutput();
  command.configureOutput({ ...output, writeOut: (text) => help += text });
  command.outputHelp();
  command.configureOutput(output);
  return help.slice(command.helpInformation().length).trim();
}
