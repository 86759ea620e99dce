import { Command, type CommandUnknownOpts, Option } from "#cli-types";
import { InputTypeError } from "../errors.ts";
import { commandTree } from "./command_tree.ts";
import { bashCompletions } from "./completions_bash.ts";
import { fishCompletions } from "./completions_fish.ts";
import { powershellCompletions } from "./completions_powershell.ts";
import { zshCompletions } from "./completions_zsh.ts";
import { printer } from "./output.ts";
import { oneOf } from "./values.ts";

/** Makers of completion scripts by shell. */
const SHELLS = {
  bash: bashCompletions,
  zsh: zshCompletions,
  fish: fishCompletions,
  powershell: powershellCompletions,
} as const;

const EXAMPLES = `
Examples:
  wgconv completions bash > ~/.local/share/bash-completion/completions/wgconv
  source <(wgconv completions bash)                          in this shell alone
  wgconv completions zsh > ~/.zfunc/_wgconv                  with ~/.zfunc in fpath, before compinit
  wgconv completions fish > ~/.config/fish/completions/wgconv.fish
  wgconv completions powershell >> $PROFILE                  in PowerShell`;

/** `wgconv completions`; `loadAll` gives the program with every command loaded. */
export function completionsCommand(loadAll: () => Promise<CommandUnknownOpts>) {
  const shells = Object.keys(SHELLS) as (keyof typeof SHELLS)[];
  return new Command("completions")
    .description("Print a script that completes wgconv's command lines in a shell.")
    .argument("<shell>", "the shell", oneOf(shells))
    .addOption(new Option("--json", "refused: it prints a script").hideHelp())
    .addHelpText("after", EXAMPLES)
    .action(async (shell, { json }) => {
      if (json) {
        throw new InputTypeError(
          "Cannot print completions: --json must go, a shell reads a script; wgconv man --json has the commands",
        );
      }
      printer("stdout").line(SHELLS[shell](commandTree(await loadAll())).trimEnd());
    });
}
