import assert from "#assert";
import * as v from "valibot";
import { parseJson, schemaFault } from "./json.ts";

const fault = (text: string) => {
  try {
    return parseJson(text, (what, line) => new Error(`${line}: ${what}`));
  } catch (error) {
    return (error as Error).message;
  }
};

Deno.test("parseJson() says in which line a text is no JSON, and what number JSON lacks", () => {
  assert.deepEqual(fault('{"a":\n[1]}'), { a: [1] });
  assert.equal(fault(""), "1: ends in the middle");
  assert.equal(fault('{"a":\n{"b":1}\n'), "2: ends in the middle");
  assert.equal(fault('{"a": tr'), "1: ends in the middle");
  assert.equal(
    fault('{"NaN":\n1,\n"b":-Infinity}'),
    "3: has -Infinity, which JSON lacks",
  );
  assert.equal(fault('["NaN",\n"\\"NaN",\nx]'), "3: is no JSON");
  assert.equal(fault("{a:1}"), "1: is no JSON");
  assert.equal(fault(`[${"1,\n".repeat(1000)}'x'\n]`), "1001: is no JSON");
});

Deno.test("schemaFault() says in words what is not as a schema has it", () => {
  const schema = v.strictObject({
    count: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1))),
    size: v.optional(v.pipe(v.number(), v.maxValue(Number.MAX_VALUE))),
    kind: v.optional(v.picklist(["a", "b", "c"])),
    value: v.optional(v.union([v.string(), v.number()])),
    list: v.optional(v.pipe(v.array(v.strictObject({ x: v.boolean() })), v.minLength(1))),
  });
  const said = (value: unknown) =>
    schemaFault(v.safeParse(schema, value).issues![0], "the text").what;
  assert.equal(said(3), "the text is 3, expected an object");
  assert.equal(said({ count: 1.5 }), "count is 1.5, expected a whole number");
  assert.equal(said({ count: 0 }), "count is 0, expected at least 1");
  assert.equal(said({ size: Infinity }), "size is Infinity, expected a finite number");
  assert.equal(said({ kind: "d" }), 'kind is "d", expected "a", "b" or "c"');
  assert.equal(said({ value: [] }), "value is a list, expected a text or a number");
  assert.equal(said({ list: [] }), "list has 0 entries, expected at least 1");
  assert.equal(said({ list: [{}] }), "list.0.x is missing");
  assert.equal(said({ list: [{ x: 0 }] }), "list.0.x is 0, expected true or false");
  assert.equal(said({ lists: 1 }), "lists is unknown");
});
