/** What the library offers: few names, each with an example, and the same in a page but for files. */
import assert from "#assert";
import * as internals from "../internals.ts";
import * as library from "../mod.ts";
import * as page from "../web.ts";
import { ROOT, run } from "./cli.ts";

/** What `deno doc --json` says of a symbol, as far as it is read. */
interface Symbol {
  readonly name: string;
  readonly declarations: readonly {
    readonly kind: string;
    readonly jsDoc?: { readonly tags?: readonly { readonly kind: string }[] };
  }[];
}

Deno.test("mod.ts is small, web.ts is what of it needs no Deno, internals.ts has all of it", () => {
  const names = Object.keys(library);
  assert.ok(names.length <= 45, names.join());
  const ofDeno = names.filter((name) => !(name in page));
  assert.deepEqual(ofDeno.sort(), ["openDevice", "readNpy", "readNpz", "writeNpy", "writeNpz"]);
  assert.deepEqual(names.filter((name) => !(name in internals)), []);
});

Deno.test("each value of mod.ts has an example in its doc comment", async () => {
  const { code, stdout, stderr } = await run(Deno.execPath(), ["doc", "--json", `${ROOT}mod.ts`]);
  assert.equal(code, 0, stderr);
  const { nodes } = JSON.parse(stdout) as { nodes: Record<string, { symbols: Symbol[] }> };
  const symbols = Object.values(nodes).flatMap((node) => node.symbols);
  const values = symbols.filter(({ declarations }) =>
    declarations.some(({ kind }) => !["interface", "typeAlias"].includes(kind))
  );
  assert.equal(values.length, Object.keys(library).length);
  const without = values.filter(({ declarations }) =>
    !declarations.some(({ jsDoc }) => jsDoc?.tags?.some(({ kind }) => kind === "example"))
  );
  assert.deepEqual(without.map(({ name }) => name), []);
});
