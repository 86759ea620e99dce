/**
 * The tests, in two tiers. `deno task test` is what a contributor runs: formatting, lint, types, all tests that compile few
 * kernels, and one golden case for each algorithm, operation and layout on the driver. `deno task test:long` is the rest:
 * properties, both shader compilers, the gate's statistics, `wgconv check`, the compiled file, the docs' examples, attack, and a
 * sample of `test:shims` where that has been set up.
 * `deno task test:all` is both. Words behind the task go to `deno test`. What tests need is fetched first, and they run
 * without the network. They need a Vulkan driver: where there is none, lavapipe is installed if that may be done, else this
 * says what to install. The last line is `N passed, N failed`.
 */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { taskEnvironment } from "./environment.ts";
import { fetchAll } from "./fetch.ts";
import { docTestArguments } from "./test_docs.ts";
import { aptInstall, findAdapterName, LAVAPIPE_PACKAGES } from "./vulkan.ts";

interface Counts {
  readonly passed: number;
  readonly failed: number;
}

/** A step of a tier: prints what it does and says how it went. */
type Step = () => Promise<Counts>;

/** Folders of the long tier. */
const LONG = ["tests/compilers", "tests/drivers", "tests/long"];

/** Minutes without a test that ends, after which the process is killed. A test's own deadline comes first. */
const SILENCE = 15;

/** Attempts to fetch, since a registry may fail. */
const FETCHES = 3;

/** A part of `wgconv check` that takes less than a minute on lavapipe. */
const CHECK = ["--layout", "nhwc", "--match", '"(odd_channels|groups_4|filter_5x5)"'];

/** A minute of random input of every kind; the same each time. */
const ATTACK = ["--seconds", "60", "--seed", "20261121"];

/** Every 96th kernel on each GPU that is not there: three minutes. */
const SHIMS = ["--ready", "--every", "96"];

/** Runs Deno until it ends, or prints nothing for so long that it hangs; gives what it printed. */
async function watched(
  args: readonly string[],
  progress = /\S/,
): Promise<{ readonly success: boolean; readonly text: string }> {
  console.log(`deno ${args.join(" ")}`);
  const child = new Deno.Command(Deno.execPath(), {
    args: [...args],
    env: taskEnvironment(),
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const kill = () => {
    console.error(`Cannot test: nothing ended for ${SILENCE} minutes`);
    child.kill("SIGKILL");
  };
  let timer = setTimeout(kill, 60_000 * SILENCE);
  let text = "";
  for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    Deno.stdout.writeSync(new TextEncoder().encode(chunk));
    if (!progress.test(chunk)) continue;
    clearTimeout(timer);
    timer = setTimeout(kill, 60_000 * SILENCE);
  }
  const { success } = await child.status;
  clearTimeout(timer);
  return { success, text };
}

/** A step that is one command of Deno's. */
function command(...args: readonly string[]): Step {
  return async () => {
    const { success } = await watched(args);
    return { passed: Number(success), failed: Number(!success) };
  };
}

/** A step that is `deno test`, whose counts are the sums of its tests. */
function tests(...args: readonly string[]): Step {
  return async () => {
    const all = ["test", "-A", "--no-check", "--cached-only", "--parallel", ...args];
    const { success, text } = await watched(all, / \.\.\. .*\(/);
    const counts = [...text.matchAll(/(\d+) passed(?: \([^)]*\))? \| (\d+) failed/g)].at(-1);
    const [passed, failed] = [Number(counts?.[1] ?? 0), Number(counts?.[2] ?? 0)];
    // What ends otherwise than by a test's failure fails too: a leak, a module that does not load, a kill.
    return { passed, failed: success ? failed : Math.max(failed, 1) };
  };
}

/** Test files of the fast tier. */
function fastFiles(): string[] {
  return ["src", "bench", "tests"].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" }).map((path) => join(folder, path))
  ).filter((path) =>
    path.endsWith("_test.ts") && !LONG.some((folder) => path.startsWith(join(folder, "/")))
  ).sort();
}

/**
 * The tests of the fast tier, dealt out to a module for each core: a file by itself loads anew what it tests, which takes longer than
 * its tests.
 */
function fastTests(words: readonly string[]): Step {
  return async () => {
    const folder = await Deno.makeTempDir({ prefix: "wgconv-tests-" });
    try {
      const imports = fastFiles().map((path) =>
        JSON.stringify(pathToFileURL(join(Deno.cwd(), path)))
      );
      const cores = navigator.hardwareConcurrency;
      const modules = Array.from({ length: cores }, (_, core) => join(folder, `${core}_test.ts`));
      for (const [core, module] of modules.entries()) {
        const dealt = imports.filter((_, i) => i % cores === core);
        await Deno.writeTextFile(module, dealt.map((file) => `import ${file};\n`).join(""));
      }
      return await tests(...preload, "--config", "deno.json", ...words, ...modules)();
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  };
}

/** Finds a Vulkan driver, or installs one. */
async function ensureDriver(): Promise<boolean> {
  let adapter = await findAdapterName();
  if (adapter === undefined) {
    console.log("No Vulkan driver was found.");
    if (await aptInstall(LAVAPIPE_PACKAGES)) adapter = await findAdapterName();
  }
  if (adapter === undefined) {
    const packages = LAVAPIPE_PACKAGES.join(" ");
    console.error(`Cannot test: no Vulkan driver. Install one, e.g. apt-get install ${packages}`);
    return false;
  }
  console.log(`Testing on ${adapter}`);
  return true;
}

/** Fetches what tests need, and finds a driver. */
async function prepare(): Promise<boolean> {
  for (let attempt = 0; attempt < FETCHES; attempt++) {
    if (await fetchAll()) return await ensureDriver();
  }
  console.error("Cannot test: what tests need could not be fetched");
  return false;
}

const TIERS = ["--all", "--long"];
const tier = TIERS.find((name) => Deno.args[0] === name);
const words = Deno.args.slice(tier === undefined ? 0 : 1);
const preload = ["--preload", "tests/deadline.ts"];

/** Steps of a run whose words name files or folders: these alone. */
const NAMED = words.some((word) => existsSync(word)) ? [tests(...preload, ...words)] : undefined;
const FAST: readonly Step[] = [
  command("fmt", "--check"),
  command("lint"),
  command("doc", "--lint", "mod.ts", "web.ts", "internals.ts"),
  command("check", "."),
  fastTests(words),
];
const REST: readonly Step[] = [
  tests(...preload, ...words, ...LONG),
  tests(...docTestArguments()),
  command("run", "-A", "main.ts", "check", ...CHECK),
  command("run", "-A", "tasks/attack.ts", ...ATTACK),
  command("run", "-A", "tasks/test_shims.ts", ...SHIMS),
];

const start = performance.now();
let [passed, failed] = [0, 0];
if (await prepare()) {
  const steps = [...(tier === "--long" ? [] : FAST), ...(tier === undefined ? [] : REST)];
  for (const step of NAMED ?? steps) {
    const counts = await step();
    passed += counts.passed;
    failed += counts.failed;
  }
} else {
  failed++;
}
console.log(`Tested for ${((performance.now() - start) / 1000).toFixed(0)} s`);
console.log(`${passed} passed, ${failed} failed`);
Deno.exit(failed > 0 || passed === 0 ? 1 : 0);
