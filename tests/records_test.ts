import assert from "#assert";
import { type Replanned, replanRecords } from "../bench/replan.ts";

/** Records whose kernels today's plans do not all choose, by file, with the reason. */
const HISTORY: Readonly<Record<string, string>> = JSON.parse(
  Deno.readTextFileSync(new URL("records_history.json", import.meta.url)),
);
const RESULTS = new URL("../bench/results/", import.meta.url);
const PAGES = new URL("../docs/performance/", import.meta.url);

const entries = (folder: URL) => [...Deno.readDirSync(folder)].map(({ name }) => name).sort();

/** What was planned, not forced, of each file that holds such cases. */
function replanned(): Map<string, readonly Replanned[]> {
  const files = entries(RESULTS).flatMap((folder) =>
    entries(new URL(`${folder}/`, RESULTS))
      .filter((name) => name.endsWith(".jsonl"))
      .map((name) => `${folder}/${name}`)
  );
  return new Map(
    files.map((file) => {
      const text = Deno.readTextFileSync(new URL(file, RESULTS));
      return [file, replanRecords(text, file).filter(({ forced }) => !forced)] as const;
    }).filter(([, cases]) => cases.length > 0),
  );
}

const changed = (cases: readonly Replanned[] = []) =>
  cases.filter(({ kernel, today }) => kernel !== today);

const files = replanned();

Deno.test("kernels of records are those that are planned today, but of files that are history", () => {
  assert.ok(files.size > 20);
  const stale = [...files].filter(([file, cases]) =>
    !(file in HISTORY) && changed(cases).length > 0
  )
    .map(([file, cases]) =>
      `${file}: ${
        changed(cases).length
      } of ${cases.length} (deno run -A bench/replan.ts -v lists them): ` +
      "measure it again, or list it in tests/records_history.json and mark the pages that name it"
    );
  assert.deepEqual(stale, []);
});

Deno.test("what is history has a reason, and kernels that are planned no more", () => {
  const wrong = Object.entries(HISTORY)
    .filter(([file, reason]) => reason === "" || changed(files.get(file)).length === 0)
    .map(([file]) => `${file}: all of its kernels are planned today, so it is current`);
  assert.deepEqual(wrong, []);
});

/** The files of records that a page names, by its folders; `*` and `{a,b}` as shells read them. */
function namedFiles(text: string): string[] {
  const folders = [...text.matchAll(/bench\/results\/([\w-]+)/g)].map(([, folder]) => folder!);
  const named = [...text.matchAll(/(?:bench\/results\/([\w-]+)\/)?([\w.*{},-]+\.jsonl)\b/g)];
  const patterns = named.map(([, folder, name = ""]) => {
    const pattern = name.replaceAll(".", "\\.").replaceAll("*", ".*")
      .replace(/\{([^}]*)\}/, (_, list: string) => `(?:${list.replaceAll(",", "|")})`);
    return new RegExp(`^(?:${folder ?? folders.join("|")})/${pattern}$`);
  });
  return [...files.keys()].filter((file) => patterns.some((pattern) => pattern.test(file)));
}

Deno.test("pages say how many kernels of the records that they name are planned otherwise since", () => {
  const pages = entries(PAGES).filter((name) => name.endsWith(".md"));
  const missing = pages.flatMap((page) => {
    const text = Deno.readTextFileSync(new URL(page, PAGES)).replaceAll(/\s+/g, " ");
    const others = text.replaceAll(/Planned otherwise since[^|#]*? cases\./g, "");
    return namedFiles(others).filter((file) => file in HISTORY).flatMap((file) => {
      const cases = files.get(file)!;
      const name = file.split("/")[1]!;
      const counts = `\`${name}\` \\d+ of ${cases.length}\\b`.replaceAll(".", "\\.");
      return new RegExp(`Planned otherwise since[^|#]*${counts}`).test(text)
        ? []
        : [`${page}: \`${name}\` ${changed(cases).length} of ${cases.length}`];
    });
  });
  assert.deepEqual(missing, []);
});
