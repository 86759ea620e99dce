/**
 * `deno task test`: fetches what tests need, then format, lint, doc and type checks, then all tests, the docs' examples, a
 * part of `wgconv check` and a minute of attack, without the network. Tests need a Vulkan driver; where there is none,
 * lavapipe is installed if that may be done, else this says what to install. Ends with `N passed, N failed`.
 */
import { taskEnvironment } from "./environment.ts";
import { fetchAll } from "./fetch.ts";
import { docTestArguments } from "./test_docs.ts";
import { aptInstall, findAdapterName, LAVAPIPE_PACKAGES, succeeds } from "./vulkan.ts";

/** Minutes after which the tests are killed, as failed; each test has a deadline of its own, well below. */
const PATIENCE = 22;

const TEST = [
  ...["test", "-A", "--no-check", "--cached-only", "--parallel"],
  ...["--preload", "tests/deadline.ts"],
  ...Deno.args,
];

/** What is checked before the tests, as words after `deno`; each counts where it fails. */
const CHECKS = ["fmt --check", "lint", "doc --lint mod.ts web.ts", "check ."];

/** Finds a Vulkan driver, or installs one. */
async function ensureDriver(): Promise<boolean> {
  let adapter = await findAdapterName();
  if (adapter === undefined) {
    console.log("No Vulkan driver was found.");
    if (await aptInstall(LAVAPIPE_PACKAGES)) adapter = await findAdapterName();
  }
  if (adapter === undefined) {
    console.error(
      `Cannot test: no Vulkan driver. Install one, e.g. apt-get install ${
        LAVAPIPE_PACKAGES.join(" ")
      }`,
    );
    return false;
  }
  console.log(`Testing on ${adapter}`);
  return true;
}

/** Runs `deno test`, shows its output and reads its last count; that late tests are killed counts as a failure. */
async function runTests(
  args: readonly string[],
): Promise<{ passed: number; failed: number; ok: boolean }> {
  const child = new Deno.Command(Deno.execPath(), {
    args: [...args],
    env: taskEnvironment(),
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const timer = setTimeout(() => {
    console.error(`Cannot test: the tests were not done after ${PATIENCE} minutes`);
    child.kill("SIGKILL");
  }, 60_000 * PATIENCE);
  let text = "";
  for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    Deno.stdout.writeSync(new TextEncoder().encode(chunk));
  }
  const counts = [...text.matchAll(/(\d+) passed(?: \([^)]*\))? \| (\d+) failed/g)].at(-1);
  const { success } = await child.status;
  clearTimeout(timer);
  return { passed: Number(counts?.[1] ?? 0), failed: Number(counts?.[2] ?? 0), ok: success };
}

/** A part of `wgconv check` that takes less than a minute on lavapipe. */
const CHECK = ["--layout", "nhwc", "--match", '"(odd_channels|groups_4|filter_5x5)"'];

/** Whether the accuracy is what the committed baseline says. */
function checkAccuracy(): Promise<boolean> {
  console.log(`wgconv check ${CHECK.join(" ")}`);
  return succeeds(Deno.execPath(), ["run", "-A", "main.ts", "check", ...CHECK]);
}

/** A minute of random input of every kind; the same each time. It prints its counts. */
const ATTACK = ["--seconds", "60", "--seed", "20261121"];

/** Whether nothing was found. */
function attack(): Promise<boolean> {
  console.log(`deno task test:attack ${ATTACK.join(" ")}`);
  return succeeds(Deno.execPath(), ["run", "-A", "tasks/attack.ts", ...ATTACK]);
}

/** Attempts, since a registry may fail. */
const FETCHES = 3;

let fetched = false;
for (let attempt = 0; attempt < FETCHES && !fetched; attempt++) fetched = await fetchAll();
if (!fetched) {
  console.error("Cannot test: what tests need could not be fetched");
  console.log("0 passed, 1 failed");
  Deno.exit(1);
}
let failed = 0;
for (const check of CHECKS) {
  console.log(`deno ${check}`);
  if (!await succeeds(Deno.execPath(), check.split(" "))) failed++;
}
let passed = 0;
if (await ensureDriver()) {
  for (const args of [TEST, ["test", ...docTestArguments()]]) {
    const tests = await runTests(args);
    passed += tests.passed;
    failed += tests.failed;
    if (!tests.ok && tests.failed === 0) failed++;
  }
  for (const step of [checkAccuracy, attack]) {
    if (await step()) passed++;
    else failed++;
  }
} else {
  failed++;
}
console.log(`${passed} passed, ${failed} failed`);
Deno.exit(failed > 0 || passed === 0 ? 1 : 0);
