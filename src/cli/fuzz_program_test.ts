import assert from "#assert";
import { wordsOf } from "./fuzz_program.ts";

Deno.test("wordsOf() keeps the backslashes of Windows' paths, and spaces within quotes", () => {
  const command = String.raw`C:\tools\conv.exe "C:\my data\{input}" 'D:\a b' {output}`;
  const words = [String.raw`C:\tools\conv.exe`, String.raw`C:\my data\{input}`, String.raw`D:\a b`];
  assert.deepEqual(wordsOf(command, true), [...words, "{output}"]);
  assert.deepEqual(wordsOf(String.raw`./my\ conv "a b" {output}`, false), [
    "./my conv",
    "a b",
    "{output}",
  ]);
  assert.throws(() => wordsOf(String.raw`"C:\my data\a {output}`, true), /is not closed$/);
});
