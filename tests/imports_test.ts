import assert from "#assert";
import { readdirSync } from "node:fs";
import { dirname, join, normalize } from "node:path/posix";

const ROOT = new URL("../", import.meta.url);

/** Files of the product and what each imports, types included, by their paths in the repository. */
function importsOfFiles(): Map<string, string[]> {
  const files = new Map<string, string[]>();
  const sources = readdirSync(new URL("src", ROOT), { recursive: true, encoding: "utf8" })
    .map((path) => `src/${path.replaceAll("\\", "/")}`)
    .filter((path) => path.endsWith(".ts") && !path.endsWith("_test.ts"));
  for (const name of ["main.ts", "mod.ts", "web.ts", "internals.ts", ...sources]) {
    const text = Deno.readTextFileSync(new URL(name, ROOT));
    const specifiers = text.matchAll(
      /^(?:import|export)\b[^;]*?\bfrom "(\.[^"]+)"|\bimport\("(\.[^"]+)"\)/gm,
    );
    files.set(
      name,
      [...specifiers].map((match) => normalize(join(dirname(name), match[1] ?? match[2]!))),
    );
  }
  return files;
}

/** What a file imports that is no file of the product: packages and parts of Deno. */
function packagesOf(path: string): string[] {
  const text = Deno.readTextFileSync(new URL(path, ROOT));
  return [...text.matchAll(/^(?:import|export)\b[^;]*?\bfrom "([^."][^"]*)"/gm)]
    .map((match) => match[1]!);
}

/** What each room of the table in docs/architecture.md may import. */
function rooms(): Map<string, string[]> {
  const text = Deno.readTextFileSync(new URL("docs/architecture.md", ROOT));
  const table = new Map<string, string[]>();
  for (const [, room, may] of text.matchAll(/^\| `([^`]+)`\s*\|[^|]*\|([^|]*)\|$/gm)) {
    if (!/^(src\/|(?:main|mod|web|internals)\.ts)/.test(room!)) continue;
    const names = [...may!.matchAll(/`([^`]+)`/g)].map((match) => match[1]!.replace(/\/$/, ""));
    table.set(room!.replace(/\/$/, ""), names);
  }
  return table;
}

/** The room of a file; undefined for those that stand beside the rooms. */
function roomOf(path: string, table: ReadonlyMap<string, unknown>): string | undefined {
  const folder = path.split("/").slice(0, 2).join("/");
  return table.has(path) ? path : table.has(folder) ? folder : undefined;
}

Deno.test("every import of the product is one that the table of rooms allows", () => {
  const table = rooms();
  assert.ok(table.size >= 14, `${table.size} rooms`);
  const broken: string[] = [];
  const known: string[] = [];
  for (const [path, imports] of importsOfFiles()) {
    const room = roomOf(path, table);
    for (const target of imports) {
      const [top] = target.split("/");
      const data = target.startsWith("bench/suites/") ? "bench/suites" : top;
      const isData = ["shaders", "fixtures", "bench/suites"].includes(data!);
      const to = isData ? data : roomOf(target, table);
      if (to === room) continue;
      // Beside the rooms: files that all may import, and that import none.
      if (to === undefined && /^src\/[a-z_]+\.ts$/.test(target)) continue;
      const may = room === undefined ? [] : table.get(room)!;
      const allowed = may.includes(to!) || (to?.startsWith("src/") && may.includes("src/*"));
      (allowed ? known : broken).push(`${path} imports ${target}`);
    }
  }
  assert.deepEqual(broken, []);
  assert.ok(known.length > 500, `${known.length} imports between rooms`);
});

Deno.test("no file of the product imports itself, by whatever way", () => {
  const files = importsOfFiles();
  const done = new Set<string>();
  const way: string[] = [];
  const visit = (path: string) => {
    if (done.has(path)) return;
    const at = way.indexOf(path);
    assert.ok(at < 0, `a circle: ${[...way.slice(at), path].join(" -> ")}`);
    way.push(path);
    for (const target of files.get(path) ?? []) visit(target);
    way.pop();
    done.add(path);
  };
  for (const path of files.keys()) visit(path);
  assert.ok(done.size > 250, `${done.size} files`);
});

Deno.test("the library imports packages in full, each in a file of src/deps: import maps are others'", () => {
  const files = importsOfFiles();
  const reached = new Set(["mod.ts", "web.ts", "internals.ts"]);
  for (const path of reached) for (const target of files.get(path) ?? []) reached.add(target);
  const wrong: string[] = [];
  const packages: string[] = [];
  for (const path of reached) {
    if (!path.endsWith(".ts")) continue;
    for (const name of packagesOf(path)) {
      const [, bare] = /^npm:([^@]+)@\d+\.\d+\.\d+(?:\/.*)?$/.exec(name) ?? [];
      if (bare !== undefined && path.startsWith("src/deps/")) packages.push(bare);
      else if (!name.startsWith("node:")) wrong.push(`${path} imports ${name}`);
    }
  }
  assert.deepEqual(wrong, []);
  assert.deepEqual(packages.sort(), ["eta", "fflate", "fraction.js"]);
});
