import assert from "#assert";
import { compilePattern } from "./pattern.ts";
import { parseSuite } from "./suite.ts";

/** Expressions that JavaScript's own engine tries in a number of ways that doubles with each letter. */
const CATASTROPHIC = ["(a+)+$", "(a|a)+$", "(a*)*b", "(.*a){12}$", "^(([a-z])+.)+[A-Z]([a-z])+$"];
const LONG = "a".repeat(20_000);

Deno.test("compilePattern() matches any expression in time that grows with the text", () => {
  for (const text of CATASTROPHIC) {
    const start = performance.now();
    assert.equal(compilePattern(text).test(`${LONG}!`), false, text);
    assert.ok(performance.now() - start < 5000, text);
  }
});

Deno.test("--match of a suite is bounded as well", () => {
  const name = `n"${LONG}!b"`;
  const kept = CATASTROPHIC.map((text) =>
    parseSuite(`--match=${text}x mb1ic1ih3oc1kh3${name}`, "s")
  );
  assert.deepEqual(kept.flat(), []);
});

Deno.test("compilePattern() reads what names are chosen by", () => {
  const found: [pattern: string, text: string, matches: boolean][] = [
    ["(odd_channels|groups_4)", 'mb1ic4ih8oc4kh3n"groups_4"', true],
    ['n"(normal_3x3|filter_5x5)"$', 'mb1n"filter_5x5b"', false],
    [".*kh3[^0-9].*", "ic1ih4oc1kh3ph1", true],
    ["ic\\d+\\b", "xic4", true],
    ["(?i)n64", "Conv2N64", true],
    ["N64", "Conv2n64", false],
    ["", "anything", true],
  ];
  for (const [pattern, text, matches] of found) {
    assert.equal(compilePattern(pattern).test(text), matches, pattern);
  }
  assert.equal(`${compilePattern("a|b")}`, "/a|b/");
});

Deno.test("compilePattern() says what is wrong, and what RE2 does not have", () => {
  const wrong: [pattern: string, reason: RegExp][] = [
    ["(", /^expected a regular expression \(RE2.*\): missing closing \): `\(`$/],
    ["oc(?!64)", /no lookaround.*: invalid or unsupported Perl syntax: `\(\?!`$/],
    ["(a)\\1", /no backreferences.*: invalid escape sequence: `\\1`$/],
    ["(a{1000}){1000}", /invalid repeat count/],
  ];
  for (const [pattern, message] of wrong) {
    assert.throws(() => compilePattern(pattern), { name: "SyntaxError", message });
  }
});
