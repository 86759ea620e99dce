/** The peers' scripts in `bench/peers`: they read our suites, and `report` and `compare` read their records. */
import assert from "#assert";
import { readSuite } from "../../src/bench/suite_files.ts";
import { gemmFlops } from "../../src/problem/gemm_problem.ts";
import { directFlops } from "../../src/problem/conv_problem.ts";
import { parseDescriptor, printDescriptor } from "../../src/problem/descriptor.ts";
import { parseGemm, parseGemmSuite, printGemm } from "../../src/problem/gemm_suite.ts";
import { parseRecords } from "../../src/report/read_records.ts";
import { ROOT, run, temporaryDirectory } from "../cli.ts";
import { pythonWith } from "../python.ts";
import { succeeds, wgconvHere } from "../support/in_process.ts";

const PEERS = `${ROOT}bench/peers`;

/** Lists, ranges, included files, comments, copied axes, asymmetric and derived padding. */
const CORNERS = `--batch=inner.txt # another file
--mb=3 mb1ic4,8iw9:11:2oc6kw3_g2n"a name # with *"*7 --reset
mb1ic3ih8iw9oc4oh7kh3ow4sw2nplain ic2id4ih5iw6kd2\\
kh3kw1 \\
oc3 ic1iw7kw2dw1ow9oc1ph1ih5kh2
`;

Deno.test("bench/peers reads suites as wgconv does, where there is Python", async () => {
  const python = await pythonWith("json");
  if (python === undefined) return console.log("left out: there is no Python");
  using temporary = temporaryDirectory();
  const corners = `${temporary.path}/corners.txt`;
  await Deno.writeTextFile(corners, CORNERS);
  await Deno.writeTextFile(`${temporary.path}/inner.txt`, "mb5ic2ih4oc2kh3ph1\n");
  const suites = [...Deno.readDirSync(`${ROOT}bench/suites`)].map(({ name }) => name).sort();
  const read = async (kind: string, path: string) => {
    const { code, stdout, stderr } = await run(python, [`${PEERS}/suite.py`, kind, path]);
    assert.equal(code, 0, stderr);
    return stdout.split("\n").filter(Boolean).map((line) =>
      JSON.parse(line) as { problem: string; flops: number }
    );
  };
  for (const path of [corners, ...suites.map((name) => `${ROOT}bench/suites/${name}`)]) {
    if (path.includes("gemm")) {
      const found = await read("gemm", path);
      const wanted = parseGemmSuite(await Deno.readTextFile(path), path);
      assert.deepEqual(
        found.map(({ problem }) => printGemm(parseGemm(problem))),
        wanted.map(printGemm),
      );
      assert.deepEqual(
        found.map(({ flops }) => flops),
        wanted.map((product) => gemmFlops(product)),
      );
    } else {
      const found = await read("conv", path);
      const products: string[] = [];
      const wanted = readSuite(path, { onProduct: (one) => products.push(printGemm(one)) });
      const others = await read("gemm", path);
      assert.deepEqual(others.map(({ problem }) => printGemm(parseGemm(problem))), products);
      const said = found.map(({ problem }) => printDescriptor(parseDescriptor(problem)));
      assert.deepEqual(said, wanted.map(printDescriptor));
      assert.deepEqual(
        found.map(({ flops }) => flops),
        wanted.map((problem) => directFlops(problem)),
      );
    }
  }
});

Deno.test("the peers' records are compared and reported, where Python has torch", async () => {
  const python = await pythonWith("torch");
  if (python === undefined) return console.log("left out: no Python has torch");
  using temporary = temporaryDirectory();
  const at = (name: string) => `${temporary.path}/${name}`;
  await Deno.writeTextFile(at("convs.txt"), 'mb1ic4ih8oc4kh3ph1n"own" g2mb2ic4iw9oc6kw3sw2\n');
  await Deno.writeTextFile(at("products.txt"), "16 8 24\n32 8 16 t n x3\n");
  const peer = async (script: string, ...args: string[]) => {
    const asked = [`${PEERS}/${script}`, ...args, "--device", "cpu", "--runs", "3"];
    const { code, stdout, stderr } = await run(python, asked);
    assert.equal(code, 0, stderr);
    return stdout;
  };
  const texts = [
    await peer("cudnn.py", at("convs.txt"), "--layout", "nhwc"),
    await peer("cublas.py", at("products.txt"), "--match", "x3"),
  ];
  const { environments, cases } = parseRecords(texts.join(""), "peers");
  assert.deepEqual(environments.map(({ program, backend }) => [program, backend]), [
    ["pytorch", "cpu"],
    ["pytorch", "cpu"],
  ]);
  const operations = ["fwd", "bwd-data", "bwd-filter"];
  assert.deepEqual(cases.map(({ op }) => op), [...operations, ...operations, "gemm"]);
  for (const { time_ms, accuracy, gflops, device } of cases) {
    assert.equal(time_ms?.samples.length, 3);
    assert.ok(gflops! > 0 && accuracy!.rel_l2! < 1e-6 && accuracy!.mare! < 1e-6);
    assert.match(device, /^CPU \(/);
  }
  await Deno.writeTextFile(at("peer.jsonl"), texts.join(""));
  const ours = ["--op", "all", "--layout", "nhwc", "--device", "cpu", "--json"];
  const bench = await succeeds(["bench", "--suite", at("convs.txt"), ...ours]);
  await Deno.writeTextFile(at("ours.jsonl"), bench.stdout);
  const compared = await wgconvHere(["compare", at("peer.jsonl"), at("ours.jsonl"), "--json"]);
  const { cases: pairs } = JSON.parse(compared.stdout);
  assert.equal(pairs.length, 6, compared.stdout);
  const page = await succeeds(["report", at("peer.jsonl"), at("ours.jsonl"), "--format", "html"]);
  assert.match(page.stdout, /pytorch PyTorch \d/);
});
