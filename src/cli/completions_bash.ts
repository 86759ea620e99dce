import { allCommands, type CommandNode, type ValueKind } from "./command_tree.ts";

/** Where the words of a value are told apart from `@file` and `@list`. */
function valueWords(value: ValueKind): string {
  if (value.kind === "file") return "@file";
  if (value.kind === "text") return "@text";
  return `${value.kind === "list" ? "@list " : ""}${value.choices.join(" ")}`;
}

/** What stands on a command's own line: commands below it, or its argument. */
function operandWords({ commands, arguments: operands }: CommandNode): string {
  if (commands.length > 0) return commands.map(({ path }) => path.at(-1)).join(" ");
  const [first] = operands;
  return first === undefined ? "@text" : valueWords(first);
}

/** One `case` of the tables below. */
function row(keys: readonly string[], words: string): string {
  return `    ${keys.map(quote).join("|")}) echo ${quote(words)} ;;`;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/**
 * A completion script for bash, with nothing of the package bash-completion. Bash splits words at `=`, so that
 * `--op=fwd` comes as three.
 */
export function bashCompletions(root: CommandNode): string {
  const commands = allCommands(root);
  const at = ({ path }: CommandNode) => path.slice(1).join(" ");
  const name = root.path[0];
  const values = commands.flatMap((command) =>
    command.options.flatMap(({ names, value }) =>
      value === undefined
        ? []
        : [row(names.map((name) => `${at(command)} ${name}`.trim()), valueWords(value))]
    )
  );
  return `# Completions of ${name} for bash.
_${name}_options() {
  case $1 in
${
    commands.map((command) =>
      row([at(command)], command.options.flatMap(({ names }) => names).join(" "))
    ).join("\n")
  }
  esac
}

_${name}_operands() {
  case $1 in
${commands.map((command) => row([at(command)], operandWords(command))).join("\n")}
  esac
}

_${name}_values() {
  case $1 in
${values.join("\n")}
  esac
}

_${name}() {
  local current=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD - 1]} at= words word
  if [[ $current == = ]]; then
    current=
  elif [[ $before == = ]]; then
    before=\${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [[ $word == -* ]] && continue
    _${name}_known "$at" "$word" || break
    at=\${at:+$at }$word
  done
  words=$(_${name}_values "\${at:+$at }$before")
  if [[ -z $words && $current == -* ]]; then
    words=$(_${name}_options "$at")
  elif [[ -z $words ]]; then
    words=$(_${name}_operands "$at")
  fi
  COMPREPLY=()
  case $words in
    @text) ;;
    @file)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$current")
      ;;
    '@list '*)
      compopt -o nospace 2>/dev/null
      word=
      [[ $current == *,* ]] && word=\${current%,*},
      mapfile -t COMPREPLY < <(compgen -P "$word" -W "\${words#@list }" -- "\${current##*,}")
      ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current") ;;
  esac
}

_${name}_known() {
  case "\${1:+$1 }$2" in
    ${commands.slice(1).map((command) => quote(at(command))).join("|")}) return 0 ;;
  esac
  return 1
}

complete -F _${name} ${name}
`;
}
