/** The small part of Python's literals that stands in `.npy` headers. */

import { InputSyntaxError } from "../errors.ts";

/** A parsed literal; `at` is its offset in bytes. Structures keep their nodes, so that errors can point. */
export type Literal =
  | { readonly kind: "string"; readonly at: number; readonly value: string }
  | { readonly kind: "integer"; readonly at: number; readonly value: number }
  | { readonly kind: "name"; readonly at: number; readonly value: "True" | "False" | "None" }
  | { readonly kind: "tuple" | "list"; readonly at: number; readonly items: readonly Literal[] }
  | { readonly kind: "dict"; readonly at: number; readonly entries: ReadonlyMap<string, Literal> };

interface Token {
  readonly kind: "string" | "integer" | "name" | "mark" | "end";
  readonly text: string;
  readonly at: number;
}

/** Structured dtypes nest, but no honest header nests deeper. */
const MAX_DEPTH = 16;
const TOKEN =
  /[ \t\r\n\f]*(?:(?<string>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")|(?<integer>-?[ ]*[0-9]+)L?|(?<name>[A-Za-z_]+)|(?<mark>[{}()[\],:]))/y;

/**
 * Parses one literal that fills `text` but for white space. Offsets count from `base`.
 *
 * @throws {SyntaxError} "byte 17: expected …" where the text is none.
 */
export function parseLiteral(text: string, base = 0): Literal {
  const tokens = tokenize(text, base);
  let next = 0;
  const peek = () => tokens[next]!;
  const takeMark = (mark: string) => {
    const found = peek().kind === "mark" && peek().text === mark;
    if (found) next++;
    return found;
  };
  const fail = (expected: string): never => {
    const { kind, text, at } = peek();
    throw new InputSyntaxError(
      `byte ${at}: expected ${expected}, found ${kind === "end" ? "the end of the header" : text}`,
    );
  };

  const parse = (depth: number): Literal => {
    if (depth > MAX_DEPTH) fail(`at most ${MAX_DEPTH} levels of nesting`);
    const { kind, text, at } = peek();
    if (kind === "string") {
      next++;
      return { kind, at, value: text.slice(1, -1) };
    }
    if (kind === "integer") {
      next++;
      return { kind, at, value: Number(text.replaceAll(" ", "")) };
    }
    if (kind === "name" && (text === "True" || text === "False" || text === "None")) {
      next++;
      return { kind, at, value: text };
    }
    if (takeMark("{")) return parseDict(at, depth);
    if (takeMark("(")) return parseItems(at, ")", depth);
    if (takeMark("[")) return parseItems(at, "]", depth);
    return fail("a literal");
  };

  const parseItems = (at: number, close: ")" | "]", depth: number): Literal => {
    const items: Literal[] = [];
    let comma = false;
    while (!takeMark(close)) {
      if (items.length > 0 && !comma) fail(`"," or "${close}"`);
      items.push(parse(depth + 1));
      comma = takeMark(",");
    }
    if (close === ")" && items.length === 1 && !comma) return items[0]!;
    return { kind: close === ")" ? "tuple" : "list", at, items };
  };

  const parseDict = (at: number, depth: number): Literal => {
    const entries = new Map<string, Literal>();
    let comma = true;
    while (!takeMark("}")) {
      if (!comma) fail('"," or "}"');
      const key = peek();
      if (key.kind !== "string") fail("a key in quotes");
      const name = key.text.slice(1, -1);
      if (entries.has(name)) fail("each key once");
      next++;
      if (!takeMark(":")) fail('":"');
      entries.set(name, parse(depth + 1));
      comma = takeMark(",");
    }
    return { kind: "dict", at, entries };
  };

  const literal = parse(0);
  if (peek().kind !== "end") fail("the end of the header");
  return literal;
}

function tokenize(text: string, base: number): Token[] {
  const tokens: Token[] = [];
  const end = text.trimEnd().length;
  let offset = 0;
  while (offset < end) {
    TOKEN.lastIndex = offset;
    const groups = TOKEN.exec(text)?.groups;
    if (groups === undefined) {
      const at = offset + text.slice(offset).search(/[^ \t\r\n\f]/);
      const code = text.charCodeAt(at).toString(16).padStart(2, "0");
      throw new InputSyntaxError(
        `byte ${base + at}: expected a Python literal, found the byte 0x${code}`,
      );
    }
    offset = TOKEN.lastIndex;
    for (const kind of ["string", "integer", "name", "mark"] as const) {
      const found = groups[kind];
      if (found === undefined) continue;
      const long = kind === "integer" && text[offset - 1] === "L" ? 1 : 0;
      tokens.push({ kind, text: found, at: base + offset - long - found.length });
    }
  }
  tokens.push({ kind: "end", text: "", at: base + end });
  return tokens;
}
