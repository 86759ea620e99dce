import { allCommands, type CommandNode, type ValueKind } from "./command_tree.ts";

function quote(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}

/** Flags of `complete` for a value: its words, files (fish's own way), or nothing. */
function valueFlags(value: ValueKind): string {
  if (value.kind === "file") return "-rF";
  if (value.kind === "text") return "-x";
  const words = value.choices.join(" ");
  if (value.kind === "choice") return `-xa ${quote(words)}`;
  return `-xa ${quote(`(__fish_append , ${words})`)}`;
}

/** The lines of one command: the commands below it, its options and its arguments. */
function commandLines(command: CommandNode): string[] {
  const [name, ...path] = command.path;
  const complete = (condition: string) =>
    `complete -c ${name} -n ${quote([`__${name}_${condition}`, ...path].join(" "))}`;
  const lines = command.commands.map(({ path, summary }) =>
    `${complete("is")} -fa ${path.at(-1)} -d ${quote(summary)}`
  );
  const where = path.length > 0 && command.commands.length === 0 ? "at" : "is";
  for (const { names, description, value } of command.options) {
    const flags = names.map((option) =>
      option.startsWith("--") ? `-l ${option.slice(2)}` : `-s ${option.slice(1)}`
    );
    if (value) flags.push(valueFlags(value));
    lines.push(`${complete(where)} ${flags.join(" ")} -d ${quote(description)}`);
  }
  const [first] = command.arguments;
  if (first?.kind === "file") lines.push(`${complete(where)} -F`);
  if (first?.kind === "choice") {
    lines.push(`${complete("is")} -fa ${quote(first.choices.join(" "))}`);
  }
  return lines;
}

/** A completion script for fish. */
export function fishCompletions(root: CommandNode): string {
  const name = root.path[0];
  return `# Completions of ${name} for fish.

# The words before the cursor that are no options.
function __${name}_words
    set -l words (commandline -opc)
    string match -v -- '-*' $words[2..-1]
end

# Whether the command line's words begin with these.
function __${name}_at
    set -l words (__${name}_words)
    set -l depth (count $argv)
    test "$words[1..$depth]" = "$argv"
end

# Whether the command line names this command and none below it, nor other words.
function __${name}_is
    set -l words (__${name}_words)
    test "$words" = "$argv"
end

complete -c ${name} -f
${allCommands(root).flatMap(commandLines).join("\n")}
`;
}
