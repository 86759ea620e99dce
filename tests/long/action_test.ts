import assert from "#assert";
import { dirname } from "node:path";
import { VERSION } from "../../mod.ts";
import { taskEnvironment } from "../../tasks/environment.ts";
import { ROOT, run, temporaryDirectory } from "../cli.ts";

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

Deno.test("the action's scripts run by macOS's bash, and install no driver there", async () => {
  using folder = temporaryDirectory();
  await Deno.writeTextFile(`${folder.path}/uname`, "#!/bin/sh\necho Darwin\n", { mode: 0o755 });
  for (const name of ["ls", "sudo"]) {
    await Deno.writeTextFile(`${folder.path}/${name}`, "#!/bin/sh\nexit 1\n", { mode: 0o755 });
  }
  const PATH = `${folder.path}:${Deno.env.get("PATH")}`;
  const driver = await run("bash", [`${ROOT}action/driver.sh`], { env: { PATH } });
  assert.equal(driver.code, 0, driver.stderr);
  const script = await Deno.readTextFile(`${ROOT}action/run.sh`);
  assert.doesNotMatch(script, /^(mapfile|readarray)|\$\{\w+[,^]/m);
});

Deno.test("the example workflow names an action of this version, and files that the action writes", async () => {
  const workflow = await Deno.readTextFile(`${ROOT}examples/accuracy.yml`);
  assert.match(workflow, new RegExp(`uses: wgconv/wgconv@v${VERSION.replaceAll(".", "\\.")}\n`));
  assert.match(workflow, /report_paths: wgconv-results\/check\.xml$/m);
});
