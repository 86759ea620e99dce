import assert from "#assert";
import { deno, temporaryDirectory } from "../tests/cli.ts";

/** Asks for a package without a network and with an empty cache. */
const PROGRAM = `
const { fetchPackage, onFetch } = await import("${import.meta.resolve("./npm_package.ts")}");
onFetch((text) => console.log(text));
Deno.env.set("DENO_DIR", Deno.args[0]);
Deno.env.set("NPM_CONFIG_REGISTRY", "http://127.0.0.1:1");
const native = { name: "webgpu", version: "0.6.2", title: "Dawn", megabytes: 51 };
const words = { doing: "Cannot load Dawn", how: "", offline: "without a network set X" };
await fetchPackage({ ...native, ...words }).catch(({ message }) => console.log(message));
`;

Deno.test("fetchPackage() says what it fetches before it does, and in one line why it cannot", async () => {
  using cache = temporaryDirectory();
  const { stdout, stderr } = await deno(["eval", PROGRAM, cache.path]);
  const [first, second, ...rest] = stdout.trim().split("\n");
  assert.equal(stderr, "");
  assert.equal(first, `fetching Dawn, once: npm:webgpu@0.6.2, 51 MB, into ${cache.path}/npm`);
  assert.match(
    second!,
    /^Cannot load Dawn: `deno cache .*` says: Failed loading .*refused.*; without a network set X$/,
  );
  assert.deepEqual(rest, []);
});
