import assert from "#assert";
import { join } from "node:path";
import { withTables } from "../bench/tables.ts";

const ROOT = `${import.meta.dirname}/../`;
const page = Deno.readTextFileSync(`${ROOT}docs/performance.md`);

/** The files of records by their paths in bench/results. */
function recordFiles(): string[] {
  const folder = `${ROOT}bench/results`;
  return [...Deno.readDirSync(folder)].flatMap(({ name: card }) =>
    [...Deno.readDirSync(join(folder, card))].map(({ name }) => `${card}/${name}`)
  );
}

/** `a{b,c}d` as `abd` and `acd`, for each pair of braces. */
function expand(pattern: string): string[] {
  const found = /^(.*?)\{([^}]*)\}(.*)$/.exec(pattern);
  if (found === null) return [pattern];
  const [, before, list, behind] = found;
  return list!.split(",").flatMap((one) => expand(`${before}${one}${behind}`));
}

Deno.test("tables of docs/performance.md are made of the records (deno task tables)", () => {
  assert.equal(withTables(page), page);
});

Deno.test("the table of docs/guides/gpus.md is of the GPUs that plans know (deno task tables)", () => {
  const words = (text: string) => text.replace(/[ |:-]+/g, " ");
  const guide = Deno.readTextFileSync(`${ROOT}docs/guides/gpus.md`);
  assert.equal(words(withTables(guide)), words(guide));
});

Deno.test("docs/performance.md names every file of records, and none that is missing", () => {
  const named = [...page.matchAll(/`(h\d00\/[^`\s]+)`/g)].flatMap(([, pattern]) =>
    expand(pattern!)
  );
  const files = recordFiles();
  assert.deepEqual([...new Set(named)].sort(), files.sort());
});

Deno.test("records take 1.5 MB at most", () => {
  const bytes = recordFiles().map((name) => Deno.statSync(`${ROOT}bench/results/${name}`).size);
  assert.ok(bytes.reduce((sum, one) => sum + one, 0) <= 1.5e6);
});
