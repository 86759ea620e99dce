import assert from "#assert";
import { ROOT, temporaryDirectory, wgconv } from "./cli.ts";
import { pythonWith } from "./python.ts";

const python = await pythonWith("numpy");
const NUMPY = `${python} '${ROOT}examples/workers/numpy_worker.py'`;
const NO_NUMPY = python === undefined;
const REFERENCE = `'${Deno.execPath()}' run -A --no-check --cached-only ` +
  `'${ROOT}tests/support/reference_worker.ts'`;

Deno.test("verify --worker passes a right worker on every kind of data, and records each case", async () => {
  using temporary = temporaryDirectory();
  const { path } = temporary;
  const outputs = ["--jsonl", `${path}/cases.jsonl`, "--junit", `${path}/cases.xml`];
  const args = ["--worker", REFERENCE, "--op", "fwd", "--random", "40", "--ranges", "bias=0"];
  const named = ["--activation", "none", "--provider", "reference"];
  const { code, stdout, stderr } = await wgconv(["verify", ...args, ...named, ...outputs]);
  assert.equal(code, 0, stdout + stderr);
  assert.match(stdout, /^40 cases of reference: 40 passed$/m);
  const lines = (await Deno.readTextFile(`${path}/cases.jsonl`)).trim().split("\n");
  const cases = lines.map((line) => JSON.parse(line)).filter(({ kind }) => kind === "case");
  assert.equal(cases.length, 40);
  assert.ok(cases.every(({ provider, verdict }) => provider === "reference" && verdict === "pass"));
  assert.equal(new Set(cases.map(({ fill }) => fill)).size, 8);
  assert.match(await Deno.readTextFile(`${path}/cases.xml`), /tests="40"/);
  // What a worker does not support is no failure, and nothing checked is no success.
  const none = await wgconv(["verify", ...args.with(3, "bwd-data"), ...named]);
  assert.equal(none.code, 2, none.stdout);
  assert.match(none.stdout, /^40 cases of reference: 40 not checked$/m);
});

Deno.test("verify --worker finds a fault, names it, and prints a line that repeats it", async () => {
  const problem = ["--problem", "mb2ic4ih9oc6kh3ph1", "--data", "normal"];
  const { code, stdout } = await wgconv(["verify", "--worker", `${REFERENCE} --fault`, ...problem]);
  assert.equal(code, 1, stdout);
  assert.match(stdout, /filter flipped/);
  assert.match(stdout, /^ {2}repeat: wgconv verify --worker .* --problem mb2ic4ih9oc6/m);
});

Deno.test({
  name: "examples/workers/numpy_worker.py is right, and wrong where it is told to be",
  ignore: NO_NUMPY,
  fn: async () => {
    const right = await wgconv(["verify", "--worker", NUMPY, "--random", "100", "--seed", "1"]);
    assert.equal(right.code, 0, right.stdout + right.stderr);
    const products = await wgconv(["verify", "gemm", "--worker", NUMPY, "--random", "10"]);
    assert.equal(products.code, 0, products.stdout + products.stderr);
    const problem = ["--problem", "mb2ic4ih9oc6kh3ph1", "--data", "normal"];
    for (
      const [fault, said] of [["flipped", /filter flipped/], [
        "last image stale",
        /in image 1/,
      ]] as const
    ) {
      const { code, stdout } = await wgconv([
        "verify",
        "--worker",
        `${NUMPY} --fault '${fault}'`,
        ...problem,
      ]);
      assert.equal(code, 1, stdout);
      assert.match(stdout, said);
    }
  },
});

Deno.test("programs that fail, hang, write nothing or write rubbish are verdicts of their cases", async () => {
  const verify = (...args: string[]) =>
    wgconv([
      "verify",
      ...args,
      "--problem",
      "mb1ic1ih3oc1kh3",
      "--data",
      "normal",
      "--timeout",
      "1",
    ]);
  const files = "{input} {filter} {output}";
  for (
    const args of [
      ["--run", `false ${files}`],
      ["--run", `true ${files}`],
      ["--run", `sh -c 'sleep 30' ${files}`],
      ["--run", `sh -c 'echo rubbish > "$2"' ${files}`],
      ["--worker", "false"],
      ["--worker", "cat"],
      ["--worker", "yes"],
      ["--worker", "sleep 30"],
    ]
  ) {
    const { code, stdout, stderr } = await verify(...args);
    assert.equal(code, 1, `${args}: ${stdout}${stderr}`);
    assert.match(stdout, /1 gave no result$/m, `${args}`);
  }
  const none = await verify("--worker", "there-is-no-such-program");
  assert.deepEqual([none.code, none.stdout], [2, ""]);
  assert.match(none.stderr, /^wgconv: Cannot verify: [^\n]+\n$/);
});
