import { allCommands, type CommandNode, type ValueKind } from "./command_tree.ts";

function quote(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** An array of words; `@file` and `@list` say what they are. */
function words(value: ValueKind): string {
  if (value.kind === "file" || value.kind === "text") return `@('@${value.kind}')`;
  const all = value.kind === "list" ? ["@list", ...value.choices] : value.choices;
  return `@(${all.map(quote).join(", ")})`;
}

/** What stands on a command's own line: commands below it, or its argument. */
function operands({ commands, arguments: [first] }: CommandNode): string {
  if (commands.length > 0) {
    return words({ kind: "choice", choices: commands.map(({ path }) => path.at(-1)!) });
  }
  return words(first ?? { kind: "text" });
}

/** A table of PowerShell: a line a key. */
function table(rows: readonly (readonly [key: string, value: string])[]): string {
  return `@{\n${rows.map(([key, value]) => `    ${quote(key)} = ${value}`).join("\n")}\n  }`;
}

/** A completion script for PowerShell 5.1 and later. Where a file may stand PowerShell completes its own way. */
export function powershellCompletions(root: CommandNode): string {
  const commands = allCommands(root);
  const at = ({ path }: CommandNode, ...more: string[]) => [...path.slice(1), ...more].join(" ");
  const options = commands.flatMap((command) =>
    command.options.flatMap(({ names, description, value }) =>
      names.map((name) => ({ key: at(command, name), description, value }))
    )
  );
  const names = (command: CommandNode) =>
    command.options.flatMap((option) => option.names).map(quote).join(", ");
  return `# Completions of ${root.path[0]} for PowerShell.
Register-ArgumentCompleter -Native -CommandName ${quote(root.path[0]!)} -ScriptBlock {
  param($wordToComplete, $commandAst, $cursorPosition)
  $commands = @(${commands.slice(1).map((command) => quote(at(command))).join(", ")})
  $options = ${table(commands.map((command) => [at(command), `@(${names(command)})`]))}
  $operands = ${table(commands.map((command) => [at(command), operands(command)]))}
  $values = ${
    table(options.flatMap(({ key, value }) => value === undefined ? [] : [[key, words(value)]]))
  }
  $about = ${table(options.map(({ key, description }) => [key, quote(description || key)]))}

  # Words before the one at the cursor, and the command that they name.
  $before = @($commandAst.CommandElements | Select-Object -Skip 1 |
    Where-Object { $_.Extent.EndOffset -lt $cursorPosition } |
    ForEach-Object { $_.Extent.Text })
  $at = ''
  foreach ($word in $before) {
    if ($word.StartsWith('-')) { continue }
    $below = "$at $word".Trim()
    if ($commands -notcontains $below) { break }
    $at = $below
  }

  # The word, what stays of it, and the option that it is a value of.
  $current = "$wordToComplete"
  $kept = ''
  $option = if ($before.Count -gt 0) { $before[-1] } else { '' }
  if ($current -match '^(--[^=]+=)(.*)$') {
    $kept = $Matches[1]
    $option = $kept.TrimEnd('=')
    $current = $Matches[2]
  }
  $found = $values["$at $option".Trim()]
  if ($null -eq $found) {
    # No value of an if: that would take the only word of an array for the array.
    if ($current.StartsWith('-')) { $found = $options[$at] } else { $found = $operands[$at] }
  }
  if ($null -eq $found -or $found[0] -eq '@file' -or $found[0] -eq '@text') { return }
  if ($found[0] -eq '@list') {
    $comma = $current.LastIndexOf(',') + 1
    $kept += $current.Substring(0, $comma)
    $current = $current.Substring($comma)
  }
  $found | Where-Object { $_ -ne '@list' -and $_.StartsWith($current) } | ForEach-Object {
    $said = $about["$at $_".Trim()]
    if (-not $said) { $said = $_ }
    [System.Management.Automation.CompletionResult]::new("$kept$_", $_, 'ParameterValue', $said)
  }
}
`;
}
