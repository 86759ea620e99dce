import assert from "#assert";
import { parseSuite } from "./suite.ts";
import { readSuite } from "./suite_files.ts";

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
  assert.throws(
    () => parseSuite("--op=fwd", "s.txt"),
    /the option --op is not part of a suite/,
  );
});

Deno.test("the suites in bench/suites are well formed", async () => {
  const folder = new URL("../../bench/suites/", import.meta.url);
  const counts: Record<string, number> = {};
  for (const name of ["resnet3x3", "vgg16", "im2win12", "winrs_bfc", "networks"]) {
    const text = await Deno.readTextFile(new URL(`${name}.txt`, folder));
    counts[name] = parseSuite(text, name).length;
  }
  assert.deepEqual(counts, { resnet3x3: 16, vgg16: 9, im2win12: 12, winrs_bfc: 25, networks: 69 });
});

/** Files that include each other by name. */
function suiteOf(files: Readonly<Record<string, string>>, op: "fwd" | "bwd-data" = "fwd") {
  return parseSuite(files["main"]!, "main", op, (path) => ({ source: path, text: files[path]! }));
}

Deno.test("parseSuite() reads nested files, several words a line, and goes on in the next", () => {
  const files = {
    main: '--batch=nets # both\nmb4ic1ih3oc1kh3n"last"',
    nets: "--batch=a --batch=b",
    a: 'ic1,2ih4oc1kh3n"a one*2"  mb8ic3ih4oc1kh3\n',
    b: "ic4ih5\\\n  oc1:3:2kh3 \\\n_ph1",
  };
  assert.deepEqual(
    suiteOf(files, "bwd-data").map((problem) =>
      `${problem.op} ${problem.batch} ${problem.inChannels} ${problem.outChannels} ${problem.name}`
    ),
    [
      "bwd-data 2 1 1 a one*2",
      "bwd-data 2 2 1 a one*2",
      "bwd-data 8 3 1 undefined",
      "bwd-data 2 4 1 undefined",
      "bwd-data 2 4 3 undefined",
      "bwd-data 4 1 1 last",
    ],
  );
});

Deno.test("parseSuite() applies --mb, --match and --reset, which end with their file", () => {
  const files = {
    main: "--mb=7 --batch=a ic5ih4oc1kh3 --match=ic[12] ic1,5ih4oc1kh3 --reset ic9ih4oc1kh3",
    a: "--match='.*kh3[^0-9].*' ic1ih4oc1kh1 ic1ih4oc1kh3ph1",
  };
  assert.deepEqual(
    suiteOf(files).map(({ batch, inChannels, filterSize }) => [batch, inChannels, filterSize[0]]),
    [[7, 1, 3], [7, 5, 3], [7, 1, 3], [2, 9, 3]],
  );
});

Deno.test("parseSuite() refuses what is no suite: the file and line it stands in, column, caret", () => {
  const message = (files: Readonly<Record<string, string>>) => {
    try {
      suiteOf(files);
    } catch (error) {
      if (error instanceof SyntaxError) return error.message;
    }
    return "no SyntaxError";
  };
  assert.equal(
    message({ main: "\n --batch=a", a: "# nothing\nic1ih4oc1kh3  ic1hi4" }),
    'a:2: Cannot parse problem: unknown key "hi", did you mean "ih"?, at column 18\n' +
      "  ic1ih4oc1kh3  ic1hi4\n                   ^",
  );
  assert.equal(
    message({ main: "--batch=a", a: "--batch=b", b: "\n\n--batch=a" }),
    "b:3: Cannot read the suite: the files include each other: main, a, b, a, at column 1\n" +
      "  --batch=a\n  ^",
  );
  assert.match(message({ main: "--bacth=a" }), /^main:1: .*--bacth is not part .*mean --batch\?/);
  assert.match(message({ main: "  --mb=x" }), /expected --mb=N, a whole number, at column 3/);
  assert.match(
    message({ main: "--match=(" }),
    /--match: expected a regular expression .*, at column 1/,
  );
  assert.match(message({ main: "ic1:99999oc1:99999ih3kh3" }), /make 9999800001 problems, 100000/);
});

Deno.test("parseSuite() refuses files that multiply, too many problems, and endless lines", () => {
  const twice = Object.fromEntries(
    Array.from({ length: 30 }, (_, i) => [`f${i}`, `--batch=f${i + 1}\n--batch=f${i + 1}`]),
  );
  const refusals: [files: Readonly<Record<string, string>>, message: RegExp][] = [
    [
      { main: "--batch=f0", ...twice, f30: "ic1ih4oc1kh3" },
      /^f\d+:\d: .* more than 1000 files are included/,
    ],
    [
      { main: "ic1:60000ih9oc1kh3\nic1:60000ih9oc1kh3" },
      /^main:2: .* there are more than 100000 problems/,
    ],
    [
      { main: `ic1ih4oc1kh3\n${"a".repeat(2 ** 22)}` },
      /^main:2: .* the line has more than 100000 characters$/,
    ],
  ];
  for (const [files, message] of refusals) {
    assert.throws(() => suiteOf(files), { name: "SyntaxError", message });
  }
});

Deno.test("readSuite() finds files beside the one that includes them", async () => {
  const folder = await Deno.makeTempDir({ prefix: "wgconv-test-" });
  await Deno.mkdir(`${folder}/inner`);
  await Deno.writeTextFile(`${folder}/a`, "--batch=inner/b");
  await Deno.writeTextFile(`${folder}/inner/b`, "--batch=c\nic1ih4oc1kh3");
  await Deno.writeTextFile(`${folder}/inner/c`, "ic2ih4oc1kh3");
  assert.deepEqual(readSuite(`${folder}/a`).map(({ inChannels }) => inChannels), [2, 1]);
  await Deno.writeTextFile(`${folder}/inner/c`, "--batch=none");
  assert.throws(() => readSuite(`${folder}/a`), {
    name: "NotFound",
    message: new RegExp("inner/c:1: Cannot read .*inner/none: there is no such file$"),
  });
  await Deno.remove(folder, { recursive: true });
});
