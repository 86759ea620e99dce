import assert from "#assert";
import { dirname } from "node:path";
import { encode } from "fast-png";
import { FILTERS } from "../../examples/web/filters.ts";
import { offeredChoices, pictureProblem } from "../../examples/web/offered.ts";
import { DEFAULT_LIMITS, readNpy, VERSION } from "../../mod.ts";
import { taskEnvironment } from "../../tasks/environment.ts";
import { findChromium, openPage, type Page } from "../chromium.ts";
import { deno, ROOT, run, temporaryDirectory, wgconv } from "../cli.ts";
import { pythonWith } from "../python.ts";

const EXAMPLES = `${ROOT}examples/`;

Deno.test("examples/library.ts convolves, checks and writes", async () => {
  using temporary = temporaryDirectory();
  const output = `${temporary.path}/y.npy`;
  const { code, stdout, stderr } = await deno(["run", "-A", `${EXAMPLES}library.ts`, output]);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^pass: 200704 outputs checked, MARE /m);
  assert.match(stdout, /^direct: direct_fwd_f32_.*, 1 passes, 0 bytes of workspace$/m);
  const info = await wgconv(["tensor", "info", output]);
  assert.match(info.stdout, /f32 +\[4, 28, 28, 64\]/);
});

Deno.test("examples/train.ts trains by every way to convolve, along FP64's curve", async () => {
  using temporary = temporaryDirectory();
  const svg = `${temporary.path}/curves.svg`;
  const args = ["--runs", "fp64,auto,winrs", "--epochs", "2", "--svg", svg];
  const { code, stdout, stderr } = await deno(["run", "-A", `${EXAMPLES}train.ts`, ...args]);
  assert.equal(code, 0, stderr);
  const losses = [...stdout.matchAll(/^(\w+) +seed 1: loss (\S+),/gm)];
  assert.deepEqual(losses.map(([, run]) => run), ["fp64", "auto", "winrs"]);
  const [exact, ...others] = losses.map(([, , loss]) => Number(loss));
  // Of ten classes nothing that is learned has a loss of log 10.
  assert.ok(exact! < 2.2, stdout);
  for (const loss of others) assert.ok(Math.abs(loss - exact!) < 0.01 * exact!, stdout);
  assert.match(await Deno.readTextFile(svg), /aria-label="Loss of a small network on handwritten/);
});

Deno.test("examples refuse wrong options in a sentence, before any work", async () => {
  const refused: [string, string[], RegExp][] = [
    [
      "train.ts",
      ["--epoch", "3"],
      /^Cannot train: Unknown option '--epoch', the usage is deno run/,
    ],
    ["train.ts", ["--svg"], /^Cannot train: Option '--svg <value>' argument missing, the usage/],
    ["train.ts", ["more"], /^Cannot train: Unexpected argument 'more', the usage is /],
    [
      "train.ts",
      ["--epochs", "0"],
      /^Cannot train: --epochs is "0", expected a whole number >= 1$/,
    ],
    ["train.ts", ["--svg", "no/x.svg"], /^Cannot train: --svg is no\/x.svg, but there is no dir/],
    ["train.ts", ["--digits", "none.npz"], /^Cannot train: no digits can be read: .*none\.npz/],
    ["web/build.ts", ["--serve", "x"], /^Cannot build: --serve is "x", expected a whole number/],
  ];
  const all = refused.map(async ([script, args, sentence]) => {
    const { code, stdout, stderr } = await deno(["run", "-A", `${EXAMPLES}${script}`, ...args]);
    assert.deepEqual([code, stdout], [2, ""], stderr);
    assert.match(stderr.trimEnd(), sentence);
    assert.ok(!stderr.trimEnd().includes("\n"), stderr);
  });
  await Promise.all(all);
  for (const script of ["train.ts", "web/build.ts"]) {
    const { code, stdout } = await deno(["run", "-A", `${EXAMPLES}${script}`, "--help"]);
    assert.equal(code, 0);
    assert.match(stdout, /^deno run -A examples\/.*\]$/m);
  }
});

for (
  const [script, module, checks] of [["numpy_check.py", "numpy", 4], [
    "pytorch_check.py",
    "torch",
    7,
  ]] as const
) {
  Deno.test(`examples/${script} finds results right, where Python has ${module}`, async () => {
    const python = await pythonWith(module);
    if (python === undefined) return console.log(`left out: no Python has ${module}`);
    const args = [`${EXAMPLES}${script}`, Deno.execPath(), "run", "-A", `${ROOT}main.ts`];
    const { code, stdout, stderr } = await run(python, args);
    assert.equal(code, 0, stdout + stderr);
    assert.equal(stdout.match(/: relative L2 error \d\.\d\de-\d\d$/gm)?.length, checks, stdout);
  });
}

interface ActionInputs {
  readonly command: string;
  readonly baseline?: string;
}

/** Runs action.yml's step that runs wgconv, as a runner would, in a folder of another repository. */
async function runAction(cwd: string, { command, baseline = "" }: ActionInputs) {
  const action = await Deno.readTextFile(`${ROOT}action.yml`);
  const given: Record<string, string> = { command, baseline };
  const input = (name: string) =>
    given[name] ?? new RegExp(`\\n  ${name}:\\n.*\\n    default: (.*)`).exec(action)![1]!;
  const env = Object.fromEntries(
    [...action.matchAll(/^ +([A-Z]+): \$\{\{ inputs\.(\w+) \}\}$/gm)]
      .map(([, variable, name]) => [variable!, input(name!)]),
  );
  const line = [...action.matchAll(/^ +run: (.*)$/gm)].at(-1)![1]!;
  const files = { GITHUB_OUTPUT: `${cwd}/output`, GITHUB_STEP_SUMMARY: `${cwd}/summary` };
  for (const file of Object.values(files)) await Deno.writeTextFile(file, "");
  const path = `${dirname(Deno.execPath())}:${Deno.env.get("PATH")}`;
  const ran = await run("bash", ["--noprofile", "--norc", "-eo", "pipefail", "-c", line], {
    cwd,
    env: { ...taskEnvironment(), ...env, ...files, PATH: path, GITHUB_ACTION_PATH: ROOT },
  });
  const [output, summary] = await Promise.all(
    Object.values(files).map((f) => Deno.readTextFile(f)),
  );
  return { ...ran, output: output!, summary: summary! };
}

Deno.test("the action runs in another repository, and exits as wgconv does", async () => {
  using workspace = temporaryDirectory();
  const { path } = workspace;
  // A project of its own, which has neither our dependencies nor our files.
  await Deno.writeTextFile(`${path}/deno.json`, '{ "workspace": ["./part"] }');
  await Deno.mkdir(`${path}/part`);
  await Deno.writeTextFile(`${path}/part/deno.json`, "{}");
  const tiny = "--match 'pointwise' --op fwd --layout nchw --algorithm direct";
  const good = await runAction(path, { command: `check ${tiny}` });
  assert.equal(good.code, 0, good.stderr);
  assert.match(good.stdout, /1 case/);
  assert.equal(good.output, "records=wgconv-results/check.jsonl\njunit=wgconv-results/check.xml\n");
  assert.match(good.summary, /^### wgconv check .*\n[^]*\| pass /);
  assert.match(await Deno.readTextFile(`${path}/wgconv-results/check.xml`), /<testsuite /);
  assert.equal((await runAction(path, { command: "check --match nothing_of_that_name" })).code, 2);
  assert.equal((await runAction(path, { command: "tensor info x.npy" })).code, 2);

  const command = "bench mb1ic4ih8oc4kh3 --device cpu --runs 1 --fill-ms 0";
  const base = await runAction(path, { command });
  assert.equal(base.code, 0, base.stderr);
  await Deno.rename(`${path}/wgconv-results/bench.jsonl`, `${path}/base.jsonl`);
  const compared = await runAction(path, { command, baseline: "base.jsonl" });
  assert.match(compared.summary, /geomean speed-up/);
  assert.equal((await runAction(path, { command, baseline: "none.jsonl" })).code, 2);

  const made = await runAction(path, {
    command: "verify --output none.npy --problem mb1ic1ih3oc1kh3",
  });
  assert.equal(made.code, 2);
});

Deno.test("the example workflow names an action of this version, and files that the action writes", async () => {
  const workflow = await Deno.readTextFile(`${EXAMPLES}accuracy.yml`);
  assert.match(workflow, new RegExp(`uses: wgconv/wgconv@v${VERSION.replaceAll(".", "\\.")}\n`));
  assert.match(workflow, /report_paths: wgconv-results\/check\.xml$/m);
});

/** Runs a shell script with the program on its path as `wgconv`. */
async function shell(script: string, args: string[], cwd: string, env: Record<string, string>) {
  const bin = `${cwd}/bin`;
  await Deno.mkdir(bin, { recursive: true });
  const wrapper = `#!/bin/sh\nexec "$DENO" run --quiet --cached-only -A "$MAIN" "$@"\n`;
  await Deno.writeTextFile(`${bin}/wgconv`, wrapper, { mode: 0o755 });
  const program = { DENO: Deno.execPath(), MAIN: `${ROOT}main.ts` };
  const path = `${bin}:${Deno.env.get("PATH")}`;
  return await run("bash", [`${EXAMPLES}${script}`, ...args], {
    cwd,
    env: { ...env, ...program, NO_COLOR: "1", XDG_RUNTIME_DIR: "/tmp", PATH: path },
  });
}

Deno.test("the SLURM array's tasks make parts that one report puts together, and go on", async () => {
  using temporary = temporaryDirectory();
  const { path } = temporary;
  await Deno.writeTextFile(`${path}/suite.txt`, "mb1ic4ih8oc4kh3\nmb1ic4ih9oc8kh1\n");
  const task = (part: number) =>
    shell("slurm_array.sh", ["suite.txt", "results"], path, {
      SLURM_ARRAY_TASK_ID: String(part),
      SLURM_ARRAY_TASK_COUNT: "2",
      SLURM_SUBMIT_DIR: ROOT,
    });
  for (const part of [1, 2]) {
    const { code, stderr } = await task(part);
    assert.equal(code, 0, stderr);
  }
  assert.match(await Deno.readTextFile(`${path}/results/part1.log`), /^GPU -: wgconv bench /);
  const before = await Deno.readTextFile(`${path}/results/part1.jsonl`);
  assert.equal((await task(1)).code, 0);
  assert.equal(await Deno.readTextFile(`${path}/results/part1.jsonl`), before);
  const files = [`${path}/results/part1.jsonl`, `${path}/results/part2.jsonl`];
  const { stdout } = await wgconv(["report", ...files, "--format", "csv"]);
  assert.equal(stdout.trim().split("\n").length, 1 + 6);
});

Deno.test("the line for GNU parallel is bash, and its commands exist", async () => {
  const check = await run("bash", ["-n", `${EXAMPLES}parallel.sh`]);
  assert.equal(check.code, 0, check.stderr);
  const script = await Deno.readTextFile(`${EXAMPLES}parallel.sh`);
  const bench = await wgconv(["bench", "--help"]);
  const command = /" bench (.*) :::/.exec(script)?.[1] ?? "";
  const options = command.match(/--[a-z]+/g) ?? [];
  assert.deepEqual(options, ["--suite", "--op", "--shard", "--jsonl", "--resume"]);
  for (const option of options) assert.ok(bench.stdout.includes(` ${option} `), option);
});

Deno.test("a suite is spread over GPUs by GNU parallel, each process has its log, and a part that ended early goes on", async () => {
  if ((await run("sh", ["-c", "command -v parallel"])).code !== 0) {
    console.log("left out: there is no GNU parallel");
    return;
  }
  using temporary = temporaryDirectory();
  const { path } = temporary;
  await Deno.writeTextFile(`${path}/suite.txt`, "mb1ic4ih8oc4kh3\nmb1ic4ih9oc8kh1\n");
  const args = [`${path}/bin/wgconv`, "suite.txt", "results", "-,-", "--op", "fwd"];
  const spread = () => shell("gpus.sh", args, path, {});
  const { code, stderr, stdout } = await spread();
  assert.equal(code, 0, stderr);
  // The part with more to move comes first.
  assert.match(stdout, / made by [^]*mb1ic4ih9oc8oh9kh1[^]*mb1ic4ih8oc4oh6kh3/);
  const part = (number: number) => Deno.readTextFile(`${path}/results/part${number}.jsonl`);
  const before = await Promise.all([part(1), part(2)]);
  for (const number of [1, 2]) {
    const log = await Deno.readTextFile(`${path}/results/part${number}.log`);
    assert.match(log, new RegExp(`^GPU -: .*wgconv bench .* --shard ${number}/2 `));
  }
  // The environment's line alone is what a process leaves that was killed in its first case.
  await Deno.writeTextFile(`${path}/results/part2.jsonl`, before[1].split("\n")[0] + "\n");
  assert.equal((await spread()).code, 0);
  assert.equal(await part(1), before[0]);
  assert.equal((await part(2)).match(/"kind":"case"/g)?.length, 1);
});

Deno.test("one_gpu.sh refuses a GPU that is not there, and ends as its command does", async () => {
  using temporary = temporaryDirectory();
  const { path } = temporary;
  const gpu = (...args: string[]) => run("bash", [`${EXAMPLES}one_gpu.sh`, ...args], { cwd: path });
  const missing = await gpu("77", "log", "true");
  assert.deepEqual([missing.code, missing.stderr], [2, "one_gpu.sh: there is no /dev/nvidia77\n"]);
  assert.equal((await gpu("-", "log", "sh", "-c", "exit 3")).code, 3);
});

/** Serves a folder as file servers do. */
function serve(folder: string) {
  const types: Record<string, string> = { html: "text/html", js: "text/javascript" };
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, async (request) => {
    const name = decodeURIComponent(new URL(request.url).pathname).slice(1) || "index.html";
    try {
      const type = types[name.split(".").at(-1)!] ?? "application/octet-stream";
      return new Response(await Deno.readFile(`${folder}/${name}`), {
        headers: { "content-type": type },
      });
    } catch {
      return new Response(null, { status: 404 });
    }
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}/`,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

/** What the page says when it has finished: its lines by name, or its message. */
async function finished(page: Page): Promise<Record<string, string>> {
  const state = `(async () => {
    for (;;) {
      const state = document.body?.dataset.state;
      if (state === "done") break;
      if (state === "failed") return { failed: document.getElementById("message").textContent };
      await new Promise((done) => setTimeout(done, 50));
    }
    return Object.fromEntries([...document.querySelectorAll("#report dd")]
      .map((line) => [line.dataset.name, line.textContent]));
  })()`;
  return await page.evaluate(state) as Record<string, string>;
}

interface PageState {
  readonly state: string;
  readonly status: string;
  readonly disabled: boolean;
}

/** What the page says it is at, and whether nothing can be chosen. */
const STATE = `({
  state: document.body.dataset.state,
  status: document.getElementById("status").textContent,
  disabled: document.getElementById("choices").disabled,
})`;

/** Chooses as a user would; what the page says then, before it can have finished. */
async function choose(page: Page, id: string, value: string): Promise<PageState> {
  const state = page.evaluate(`(async () => {
    const select = document.getElementById(${JSON.stringify(id)});
    select.value = ${JSON.stringify(value)};
    select.dispatchEvent(new Event("change"));
    await new Promise((done) => setTimeout(done));
    return ${STATE};
  })()`);
  return await state as PageState;
}

/** Mean and deviation of the red channel of a canvas. */
async function brightness(page: Page, id: string): Promise<{ mean: number; deviation: number }> {
  const values = await page.evaluate(`(() => {
    const { width, height } = document.getElementById(${JSON.stringify(id)});
    const { data } = document.getElementById(${JSON.stringify(id)})
      .getContext("2d").getImageData(0, 0, width, height);
    let [sum, squares] = [0, 0];
    for (let i = 0; i < data.length; i += 4) { sum += data[i]; squares += data[i] ** 2; }
    const mean = sum / (width * height);
    return { mean, deviation: Math.sqrt(squares / (width * height) - mean ** 2) };
  })()`);
  return values as { mean: number; deviation: number };
}

Deno.test("the page's program asks for nothing of Deno or Node", async () => {
  using temporary = temporaryDirectory();
  const output = `${temporary.path}/main.js`;
  const args = ["bundle", "--platform", "browser", "-o", output, `${EXAMPLES}web/main.ts`];
  const { code, stderr } = await deno(args);
  assert.equal(code, 0, stderr);
  const text = await Deno.readTextFile(output);
  assert.doesNotMatch(text, /\bDeno\.|"node:|\bprocess\.|^import /m);
});

/** The middle of the photo, 64 x 64: software devices are slow. */
async function smallPhoto(): Promise<Uint8Array> {
  const { shape, data } = await readNpy(`${EXAMPLES}../fixtures/astronaut_256x256x3_f4.npy`);
  const width = shape[1]!;
  const [size, channels, first] = [64, 3, 64];
  const bytes = new Uint8Array(size * size * channels);
  for (let y = 0; y < size; y++) {
    for (let x = 0; x < size * channels; x++) {
      const value = Number(data[((first + y) * width + first) * channels + x]);
      bytes[y * size * channels + x] = Math.round(255 * value);
    }
  }
  return encode({ width: size, height: size, channels, data: bytes });
}

Deno.test("the page offers auto and what can run within the device's limits", () => {
  const problem = (size: number) => pictureProblem(FILTERS["blur, 11 x 11"]!, size, size);
  const small = offeredChoices(problem(64), DEFAULT_LIMITS);
  assert.equal(small[0], "auto");
  assert.ok(small.includes("im2col") && small.includes("direct") && !small.includes("winrs"));
  // A row of places of 1024 x 1024 pixels is more than a binding of these limits holds.
  const large = offeredChoices(problem(1024), DEFAULT_LIMITS);
  assert.ok(large.includes("direct") && !large.includes("im2col"));
});

const chromium = findChromium();
// Registered only where there is a browser.
if (chromium !== undefined) {
  Deno.test("the web page convolves a picture in Chromium and checks it", async () => {
    using temporary = temporaryDirectory();
    const folder = temporary.path;
    const build = await deno(["run", "-A", `${EXAMPLES}web/build.ts`, "--output", folder]);
    assert.equal(build.code, 0, build.stderr);
    await Deno.writeFile(`${folder}/photo.png`, await smallPhoto());
    await using server = serve(folder);
    await using page = await openPage(chromium, server.url);

    const blurred = await finished(page);
    assert.equal(blurred.failed, undefined, blurred.failed);
    assert.match(blurred.device!, /swiftshader/i);
    assert.equal(blurred.verdict, "pass");
    assert.match(blurred.checked!, /^12,288 outputs/);
    const [photo, blur] = [await brightness(page, "source"), await brightness(page, "target")];
    assert.ok(Math.abs(blur.mean - photo.mean) < 5, `${blur.mean}, ${photo.mean}`);
    assert.ok(blur.deviation < photo.deviation);

    assert.deepEqual(await page.evaluate(STATE), { state: "done", status: "", disabled: false });

    const { state, status } = await choose(page, "filter", "sharpen, 3 x 3");
    assert.equal(state, "working");
    assert.match(status, /^working: (convolves 64 x 64 pixels with auto|checks every pixel)/);
    assert.equal((await finished(page)).verdict, "pass");
    assert.ok((await brightness(page, "target")).deviation > photo.deviation);

    await choose(page, "algorithm", "winograd2d");
    const winograd = await finished(page);
    assert.match(winograd.kernel!, /^winograd2d_fwd_f32_/);
    assert.equal(winograd.verdict, "pass");

    // What cannot run is not offered: winrs is of gradients.
    const offered = () =>
      page.evaluate(`[...document.getElementById("algorithm").options].map(({ value }) => value)`);
    const small = await offered() as string[];
    assert.ok(small.includes("auto") && small.includes("winograd2d") && !small.includes("winrs"));
    await choose(page, "algorithm", "direct");
    assert.equal((await finished(page)).verdict, "pass");
    for (const width of [500, 1400]) {
      await page.look(width, "dark");
      const room = await page.evaluate(`(() => {
        const { scrollWidth, clientWidth } = document.documentElement;
        const boxes = ["source", "target"].map((id) => document.getElementById(id).getBoundingClientRect());
        return { beyond: scrollWidth - clientWidth, abreast: boxes[0].top === boxes[1].top };
      })()`);
      assert.deepEqual(room, { beyond: 0, abreast: true }, `${width} pixels`);
    }
    const png = await page.screenshot();
    assert.deepEqual([...png.subarray(1, 4)], [...new TextEncoder().encode("PNG")]);
  });

  Deno.test("without WebGPU the web page says so and offers nothing", async () => {
    using temporary = temporaryDirectory();
    const folder = temporary.path;
    const build = await deno(["run", "-A", `${EXAMPLES}web/build.ts`, "--output", folder]);
    assert.equal(build.code, 0, build.stderr);
    const without =
      `<script>Object.defineProperty(navigator, "gpu", { value: undefined })</script>`;
    const html = await Deno.readTextFile(`${folder}/index.html`);
    await Deno.writeTextFile(`${folder}/index.html`, html.replace("</head>", `${without}</head>`));
    await using server = serve(folder);
    await using page = await openPage(chromium, server.url);
    assert.match((await finished(page)).failed!, /^Cannot open a GPU: this browser has no WebGPU/);
    assert.deepEqual(await page.evaluate(STATE), { state: "failed", status: "", disabled: true });
  });
}
