import assert from "#assert";
import { sparkline } from "./history.ts";

const draw = (values: number[], places = values.length, label = "time") =>
  sparkline(values.map((value, at) => ({ at, value })), { places, least: 2, label });

Deno.test("sparkline() draws larger values higher, and one value as a dot", () => {
  assert.match(draw([1, 100, 1]), /points="4,24 80,4 156,24"/);
  assert.match(draw([3, 3]), /points="4,14 156,14"/);
  assert.match(draw([3]), /<circle cx="80" cy="14"/);
  assert.equal(draw([]), "-");
});

Deno.test("sparkline() has no more points than it is wide, and escapes its label", () => {
  const svg = draw(Array.from({ length: 5000 }, (_, i) => 1 + i % 7), 5000, '<"&');
  assert.equal(/points="([^"]*)"/.exec(svg)![1]!.split(" ").length, 153);
  assert.ok(svg.includes('aria-label="&lt;&quot;&amp;"'));
});
