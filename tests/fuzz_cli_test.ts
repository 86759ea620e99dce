import assert from "#assert";
import { ROOT, temporaryDirectory, wgconv } from "./cli.ts";
import { pythonWith } from "./python.ts";

const python = await pythonWith("numpy");
const NUMPY = `${python} '${ROOT}examples/workers/numpy_worker.py'`;
const NO_NUMPY = python === undefined;

Deno.test({
  name: "verify --worker passes a right worker on every kind of data, and records each case",
  ignore: NO_NUMPY,
  fn: async () => {
    using temporary = temporaryDirectory();
    const { path } = temporary;
    const outputs = ["--jsonl", `${path}/cases.jsonl`, "--junit", `${path}/cases.xml`];
    const args = ["--worker", NUMPY, "--random", "100", "--seed", "1", "--provider", "numpy"];
    const { code, stdout, stderr } = await wgconv(["verify", ...args, ...outputs]);
    assert.equal(code, 0, stdout + stderr);
    assert.match(stdout, /^100 cases of numpy: 100 passed$/m);
    const lines = (await Deno.readTextFile(`${path}/cases.jsonl`)).trim().split("\n");
    const cases = lines.map((line) => JSON.parse(line)).filter(({ kind }) => kind === "case");
    assert.equal(cases.length, 100);
    assert.ok(cases.every(({ provider, verdict }) => provider === "numpy" && verdict === "pass"));
    assert.match(await Deno.readTextFile(`${path}/cases.xml`), /tests="100"/);
    const products = await wgconv(["verify", "gemm", "--worker", NUMPY, "--random", "10"]);
    assert.equal(products.code, 0, products.stdout + products.stderr);
  },
});

Deno.test({
  name: "verify --worker finds planted faults, and prints lines that repeat them",
  ignore: NO_NUMPY,
  fn: async () => {
    const problem = ["--problem", "mb2ic4ih9oc6kh3ph1", "--data", "normal"];
    for (const [fault, said] of [["flipped", /filter flipped/], ["stale", /wrong/]] as const) {
      const worker = ["--worker", `${NUMPY} --fault ${fault}`];
      const { code, stdout } = await wgconv(["verify", ...worker, ...problem]);
      assert.equal(code, 1, stdout);
      assert.match(stdout, said);
      assert.match(stdout, /^ {2}repeat: wgconv verify --worker /m);
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
