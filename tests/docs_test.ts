import assert from "#assert";
import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path/posix";
import { madeDocs } from "../tasks/make_docs.ts";
import { wgconv } from "./cli.ts";
import { wgconvHere } from "./support/in_process.ts";
import { DAWN } from "../src/gpu/dawn.ts";
import { ONNXRUNTIME } from "../src/models/onnxruntime.ts";

const ROOT = `${import.meta.dirname}/../`;

/** Pages by their paths in the repository. */
function pages(): Map<string, string> {
  const docs = readdirSync(`${ROOT}docs`, { recursive: true, encoding: "utf8" })
    .map((path) => `docs/${path.replaceAll("\\", "/")}`)
    .filter((path) => path.endsWith(".md"));
  return new Map(
    ["README.md", "CHANGELOG.md", ...docs].map((
      path,
    ) => [path, Deno.readTextFileSync(ROOT + path)]),
  );
}

/** Anchors of a page's headings, as GitHub makes them. */
function anchors(text: string): string[] {
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
    heading!.toLowerCase().replace(/[^\p{L}\p{N}\- _]/gu, "").replaceAll(" ", "-")
  );
}

Deno.test("links between pages lead to files and headings that exist", () => {
  const all = pages();
  const broken: string[] = [];
  let links = 0;
  for (const [page, text] of all) {
    for (const [, target] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^https?:/.test(target!)) continue;
      links++;
      const [path, anchor] = target!.split("#");
      const to = path === "" ? page : join(dirname(page), path!);
      const ok = existsSync(ROOT + to) &&
        (anchor === undefined || anchors(all.get(to) ?? "").includes(anchor));
      if (!ok) broken.push(`${page}: ${target}`);
    }
  }
  assert.deepEqual(broken, []);
  assert.ok(links > 50, `${links} links`);
});

Deno.test("files of the product and its tests that pages name exist", () => {
  const missing: string[] = [];
  let names = 0;
  for (const [page, text] of pages()) {
    for (const [, path] of text.matchAll(/`((?:src|tests|tasks|bench|examples)\/[\w./-]+)`/g)) {
      names++;
      if (!existsSync(ROOT + path)) missing.push(`${page}: ${path}`);
    }
  }
  assert.deepEqual(missing, []);
  assert.ok(names > 50, `${names} names`);
});

Deno.test("the pages of commands and records are what the definitions make", async () => {
  const made = await madeDocs();
  for (const [name, text] of Object.entries(made)) {
    assert.equal(Deno.readTextFileSync(`${ROOT}docs/${name}`), text, "run `deno task docs`");
  }
  const commands = made["commands.md"]!;
  assert.ok(commands.length < 44_000, `${commands.length} bytes`);
  for (
    const words of ["## conv\n", "## verify\n", "**Common options**", "wgconv conv --input x.npy"]
  ) {
    assert.ok(commands.includes(words), words);
  }
  assert.match(
    made["records.md"]!,
    /^\| `time_ms\.median` \| number \| median of the samples \|$/m,
  );
});

Deno.test("what pages show of wgconv plan is what it says", async () => {
  let shown = 0;
  for (const [page, text] of pages()) {
    for (const [, args, said] of text.matchAll(/^\$ wgconv (plan [^\n"']+)\n([^]*?)^```$/gm)) {
      const { stdout } = await wgconv(args!.split(" "));
      const lines = stdout.split("\n");
      // `...` stands for what a page leaves out.
      const missing = said!.split("\n").filter((line) => line !== "..." && !lines.includes(line));
      assert.deepEqual(missing, [], `${page}: wgconv ${args}`);
      shown++;
    }
  }
  assert.ok(shown >= 2, String(shown));
});

Deno.test("help shows defaults as the page of commands does", async () => {
  const { stdout } = await wgconvHere(["help", "check"]);
  assert.match(stdout, /nchw, nhwc, chwn \(default nchw,nhwc\)/);
  assert.doesNotMatch(stdout, /\(default:/);
});

Deno.test("the audit of dependencies has those that deno.lock pins, and those that are fetched", () => {
  const { specifiers } = JSON.parse(Deno.readTextFileSync(`${ROOT}deno.lock`));
  const page = Deno.readTextFileSync(`${ROOT}docs/dependencies.md`);
  const fetched = [DAWN, ONNXRUNTIME].map(({ name, version }) => `npm:${name}@${version}`);
  for (const specifier of [...Object.keys(specifiers), ...fetched]) {
    const [, name, version] = /^npm:(.+)@([^@]+)$/.exec(specifier)!;
    const row = page.split("\n").find((line) => line.startsWith(`| ${name} `));
    assert.ok(row?.includes(`| ${version} `), `${specifier}: run \`deno task dependencies\``);
  }
});
