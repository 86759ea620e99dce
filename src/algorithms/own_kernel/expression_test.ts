import assert from "#assert";
import fc from "fast-check";
import { parseExpression } from "./expression.ts";

const NAMES = { oh: 7, ow: 9, ic: 64, g: 2 };
const value = (text: string | number) => parseExpression(text, Object.keys(NAMES))(NAMES);

Deno.test("expressions have JavaScript's order of operators, without rounding", () => {
  assert.equal(value("ceil(oh*ow/64)"), 1);
  assert.equal(value("oh*ow/64"), 63 / 64);
  assert.equal(value(16), 16);
  assert.equal(value("-oh + 2 * (3 - 1) % 3"), -6);
  assert.equal(value("min(oh, ow, 3) + max(oh,ow)"), 12);
  assert.equal(value("8 - 4 - 2"), 2);
  assert.equal(value("floor(ic / g / 5)"), 6);
  assert.equal(value("g == 2 && ic % 4 == 0 || oh < 0"), 1);
  assert.equal(value("oh >= ow"), 0);
  assert.equal(value("1 / 0"), Infinity);
});

Deno.test("what is no expression is refused with the place", () => {
  const refused = (text: string, pattern: RegExp) =>
    assert.throws(() => value(text), { name: "SyntaxError", message: pattern }, text);
  refused("", /expected a number or a name, found its end/);
  refused("oh *", /found its end/);
  refused("(oh", /expected \), found its end/);
  refused("oh oh", /expected its end, found oh/);
  refused("iw", /there is no iw, only oh ow ic g ceil floor min max/);
  refused("constructor", /there is no constructor/);
  refused("ceil(1, 2)", /ceil takes one value/);
  refused("2 $ 3", /it has \$/);
  refused("oh = 3", /it has =/);
  refused("(".repeat(501), /longer than 500 characters/);
  refused("(".repeat(500), /found its end/);
  refused("1e5", /expected its end, found e5/);
});

/** Texts of expressions, with full parentheses, and their values. */
const expressions = fc.letrec<{ any: [string, number] }>((tie) => ({
  any: fc.oneof(
    { depthSize: "small" },
    fc.nat(99).map((n): [string, number] => [`${n}`, n]),
    fc.constantFrom(...Object.entries(NAMES)),
    fc.tuple(tie("any"), fc.constantFrom("+", "-", "*", "<", "=="), tie("any")).map(
      ([[a, x], operator, [b, y]]): [string, number] => [
        `(${a} ${operator}${b})`,
        {
          "+": x + y,
          "-": x - y,
          "*": x * y,
          "<": Number(x < y),
          "==": Number(x === y),
        }[operator]!,
      ],
    ),
  ),
})).any;

Deno.test("every expression has its value, and no text does worse than a SyntaxError", () => {
  fc.assert(fc.property(expressions, ([text, expected]) => {
    if (text.length <= 500) assert.equal(value(text), expected);
  }));
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(..."oh1+-*/%(),<=>&| ceilmax") }), (text) => {
      try {
        assert.equal(typeof value(text), "number");
      } catch (error) {
        assert.equal((error as Error).name, "SyntaxError");
      }
    }),
  );
});
