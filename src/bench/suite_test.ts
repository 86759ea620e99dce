import assert from "#assert";
import { parseSuite } from "./suite.ts";

Deno.test("parseSuite() skips comments and blank lines, and expands lists", () => {
  const text = '# layers\n\nmb1ic2ih4oc2kh3n"a#1" # first\r\nmb1ic2,4ih4oc2kh3\n';
  const problems = parseSuite(text, "s.txt");
  assert.deepEqual(problems.map((problem) => problem.inChannels), [2, 2, 4]);
  assert.equal(problems[0]!.name, "a#1");
});

Deno.test("parseSuite() names file and line, and shows a caret", () => {
  assert.throws(() => parseSuite("# x\nic2hi4oc2kh3", "dir/s.txt"), {
    name: "SyntaxError",
    message: 'dir/s.txt:2: Cannot parse problem: unknown key "hi", did you mean "ih"?, ' +
      "at column 4\n  ic2hi4oc2kh3\n     ^",
  });
  assert.throws(() => parseSuite("ic2ih1oc2kh3", "s.txt"), {
    name: "RangeError",
    message: /^s\.txt:1: Cannot convolve/,
  });
  assert.throws(() => parseSuite("--dir=FWD_B", "s.txt"), /options are not part of a suite/);
});

Deno.test("the suites in bench/suites are well formed", async () => {
  const folder = new URL("../../bench/suites/", import.meta.url);
  const counts: Record<string, number> = {};
  for (const name of ["resnet3x3", "vgg16", "im2win12", "winrs_bfc"]) {
    const text = await Deno.readTextFile(new URL(`${name}.txt`, folder));
    counts[name] = parseSuite(text, name).length;
  }
  assert.deepEqual(counts, { resnet3x3: 16, vgg16: 9, im2win12: 12, winrs_bfc: 25 });
});
