import {
  allCommands,
  type ArgumentNode,
  type CommandNode,
  type OptionNode,
} from "./command_tree.ts";

/** What the environment says to the program. */
const ENVIRONMENT: readonly (readonly [string, string])[] = [
  ["NO_COLOR", "No colours in messages."],
  ["VK_DRIVER_FILES", "The Vulkan drivers to look at, in place of the system's."],
  ["DENO_WEBGPU_BACKEND", "What Deno's WebGPU runs on; vulkan on Linux where it is not set."],
  ["WGCONV_DAWN", "The index.js of the npm package webgpu, for --backend dawn without a download."],
  ["XDG_CACHE_HOME", "Where the one-file program unpacks itself at its first start."],
];

const SPECIAL: Readonly<Record<string, string>> = {
  "\\": "\\e",
  "-": "\\-",
  "'": "\\(aq",
  "`": "\\(ga",
  "^": "\\(ha",
  "~": "\\(ti",
  '"': "\\(dq",
};

/** Text as troff takes it literally, beginning a line or within one; it may break lists after their commas. */
function literal(text: string): string {
  return text.replace(/[\\\-'`^~"]/g, (char) => SPECIAL[char]!)
    .replace(/[^\x20-\x7e\n]/gu, (char) => {
      const code = char.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0");
      return `\\[u${code}]`;
    })
    .replace(/,(?=\S)/g, ",\\:")
    .replace(/^\./gm, "\\&.");
}

const bold = (text: string) => `\\fB${literal(text)}\\fR`;
const italic = (text: string) => `\\fI${literal(text)}\\fR`;

/** `--op <op>`: names bold, the value's name italic within its brackets. */
function optionTerm({ names, value }: OptionNode): string {
  return names.map(bold).join(", ") + (value === undefined ? "" : ` ${valueTerm(value.name)}`);
}

function valueTerm(name: string): string {
  const [, open = "", inner = "", close = ""] = /^([<[]?)(.*?)([>\]]?)$/.exec(name) ?? [];
  return open === "["
    ? `[${italic(inner)}]`
    : `${italic(inner)}${literal(close === ">" ? "" : close)}`;
}

function item(term: string, text: string): string[] {
  return [".TP", term, literal(text)];
}

function argumentItem({ name, description }: ArgumentNode): string[] {
  return item(valueTerm(name), description);
}

/** A command's synopsis in one line. */
function synopsis({ path, options, arguments: operands, commands }: CommandNode): string {
  const parts = [bold(path.join(" "))];
  if (commands.length > 0) parts.push(italic("command"));
  if (options.length > 0) parts.push(`[${italic("options")}]`);
  parts.push(...operands.map(({ name }) => valueTerm(name)));
  return parts.join(" ");
}

/** Notes: indented lines stand as they are, others are filled; a line that ends in a colon is a heading. */
function notes(text: string): string[] {
  if (text === "") return [];
  const lines: string[] = [".PP"];
  let verbatim = false;
  for (const line of text.split("\n")) {
    const indented = line.startsWith("  ");
    if (indented !== verbatim) lines.push(...(indented ? [".RS 4", ".nf"] : [".fi", ".RE"]));
    verbatim = indented;
    if (line === "") lines.push(".PP");
    else lines.push(literal(indented ? line.slice(2) : line));
  }
  if (verbatim) lines.push(".fi", ".RE");
  return lines.filter((line, i) => line !== ".PP" || lines[i + 1] !== ".PP");
}

function commandSection(command: CommandNode): string[] {
  return [
    `.SS ${synopsis(command)}`,
    literal(command.description),
    ...command.arguments.flatMap(argumentItem),
    ...command.options.filter(isNotHelp).flatMap((option) =>
      item(optionTerm(option), option.description)
    ),
    ...notes(command.notes),
  ];
}

function isNotHelp({ names }: OptionNode): boolean {
  return !names.includes("--help");
}

/** The manual page of a program and all its commands, in troff with the man macros. */
export function manualPage(root: CommandNode, version: string): string {
  const name = root.path[0]!;
  const commands = allCommands(root).filter(({ path }) =>
    path.length > 1 && path.at(-1) !== "help"
  );
  return [
    `.TH ${name.toUpperCase()} 1 "" "${name} ${version}" "User Commands"`,
    ".nh",
    ".ad l",
    ".SH NAME",
    `${name} \\- ${literal(root.description.replace(/\.$/, ""))}`,
    ".SH SYNOPSIS",
    synopsis(root),
    ".SH OPTIONS",
    ...root.options.flatMap((option) => item(optionTerm(option), option.description)),
    ".SH COMMANDS",
    ...commands.flatMap(commandSection),
    ".SH NOTES",
    ...notes(root.notes).slice(1),
    ".SH ENVIRONMENT",
    ...ENVIRONMENT.flatMap(([variable, text]) => item(bold(variable), text)),
    "",
  ].join("\n");
}
