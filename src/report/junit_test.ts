import assert from "#assert";
import { escapeXml, junitXml } from "./junit.ts";

Deno.test("junitXml() counts what failed and nests what is said of it", () => {
  const xml = junitXml("wgconv check", [
    { group: "fwd.direct", name: 'mb1 n"a"', seconds: 0.25 },
    {
      group: "fwd.direct",
      name: "b",
      seconds: 0.5,
      problem: { kind: "failure", message: "1 < 2", text: "more\nlines" },
    },
    { group: "x", name: "c", seconds: 0, problem: { kind: "error", message: "lost" } },
    { group: "x", name: "d", seconds: 0, problem: { kind: "skipped", message: "no" } },
  ]);
  assert.equal(
    xml,
    `<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="4" failures="1" errors="1" time="0.750">
  <testsuite name="wgconv check" tests="4" failures="1" errors="1" skipped="1" time="0.750">
    <testcase classname="fwd.direct" name="mb1 n&quot;a&quot;" time="0.250"/>
    <testcase classname="fwd.direct" name="b" time="0.500">
      <failure message="1 &lt; 2">more&#10;lines</failure>
    </testcase>
    <testcase classname="x" name="c" time="0.000">
      <error message="lost"/>
    </testcase>
    <testcase classname="x" name="d" time="0.000">
      <skipped message="no"/>
    </testcase>
  </testsuite>
</testsuites>
`,
  );
});

Deno.test("escapeXml() keeps out what XML cannot have", () => {
  assert.equal(escapeXml(`a&b<c>'d'"e"`), "a&amp;b&lt;c&gt;&apos;d&apos;&quot;e&quot;");
  assert.equal(escapeXml("\u0000\u001b[1m\uffff\ud800\t\n"), "??[1m?\ufffd&#9;&#10;");
  assert.equal(escapeXml("ü∇😀"), "ü∇😀");
});
