import assert from "#assert";
import fc from "fast-check";
import { MAX_MESSAGE, printable, printableCell, printableMessage } from "./printable.ts";
import { harmful } from "../tests/support/harmful.ts";

Deno.test("printable() escapes what moves the cursor or turns text, and JSON stays what it was", () => {
  const value = { name: "\x1b[2J\x9b31m\u202egpj.exe\x7f\u2028", count: 1 };
  const text = printable(JSON.stringify(value));
  assert(harmful(text) === undefined);
  assert.deepEqual(JSON.parse(text), value);
  assert.equal(printable("größer → 3 µs\n\tx"), "größer → 3 µs\n\tx");
});

Deno.test("printableCell() is one line of a length that tables show", () => {
  assert.equal(printableCell("a\nb\tc"), "a\\u000ab\\u0009c");
  const long = printableCell(`${"a".repeat(500)}z`);
  assert.deepEqual([long.length, long[0], long[100], long.at(-1)], [200, "a", "…", "z"]);
});

Deno.test("printableMessage() keeps the sentence and shortens long names in it", () => {
  const sentence = "Cannot read x.npy: byte 0: expected the magic";
  assert.equal(printableMessage(sentence), sentence);
  const name = "n".repeat(1000);
  const said = printableMessage(`Cannot read ${name}: byte 0: expected the magic`);
  assert.match(said, /^Cannot read n{60}…n+: byte 0: expected the magic$/);
  const many = printableMessage(Array.from({ length: 500 }, (_, i) => `x${i}`).join(", "));
  assert.equal(many.length, MAX_MESSAGE);
});

Deno.test("printableMessage() keeps a caret under what it points at", () => {
  const shown = `${"a".repeat(500)}!${"b".repeat(500)}`;
  const [sentence, line, caret] = printableMessage(
    `wgconv: s.txt:3: Cannot parse problem: unexpected "!"\n  ${shown}\n  ${" ".repeat(500)}^`,
  ).split("\n");
  assert.equal(sentence, 'wgconv: s.txt:3: Cannot parse problem: unexpected "!"');
  assert.equal(line![caret!.indexOf("^")], "!");
  const plain = "Cannot parse problem: x, at column 2\n  a!b\n   ^";
  assert.equal(printableMessage(plain), plain);
});

Deno.test("printableMessage() of any text is short and harmless", () => {
  const piece = fc.oneof(
    fc.string({ unit: "binary", maxLength: 400 }),
    fc.string({ maxLength: 400 }),
    fc.constantFrom("\n  ", "^", "\x1b[2J", " ".repeat(50), "\n"),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const message = printableMessage(pieces.join(""));
      assert(message.length <= MAX_MESSAGE, `${message.length}`);
      assert(harmful(message) === undefined);
      assert(message.split("\n").length <= 3);
    }),
    { numRuns: 2000, seed: 1 },
  );
});
