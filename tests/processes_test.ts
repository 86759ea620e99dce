import assert from "#assert";
import plugin from "../tasks/lint.ts";
import { deno, run, start, temporaryDirectory, until } from "./cli.ts";

Deno.test("a process that goes on for ever is killed, and its test fails", async () => {
  const late = { name: "Error", message: /^Cannot wait for `.*`: it is not done after 0\.2 s$/ };
  await assert.rejects(run("sleep", ["60"], { deadline: 0.2 }), late);
  // What it has started may outlive it with its pipes.
  await assert.rejects(run("sh", ["-c", "sleep 3 & sleep 60"], { deadline: 0.2 }), late);
  const child = start("sleep", ["60"], {}, 0.2);
  assert.equal((await child.status).signal, "SIGKILL");
});

Deno.test("what is waited for in a process that ends does not come: the test fails", async () => {
  const child = start("sh", ["-c", "exit 7"]);
  await assert.rejects(until(() => false, child), { message: /: the process ended with 7$/ });
});

Deno.test("a process in a test downloads nothing and says so", async () => {
  using cache = temporaryDirectory();
  const script = `${cache.path}/needs.ts`;
  await Deno.writeTextFile(script, 'import "npm:fflate@0.8.3";');
  const { code, stderr } = await deno(["run", "--no-lock", script], {
    env: { DENO_DIR: cache.path },
  });
  assert.equal(code, 1);
  assert.match(stderr, /^error: .*--cached-only/s);
  assert.doesNotMatch(stderr, /Download/);
});

Deno.test("lint finds paths that are percent-encoded and processes without a deadline", () => {
  const messages = (file: string, text: string) =>
    Deno.lint.runPlugin(plugin, file, text).map(({ id, range }) => [id, text.slice(...range)]);
  const path = "wgconv/no-pathname";
  assert.deepEqual(messages("x.ts", 'read(new URL("x", here).pathname);'), [
    [path, 'new URL("x", here).pathname'],
  ]);
  assert.deepEqual(messages("x.ts", "const { pathname: name } = url;"), [[path, "pathname: name"]]);
  assert.deepEqual(messages("x.ts", 'read(fileURLToPath(new URL("x", here)));'), []);
  // An address that was asked for is no file.
  assert.deepEqual(messages("x.ts", "serve(new URL(request.url).pathname);"), []);
  for (const text of ["new URL(import.meta.url).pathname", "new URL(request.url, here).pathname"]) {
    assert.deepEqual(messages("x.ts", `read(${text});`), [[path, text]]);
  }
  const start = 'new Deno.Command("x");';
  const command = "wgconv/no-command-in-tests";
  for (const file of ["/a b/src/x_test.ts", "/a b/tests/x.ts"]) {
    assert.deepEqual(messages(file, start), [[command, "Deno.Command"]], file);
  }
  for (const file of ["/a b/src/x.ts", "/a b/tests/cli.ts"]) {
    assert.deepEqual(messages(file, start), [], file);
  }
});
