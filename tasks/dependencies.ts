/**
 * `deno task dependencies`: writes docs/dependencies.md, an audit of the packages that deno.lock pins. Sizes and licences are
 * those of the files in Deno's cache, dates those of the registry.
 */
import { join } from "node:path";
import { markdownTable } from "../src/report/table.ts";
import { formatBytes } from "../src/report/format.ts";
import { DAWN } from "../src/gpu/dawn.ts";
import { ONNXRUNTIME } from "../src/models/onnxruntime.ts";
import { fetchPackage, type NativePackage } from "../src/npm_package.ts";

/** What each direct dependency is for, and what has it: the library, the program or development alone. */
const USES: Readonly<Record<string, readonly [where: string, use: string]>> = {
  "eta": ["library", "templates of shaders"],
  "fflate": ["library", "deflate and zip of `.npz`"],
  "fraction.js": ["library", "exact fractions of Winograd transforms"],
  "commander": ["program", "command line"],
  "@commander-js/extra-typings": ["program", "types of commander; no code"],
  "valibot": ["program", "schemas of records and files"],
  "@bufbuild/protobuf": ["program", "wire format of ONNX files"],
  "re2js": ["program", "patterns of `--match`, in linear time"],
  "shellwords": ["program", "splits commands of `--run` and `--worker`"],
  "text-table": ["program", "tables on terminals"],
  "markdown-table": ["program", "tables in Markdown"],
  "fast-png": ["program", "pictures of tensors"],
  "vega": ["program", "draws the charts of pages; loaded when needed"],
  "vega-lite": ["program", "describes them"],
  "fast-check": ["tests", "random inputs"],
  "@valibot/to-json-schema": ["docs", "JSON Schema of records"],
};

/** Packages that are fetched when they are first needed: for what, and what their licence files add to what npm says. */
const OPTIONAL: readonly (readonly [native: NativePackage, use: string, licence?: string])[] = [
  [DAWN, "`--backend dawn`", "Dawn BSD-3-Clause"],
  [ONNXRUNTIME, "shapes that a model leaves open, `layers --dump`"],
];

interface Lock {
  readonly specifiers: Readonly<Record<string, string>>;
  readonly npm: Readonly<Record<string, { readonly dependencies?: readonly string[] }>>;
}

interface Info {
  readonly npmCache: string;
}

/** A package's folder in Deno's cache. */
async function cacheFolder(): Promise<string> {
  const { stdout } = await new Deno.Command(Deno.execPath(), { args: ["info", "--json"] }).output();
  const { npmCache }: Info = JSON.parse(new TextDecoder().decode(stdout));
  return join(npmCache, "registry.npmjs.org");
}

/** `vega-lite@6.5.0_vega@6.4.0`: its name and version. */
function nameAndVersion(id: string): [name: string, version: string] {
  const [, name = "", version = ""] = /^(@?[^@]+)@([^_]+)/.exec(id) ?? [];
  return [name, version];
}

/** A package and all that it leads to. */
function closure(lock: Lock, id: string): Set<string> {
  const ids = Object.keys(lock.npm);
  const left = [id];
  const met = new Set(left);
  for (let one; (one = left.pop()) !== undefined;) {
    for (const dependency of lock.npm[one]?.dependencies ?? []) {
      // A name alone stands for its only version.
      const found = ids.find((other) =>
        other === dependency || nameAndVersion(other)[0] === dependency
      );
      if (found === undefined || met.has(found)) continue;
      met.add(found);
      left.push(found);
    }
  }
  return met;
}

function sizeOf(folder: string): number {
  let bytes = 0;
  for (const { name, isDirectory } of Deno.readDirSync(folder)) {
    const path = join(folder, name);
    bytes += isDirectory ? sizeOf(path) : Deno.statSync(path).size;
  }
  return bytes;
}

/** The page. */
export async function dependenciesPage(): Promise<string> {
  const lock: Lock = JSON.parse(Deno.readTextFileSync(new URL("../deno.lock", import.meta.url)));
  const cache = await cacheFolder();
  const folderOf = (id: string) => join(cache, ...nameAndVersion(id));
  const licenceOf = (id: string): string => {
    const { license } = JSON.parse(Deno.readTextFileSync(join(folderOf(id), "package.json")));
    return String(license ?? "not said").replace(/^\((.*)\)$/, "$1");
  };
  const day = (date: unknown) => typeof date === "string" ? date.slice(0, 10) : "-";
  const direct = Object.entries(lock.specifiers).map(([specifier, version]) => {
    const [name] = nameAndVersion(specifier.replace("npm:", ""));
    return `${name}@${version}`;
  });
  const order = Object.keys(USES);
  direct.sort((a, b) => order.indexOf(nameAndVersion(a)[0]) - order.indexOf(nameAndVersion(b)[0]));
  const shipped = new Set<string>();
  const rows = direct.map((id) => {
    const [name, version] = nameAndVersion(id);
    const use = USES[name];
    if (use === undefined) {
      throw new Error(`Cannot describe ${name}: say in tasks/dependencies.ts what it is for`);
    }
    const { time = {}, "dist-tags": tags } = JSON.parse(
      Deno.readTextFileSync(join(cache, name, "registry.json")),
    );
    const all = closure(lock, id);
    if (use[0] === "library" || use[0] === "program") all.forEach((one) => shipped.add(one));
    const size = [...all].reduce((sum, one) => sum + sizeOf(folderOf(one)), 0);
    return [
      name,
      version,
      licenceOf(id),
      day(time[version]),
      day(time[tags.latest]),
      formatBytes(sizeOf(folderOf(id))),
      all.size === 1 ? "-" : `${all.size - 1}, ${formatBytes(size)}`,
      use[0],
      use[1],
    ];
  });
  for (const [native] of OPTIONAL) await fetchPackage(native);
  const fetched = OPTIONAL.map(([{ name, version, megabytes }, use, licence]) => {
    const { time = {}, "dist-tags": tags } = JSON.parse(
      Deno.readTextFileSync(join(cache, name, "registry.json")),
    );
    const id = `${name}@${version}`;
    return [
      name,
      version,
      [licenceOf(id), ...licence === undefined ? [] : [licence]].join(", "),
      day(time[version]),
      day(time[tags.latest]),
      `${megabytes} MB`,
      formatBytes(sizeOf(folderOf(id))),
      use,
    ];
  });
  const licences = Map.groupBy([...shipped], licenceOf);
  const counts = [...licences].sort(([, a], [, b]) => b.length - a.length)
    .map(([licence, { length }]) => `${length} ${licence}`).join(", ");
  const total = [...shipped].reduce((sum, one) => sum + sizeOf(folderOf(one)), 0);
  const columns = [
    "package",
    "version",
    "licence",
    "released",
    "latest release",
    "size",
    "with it",
    "in",
    "for",
  ];
  // Backticks of uses are Markdown's.
  const tableOf = (titles: readonly string[], rows: readonly (readonly string[])[]) =>
    markdownTable(titles.map((title) => ({ title })), rows).replaceAll("\\`", "`");
  const table = tableOf(columns, rows);
  const fetchedColumns = [...columns.slice(0, 5), "download", "on disk", "for"];
  const deno = Deno.statSync(Deno.realPathSync(Deno.execPath())).size;
  return `# Dependencies

\`deno task dependencies\` makes this page of \`deno.lock\`, Deno's cache and the registry's dates.
Versions are pinned, with hashes. "With it" is how many packages a package brings, and the size of
all of them on disk.

${table}

The program and the library install ${shipped.size} packages, ${
    formatBytes(total)
  }: ${counts}. Vega is
most of them. Bundles leave out what is not imported. The npm package holds such a bundle and depends
on one package, \`deno\` (MIT), whose program takes
${formatBytes(deno)}.

## Fetched when first needed

These have native code. No lock file or package names them. The program says on stderr what it
fetches, and loads their code only if its SHA-256 is the one in \`src/gpu/dawn.ts\` or
\`src/models/onnxruntime.ts\`. Their install scripts do not run, and
of their dependencies nothing is loaded.

${tableOf(fetchedColumns, fetched)}
`;
}

if (import.meta.main) {
  await Deno.writeTextFile(
    new URL("../docs/dependencies.md", import.meta.url),
    await dependenciesPage(),
  );
}
