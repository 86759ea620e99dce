/** docs/commands.md, made of the commands' definitions. */
import {
  allCommands,
  type CommandNode,
  commandTree,
  type OptionNode,
} from "../src/cli/command_tree.ts";
import { GROUPS, orderedGroups } from "../src/cli/shared_options.ts";
import { wholeProgram } from "../src/cli/program.ts";
import { EXIT_HELP } from "../src/errors.ts";

/** Options of every command, which the page says once. */
const EVERYWHERE = ["--help", "--quiet", "--color"];

/** The page: a section per command with its options by group, notes and examples. */
export async function commandsPage(): Promise<string> {
  const root = commandTree(await wholeProgram());
  const commands = allCommands(root)
    // verify has commands below it and does something itself, tensor has them alone.
    .filter((command) => command.path.length > 1)
    .filter((command) => command.commands.length === 0 || ownOptions(command).length > 0)
    .filter(({ path }) => path.at(-1) !== "help");
  const general = root.options.filter(({ names }) => EVERYWHERE.includes(names.at(-1)!));
  const said = new Map<string, string>();
  return [
    "# Commands",
    "`wgconv help <command>` prints the same. `deno task docs` makes this page from it.",
    "Every command has:",
    items(general),
    EXIT_HELP.replaceAll("\n", " "),
    ...commands.map((command) => section(command, said, commands)),
  ].join("\n\n") + "\n";
}

const nameOf = ({ path }: CommandNode) => path.slice(1).join(" ");

/** @param said The command that has said an option, by what it says: later ones name it only. */
function section(
  command: CommandNode,
  said: Map<string, string>,
  all: readonly CommandNode[],
): string {
  const words = command.arguments.map(({ name }) => ` ${name}`).join("");
  const own = ownOptions(command);
  const groups = orderedGroups(own, own, ({ group }) => group);
  const fresh = (option: OptionNode) => !said.has(item(option));
  const repeated = Map.groupBy(
    own.filter((option) => !fresh(option)),
    (option) => said.get(item(option))!,
  );
  const lines = [
    `## ${nameOf(command)}`,
    words === "" ? command.description : `\`${nameOf(command)}${words}\`: ${command.description}`,
    ...(command.arguments.length === 0 ? [] : [
      command.arguments.map(({ name, description }) => `- \`${name}\`: ${description}`).join("\n"),
    ]),
    ...[...groups].flatMap(([heading, options]) => {
      const shown = options.filter(fresh);
      if (shown.length === 0) return [];
      return groups.size === 1 || heading === GROUPS.general
        ? [items(shown)]
        : [`**${heading.replace(":", "")}**`, items(shown)];
    }),
    ...(repeated.size === 0 ? [] : [
      `Also, as for ${
        [...repeated].map(([name, options]) => repeats(name, options, all)).join("; as for ")
      }.`,
    ]),
    ...(command.notes === "" ? [] : ["```text\n" + command.notes + "\n```"]),
  ];
  for (const option of own) {
    if (fresh(option)) said.set(item(option), nameOf(command));
  }
  return lines.join("\n\n");
}

/** The options that a command shares with an earlier one: those, or all but the others. */
function repeats(
  name: string,
  options: readonly OptionNode[],
  all: readonly CommandNode[],
): string {
  const [first] = all.filter((one) => nameOf(one) === name);
  const others = ownOptions(first!).filter((one) =>
    options.every((other) => item(other) !== item(one))
  );
  const names = (some: readonly OptionNode[]) =>
    some.map(({ names }) => `\`${names.at(-1)}\``).join(", ");
  const link = `[\`${name}\`](#${name.replaceAll(" ", "-")})`;
  return others.length < options.length / 2
    ? `${link}: all options but ${names(others)}`
    : `${link}: ${names(options)}`;
}

/** A command's options but those of every command. */
function ownOptions({ options }: CommandNode): OptionNode[] {
  return options.filter(({ names }) => !EVERYWHERE.includes(names.at(-1)!));
}

function items(options: readonly OptionNode[]): string {
  return options.map(item).join("\n");
}

function item({ names, value, description }: OptionNode): string {
  return `- \`${names.join(", ")}${value === undefined ? "" : ` ${value.name}`}\`: ${description}`;
}
