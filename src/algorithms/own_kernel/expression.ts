import { InputSyntaxError } from "../../errors.ts";

/** Values of names that expressions use, such as a problem's sizes. */
export type Names = Readonly<Record<string, number>>;

/** A number that follows from others. */
export type Expression = (names: Names) => number;

const FUNCTIONS: Readonly<Record<string, (...values: number[]) => number>> = {
  ceil: (value) => Math.ceil(value!),
  floor: (value) => Math.floor(value!),
  min: Math.min,
  max: Math.max,
};

type Operator = (a: number, b: number) => number;

/** Operators, those that bind least first. Conditions are 1 or 0. */
const OPERATORS: readonly Readonly<Record<string, Operator>>[] = [
  { "||": (a, b) => Number(a !== 0 || b !== 0) },
  { "&&": (a, b) => Number(a !== 0 && b !== 0) },
  { "==": (a, b) => Number(a === b), "!=": (a, b) => Number(a !== b) },
  {
    "<=": (a, b) => Number(a <= b),
    ">=": (a, b) => Number(a >= b),
    "<": (a, b) => Number(a < b),
    ">": (a, b) => Number(a > b),
  },
  { "+": (a, b) => a + b, "-": (a, b) => a - b },
  { "*": (a, b) => a * b, "/": (a, b) => a / b, "%": (a, b) => a % b },
];

const TOKEN = /\s*(\d+(?:\.\d+)?|[a-z_]\w*|\|\||&&|[=!<>]=|[-+*/%<>(),])/giy;

/** Parentheses and signs nest as deep as calls do. */
const LONGEST = 500;

/**
 * Reads an expression of numbers and names: `+ - * / %`, comparisons, `&& ||`, parentheses, `ceil floor min max`. `/` does not round.
 *
 * @param names What may stand in it.
 * @throws {SyntaxError} for text that is none, or other names.
 */
export function parseExpression(given: string | number, names: readonly string[]): Expression {
  const text = `${given}`;
  const wrong = (what: string) => new InputSyntaxError(`"${text.slice(0, 80)}": ${what}`);
  if (text.length > LONGEST) throw wrong(`it is longer than ${LONGEST} characters`);
  const tokens = tokensOf(text, wrong);
  let at = 0;
  const take = (token: string) => tokens[at] === token && ++at > 0;
  const expect = (token: string) => {
    if (!take(token)) throw wrong(`expected ${token}, found ${tokens[at] ?? "its end"}`);
  };

  const binary = (level: number): Expression => {
    const operators = OPERATORS[level];
    if (operators === undefined) return unary();
    let left = binary(level + 1);
    while (true) {
      const operator = operators[tokens[at] ?? ""];
      if (operator === undefined) return left;
      at++;
      const [a, b] = [left, binary(level + 1)];
      left = (names) => operator(a(names), b(names));
    }
  };
  const unary = (): Expression => {
    if (!take("-")) return primary();
    const value = unary();
    return (names) => -value(names);
  };
  const primary = (): Expression => {
    if (take("(")) {
      const value = binary(0);
      expect(")");
      return value;
    }
    const token = tokens[at++];
    if (token === undefined) throw wrong("expected a number or a name, found its end");
    if (/^\d/.test(token)) return () => Number(token);
    if (Object.hasOwn(FUNCTIONS, token)) return call(token);
    if (names.includes(token)) return (names) => names[token]!;
    throw /^\w/.test(token)
      ? wrong(`there is no ${token}, only ${[...names, ...Object.keys(FUNCTIONS)].join(" ")}`)
      : wrong(`expected a number or a name, found ${token}`);
  };
  const call = (name: string): Expression => {
    expect("(");
    const values = [binary(0)];
    while (take(",")) values.push(binary(0));
    expect(")");
    const most = name === "min" || name === "max" ? Infinity : 1;
    if (values.length > most) throw wrong(`${name} takes one value`);
    return (names) => FUNCTIONS[name]!(...values.map((value) => value(names)));
  };

  const value = binary(0);
  if (at < tokens.length) throw wrong(`expected its end, found ${tokens[at]}`);
  return value;
}

function tokensOf(text: string, wrong: (what: string) => Error): string[] {
  const tokens: string[] = [];
  const token = new RegExp(TOKEN);
  for (let from = 0; text.slice(from).trim() !== ""; from = token.lastIndex) {
    token.lastIndex = from;
    const found = token.exec(text);
    if (found === null) throw wrong(`it has ${text.slice(from).trim()[0]}`);
    tokens.push(found[1]!);
  }
  return tokens;
}
