import { allCommands, type CommandNode, type OptionNode, type ValueKind } from "./command_tree.ts";

/** Text within single quotes. */
function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** Text within the brackets or after the colon of an `_arguments` specification. */
function plain(text: string): string {
  return text.replace(/[\\[\]:]/g, "\\$&");
}

/** The name of a value without its brackets. */
function bare(name: string): string {
  return plain(name.replace(/[<>[\]]|\.\.\./g, ""));
}

function action(value: ValueKind): string {
  switch (value.kind) {
    case "choice":
      return `(${value.choices.join(" ")})`;
    case "list":
      return `_sequence compadd - ${value.choices.join(" ")}`;
    case "file":
      return "_files";
    case "text":
      return " ";
  }
}

/** `*` in front: an option may come again, and lists of options need no exclusions. */
function optionSpecs({ names, description, value }: OptionNode): string[] {
  return names.map((name) =>
    quote(
      `*${name}${value && name.startsWith("--") ? "=" : ""}[${plain(description)}]` +
        (value === undefined ? "" : `:${bare(value.name)}:${action(value)}`),
    )
  );
}

function functionName({ path }: CommandNode): string {
  return `_${path.join("_").replaceAll("-", "_")}`;
}

/** The function of one command: its options, then its arguments or the commands below it. */
function commandFunction(command: CommandNode): string {
  const specs = command.options.flatMap(optionSpecs);
  for (const operand of command.arguments) {
    const many = operand.name.includes("...") ? "*" : "";
    const optional = !many && operand.name.startsWith("[") ? ":" : "";
    specs.push(quote(`${many}:${optional}${bare(operand.name)}:${action(operand)}`));
  }
  const below = command.commands;
  if (below.length > 0) specs.push("'1: :->command'", "'*:: :->argument'");
  const lines = [
    `${functionName(command)}() {`,
    "  local curcontext=$curcontext state line",
    "  typeset -A opt_args",
    `  _arguments -C ${specs.map((spec) => `\\\n    ${spec}`).join(" ")}`,
  ];
  if (below.length > 0) {
    lines.push(
      "  case $state in",
      "    command)",
      "      local -a commands=(",
      ...below.map(({ path, summary }) =>
        `        ${
          quote(`${path.at(-1)}:${summary.replaceAll("\\", "\\\\").replaceAll(":", "\\:")}`)
        }`
      ),
      "      )",
      "      _describe -t commands command commands",
      "      ;;",
      "    argument)",
      "      case $words[1] in",
      ...below.map((child) => `        ${child.path.at(-1)}) ${functionName(child)} ;;`),
      "      esac",
      "      ;;",
      "  esac",
    );
  }
  return [...lines, "}"].join("\n");
}

/** A completion script for zsh: a file of `fpath`, or to be sourced after `compinit`. */
export function zshCompletions(root: CommandNode): string {
  const name = root.path[0];
  return `#compdef ${name}
# Completions of ${name} for zsh.

${allCommands(root).map(commandFunction).join("\n\n")}

if [[ $funcstack[1] == _${name} ]]; then
  _${name} "$@"
else
  compdef _${name} ${name}
fi
`;
}
