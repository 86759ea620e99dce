import { Command, type CommandUnknownOpts } from "#cli-types";
import { VERSION } from "../version.ts";
import { commandTree } from "./command_tree.ts";
import { manualPage } from "./man_page.ts";
import { printer } from "./output.ts";

const EXAMPLES = `
Examples:
  wgconv man | man -l -
  wgconv man > ~/.local/share/man/man1/wgconv.1`;

/** `wgconv man`; `loadAll` gives the program with every command loaded. */
export function manCommand(loadAll: () => Promise<CommandUnknownOpts>) {
  return new Command("man")
    .description("Print the manual page of all commands, in troff.")
    .option("--json", "print JSON")
    .addHelpText("after", EXAMPLES)
    .action(async ({ json }) => {
      const tree = commandTree(await loadAll());
      printer("stdout").line(
        json ? JSON.stringify(tree) : manualPage(tree, VERSION).trimEnd(),
      );
    });
}
