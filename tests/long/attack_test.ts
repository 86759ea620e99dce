/** That attacks find what is wrong: faults planted where cases hold. */
import assert from "#assert";
import { convProblem } from "../../src/problem/conv_problem.ts";
import { NO_EPILOGUE } from "../../src/problem/epilogue.ts";
import { gemmProblem } from "../../src/problem/gemm_problem.ts";
import { deno } from "../cli.ts";
import { type Attack, Finding, messageFault, textFault } from "../attack/attack.ts";
import { Draw } from "../attack/draw.ts";
import { holdEnded } from "../attack/in_process.ts";
import { mutateBytes } from "../attack/mutate.ts";
import { plainActivation, plainConv, plainGemm } from "../support/plain_reference.ts";
import { type Found, runAttack } from "../attack/run.ts";

Deno.test("a case that finds something, dies, hangs or takes memory is told by its number, and the next ones run", async () => {
  const planted: Attack = {
    kind: "planted",
    limit: 15,
    weight: 1,
    open: () =>
      Promise.resolve({
        describe: (number) => `case ${number}`,
        run: () => Promise.reject(new Error("it runs in its worker")),
        [Symbol.asyncDispose]: () => Promise.resolve(),
      }),
  };
  const found: Found[] = [];
  const { cases, outcomes } = await runAttack(planted, {
    seed: 1,
    from: 0,
    count: 7,
    deadline: Infinity,
    mostMemory: 2 ** 30,
    worker: new URL("../attack/planted_worker.ts", import.meta.url),
  }, (one) => found.push(one));
  assert.equal(cases, 7);
  assert.deepEqual([...outcomes], [["held", 3]]);
  assert.deepEqual(found.map(({ number, input }) => [number, input]), [
    [1, "one"],
    [2, "case 2"],
    [3, "case 3"],
    [4, "case 4"],
  ]);
  const [one, died, hung, grew] = found.map(({ what }) => what);
  assert.equal(one, "planted");
  assert.match(died!, /^the process ended with 7/);
  assert.equal(hung, "the case took longer than 15 s");
  assert.match(grew!, /^the process took \d\.\d GiB of memory$/);
});

Deno.test("control characters, the engine's words and long messages are faults of a text", () => {
  assert.equal(textFault("x.npy: f32 [1, 3]\n\tnachw: ä ö 日本 🦕\n"), undefined);
  for (const bad of ["\u001b[2J", "a\rb", "\u009b", "\u202e", "\u0000"]) {
    assert.match(textFault(`a ${bad}`)!, /^the control character U\+/);
  }
  const engine = [
    "Cannot read properties of undefined (reading 'x')",
    "x.map is not a function",
    "undefined is not iterable",
    "Cannot convert undefined or null to object",
    "Error: x\n    at main (file:///main.ts:1:1)",
  ];
  for (const bad of engine) assert.match(textFault(bad)!, /^the engine's own words/);
  assert.equal(messageFault("Cannot convert x.npy: no"), undefined);
  assert.match(messageFault("x".repeat(301))!, /301 characters/);
});

Deno.test("ends that no command may have are findings", () => {
  const ended = (code: number, stderr = "wgconv: Cannot read x: no\n", stdout = "") => () =>
    holdEnded({ code, stdout, stderr }, { args: ["conv"] });
  assert.equal(ended(2)(), "exit 2");
  assert.equal(ended(0, "")(), "exit 0");
  const bad = [
    ended(6),
    ended(1),
    ended(5),
    ended(2, ""),
    ended(2, "wgconv: \u001b[2J\n"),
    ended(2, `wgconv: ${"x".repeat(400)}\n`),
    ended(0, "", "\u001b[2J"),
    ended(2, 'wgconv: Requires write access to "/etc/x"\n'),
  ];
  for (const one of bad) assert.throws(one, Finding);
});

Deno.test("a case is made of its seed, kind and number alone", () => {
  const words = (seed: number, kind: string, number: number) => {
    const draw = new Draw(seed, kind, number);
    return draw.times(4, () => draw.word()).join();
  };
  assert.equal(words(1, "files", 2), words(1, "files", 2));
  const others = [words(2, "files", 2), words(1, "records", 2), words(1, "files", 3)];
  assert.equal(new Set([words(1, "files", 2), ...others]).size, 4);
  const bytes = Uint8Array.from({ length: 300 }, (_, i) => i);
  const mutants = Array.from(
    { length: 200 },
    (_, number) => mutateBytes(new Draw(1, "files", number), bytes, bytes).join(),
  );
  assert(new Set(mutants).size > 150);
  assert.equal(bytes[7], 7);
});

Deno.test("plain loops give what is worked out by hand", () => {
  const problem = convProblem({
    batch: 1,
    inChannels: 2,
    outChannels: 2,
    groups: 2,
    inputSize: [3],
    filterSize: [2],
    stride: [2],
    paddingBegin: [1],
    paddingEnd: [0],
  });
  // Channels [1 2 3] and [4 5 6], filters [1 10] and [2 20], places -1 and 1.
  const input = [1, 2, 3, 4, 5, 6], filter = [1, 10, 2, 20];
  const operands = { input, filter, bias: [0.5, -500] };
  const epilogue = { bias: true, activation: "relu" } as const;
  const plain = plainConv(problem, operands, "nchw", "kcrs", epilogue);
  assert.deepEqual([...plain.values], [10.5, 32.5, 0, 0]);
  const transposed = { input: [1, 4, 2, 5, 3, 6], filter: [1, 10, 2, 20] };
  const inner = plainConv(problem, transposed, "nhwc", "krsc", NO_EPILOGUE);
  assert.deepEqual([...inner.values], [10, 32, 80, 130]);
  const output = [1, 2, 3, 4];
  const data = plainConv(
    { ...problem, op: "bwd-data" },
    { output, filter },
    "nchw",
    "kcrs",
    NO_EPILOGUE,
  );
  assert.deepEqual([...data.values], [10, 2, 20, 60, 8, 80]);
  const weights = plainConv(
    { ...problem, op: "bwd-filter" },
    { output, input },
    "nchw",
    "kcrs",
    NO_EPILOGUE,
  );
  assert.deepEqual([...weights.values], [4, 7, 20, 36]);
  assert.deepEqual([...weights.reach!], [Math.sqrt(14 * 5), Math.sqrt(77 * 25)]);
  const product = gemmProblem({
    m: 1,
    n: 2,
    k: 2,
    transpose: "nt",
    alpha: 2,
    beta: 1,
    bias: "column",
  });
  const { values } = plainGemm(product, { a: [1, 2], b: [3, 4, 5, 6], c: [1, 1], bias: [10, 20] });
  assert.deepEqual([...values], [33, 55]);
  // Φ(1) of any table.
  assert(Math.abs(plainActivation("gelu", 1) - 0.8413447460685429) < 1e-12);
});

Deno.test("the task prints its seed and counts, and refuses a kind that is none", async () => {
  const task = new URL("../../tasks/attack.ts", import.meta.url).href;
  const run = (...args: string[]) => deno(["run", "-A", task, ...args]);
  const { stdout } = await run("--only", "files", "--seed", "7", "--count", "40");
  assert.match(stdout, /^attacking with seed 7\n/);
  assert.match(stdout, /^files: 40 cases, \d+ found \(.*\)$/m);
  const { code, stderr } = await run("--only", "nothing");
  assert.equal(code, 1);
  assert.match(stderr, /there is no kind nothing, only files, command-lines/);
});
