import { Command, type CommandUnknownOpts, Option } from "#cli-types";
import { InputTypeError } from "../errors.ts";
import { type CommandNode, commandTree, type ValueKind } from "./command_tree.ts";
import { printer } from "./output.ts";
import { oneOf } from "./values.ts";

/** Scripts by shell: each asks the program what may stand at the cursor, whose word goes last behind a colon. */
const SCRIPTS = {
  bash: `_wgconv() {
  local current=\${COMP_WORDS[COMP_CWORD]}
  mapfile -t COMPREPLY < <("\${COMP_WORDS[0]}" completions bash -- "\${COMP_WORDS[@]:1:COMP_CWORD - 1}" ":$current" 2>/dev/null)
  [[ \${COMPREPLY-} == @file ]] || return 0
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -f -- "\${current#=}")
}
complete -F _wgconv wgconv`,
  zsh: `#compdef wgconv
_wgconv() {
  local -a offers
  offers=("\${(@f)$("\${words[1]}" completions zsh -- "\${(@)words[2,CURRENT-1]}" ":\${words[CURRENT]}" 2>/dev/null)}")
  if [[ $offers[1] == @file ]]; then
    compset -P '--*='
    _files
  else
    compadd -- $offers
  fi
}
if [[ $funcstack[1] == _wgconv ]]; then _wgconv "$@"; else compdef _wgconv wgconv; fi`,
  fish: `function __wgconv_offers
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l offers ($words[1] completions fish -- $words[2..-1] ":$current" 2>/dev/null)
    if test "$offers[1]" = @file
        __fish_complete_path "$current"
    else
        string join \\n -- $offers
    end
end
complete -c wgconv -f -a '(__wgconv_offers)'`,
  // Where it offers nothing PowerShell completes files.
  powershell: `Register-ArgumentCompleter -Native -CommandName wgconv -ScriptBlock {
  param($wordToComplete, $commandAst, $cursorPosition)
  $words = @($commandAst.CommandElements | Where-Object { $_.Extent.EndOffset -lt $cursorPosition } |
    ForEach-Object { $_.Extent.Text })
  & $words[0] completions powershell '--' @($words | Select-Object -Skip 1) ":$wordToComplete" |
    Where-Object { $_ -ne '@file' } |
    ForEach-Object { [System.Management.Automation.CompletionResult]::new($_) }
}`,
} as const;

const EXAMPLES = `
The script asks the program, which knows every command, option and choice.

Examples:
  wgconv completions bash > ~/.local/share/bash-completion/completions/wgconv
  source <(wgconv completions bash)                          in this shell alone
  wgconv completions zsh > ~/.zfunc/_wgconv                  with ~/.zfunc in fpath, before compinit
  wgconv completions fish > ~/.config/fish/completions/wgconv.fish
  wgconv completions powershell >> $PROFILE                  in PowerShell`;

/** `wgconv completions`; `load` gives the program with the commands of some names loaded. */
export function completionsCommand(
  load: (wanted: (name: string) => boolean) => Promise<CommandUnknownOpts>,
) {
  const shells = Object.keys(SCRIPTS) as (keyof typeof SCRIPTS)[];
  return new Command("completions")
    .description("Print a script that completes wgconv's command lines in a shell.")
    .argument("<shell>", "the shell", oneOf(shells))
    .argument(
      "[words...]",
      "the line's words, which the script passes; the cursor's word is last, after a :",
    )
    .addOption(new Option("--json", "refused: it prints a script").hideHelp())
    .addHelpText("after", EXAMPLES)
    .action(async (shell, words, { json }) => {
      if (json) {
        throw new InputTypeError(
          "Cannot print completions: --json must go, a shell reads a script",
        );
      }
      const out = printer("stdout");
      if (words.length === 0) return out.line(SCRIPTS[shell]);
      const before = words.slice(0, -1);
      const root = commandTree(await load((name) => before.includes(name)));
      for (const { word, about } of offersOf(root, before, words.at(-1)!.replace(/^:/, ""))) {
        out.line(shell === "fish" && about !== "" ? `${word}\t${about}` : word);
      }
    });
}

/** What may stand at the cursor; the word `@file` stands for files. */
interface Offer {
  readonly word: string;
  readonly about: string;
}

/** What may stand in place of `current`, behind the words `before`. Bash has `--op=fwd` as three words. */
export function offersOf(root: CommandNode, before: readonly string[], current: string): Offer[] {
  let command = root;
  let value: ValueKind | undefined;
  let operands = 0;
  const optionOf = (word: string) => command.options.find(({ names }) => names.includes(word));
  for (const word of before.filter((word) => word !== "=")) {
    // An option whose value may be left out takes none of another.
    if (word.startsWith("-")) value = optionOf(word)?.value;
    else if (value !== undefined) value = undefined;
    else {
      const below = command.commands.find(({ path }) => path.at(-1) === word);
      if (below === undefined) operands++;
      else command = below;
    }
  }
  const [, assigned, part] = /^(--[^=]+)=(.*)$/s.exec(current) ?? [];
  if (assigned !== undefined) {
    return valueOffers(optionOf(assigned)?.value, part!)
      .map(({ word, about }) => ({ word: word === "@file" ? word : `${assigned}=${word}`, about }));
  }
  if (current.startsWith("-")) {
    return command.options.flatMap(({ names, description }) =>
      names.filter((name) => name.startsWith(current))
        .map((word) => ({ word, about: description }))
    );
  }
  if (value !== undefined) return valueOffers(value, current.replace(/^=/, ""));
  if (command.commands.length > 0) {
    return command.commands.map(({ path, summary }) => ({ word: path.at(-1)!, about: summary }))
      .filter(({ word }) => word.startsWith(current));
  }
  const places = command.arguments;
  const last = places.at(-1)?.name.includes("...") ? places.at(-1) : undefined;
  return valueOffers(places[operands] ?? last, current);
}

function valueOffers(value: ValueKind | undefined, part: string): Offer[] {
  if (value === undefined || value.kind === "text") return [];
  if (value.kind === "file") return [{ word: "@file", about: "" }];
  const said = value.kind === "list" ? part.slice(0, part.lastIndexOf(",") + 1) : "";
  return value.choices.filter((choice) => choice.startsWith(part.slice(said.length)))
    .map((choice) => ({ word: said + choice, about: "" }));
}
