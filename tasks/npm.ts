/**
 * `deno task npm [--output dist/npm]`: the npm package in a folder, and `npm pack`'s file beside it. `npx wgconv` runs the program
 * with the npm package of Deno; `import "wgconv"` is the library under Deno, `wgconv/web` in pages.
 */
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { dirname, join, relative, resolve } from "node:path";
import * as library from "../mod.ts";
import { bundleForBrowsers } from "./browser_bundle.ts";
import { packagedFiles, packagedText } from "./npm_pages.ts";
import { TSC } from "./tsc.ts";

const { VERSION } = library;
/** What Node imports in place of the library, which it cannot parse: the same names, so that they are not what it complains about. */
const FOR_NODE = `throw new Error(
  "wgconv is a library for Deno: \`npx deno run -A main.ts\` runs yours; in Node import wgconv/web, or start the program, npx wgconv",
);
export const ${Object.keys(library).map((name) => `${name} = undefined`).join(", ")};
`;

/** The Deno that the program is tested with. */
const DENO = Deno.version.deno;

const PACKAGE = {
  name: "wgconv",
  version: VERSION,
  description: "Run, check and time convolutions and matrix products on any GPU with WebGPU",
  license: "MIT",
  type: "module",
  keywords: ["webgpu", "wgsl", "convolution", "winograd", "gemm", "benchmark", "accuracy"],
  bin: { wgconv: "bin/wgconv.cjs" },
  exports: {
    ".": {
      types: "./types/mod.d.ts",
      deno: "./lib/mod.js",
      node: "./lib/node.js",
      default: "./lib/mod.js",
    },
    "./web": { types: "./types/web.d.ts", default: "./lib/web.js" },
  },
  // Of the program; README.md says what wgconv/web needs. There is no public repository to name.
  engines: { node: ">=18" },
  dependencies: { deno: DENO },
};

/** Runs a command in the repository; throws what it said where it fails. */
async function run(command: string, args: readonly string[]): Promise<void> {
  const { success, stdout, stderr } = await new Deno.Command(command, {
    args: [...args],
    cwd: new URL("..", import.meta.url),
    stdin: "null",
  }).output();
  if (success) return;
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes).trim();
  throw new Error(`Cannot run ${command} ${args.join(" ")}: ${text(stderr) || text(stdout)}`);
}

const deno = (...args: string[]) => run(Deno.execPath(), args);

/** Writes the declarations that the two entries lead to. */
async function writeTypes(to: string): Promise<void> {
  const all = await Deno.makeTempDir({ prefix: "wgconv-types-" });
  try {
    const options = ["--declaration", "--emitDeclarationOnly", "--noCheck", "--outDir", all];
    const modules = ["--target", "esnext", "--module", "nodenext", "--allowImportingTsExtensions"];
    await deno(...TSC, "mod.ts", "web.ts", ...options, ...modules);
    const left = ["mod.ts", "web.ts"].map((name) => join(all, name));
    const met = new Set(left);
    for (let path; (path = left.pop()) !== undefined;) {
      const text = await Deno.readTextFile(path.replace(/\.ts$/, ".d.ts"));
      for (const [, name] of text.matchAll(/(?:from|import\()\s*"(\.[^"]*\.ts)"/g)) {
        const other = resolve(dirname(path), name!);
        if (!met.has(other)) left.push(other);
        met.add(other);
      }
      const written = join(to, relative(all, path).replace(/\.ts$/, ".d.ts"));
      await Deno.mkdir(dirname(written), { recursive: true });
      await Deno.writeTextFile(written, text.replaceAll(/("\.[^"]*)\.ts"/g, '$1.js"'));
    }
  } finally {
    await Deno.remove(all, { recursive: true });
  }
}

const { values } = parseArgs({ options: { output: { type: "string", default: "dist/npm" } } });
const folder = resolve(values.output);
await Deno.remove(folder, { recursive: true }).catch(() => {});
await Deno.mkdir(join(folder, "bin"), { recursive: true });
await deno("bundle", "-q", "--output", join(folder, "lib/wgconv.js"), "main.ts");
await deno("bundle", "-q", "--output", join(folder, "lib/mod.js"), "mod.ts");
await Deno.writeTextFile(join(folder, "lib/node.js"), FOR_NODE);
await bundleForBrowsers(
  fileURLToPath(new URL("../web.ts", import.meta.url)),
  join(folder, "lib/web.js"),
);
await writeTypes(join(folder, "types"));
await Deno.writeTextFile(
  join(folder, "package.json"),
  JSON.stringify(PACKAGE, undefined, 2) + "\n",
);
await Deno.copyFile("tasks/npm_bin.cjs", join(folder, "bin/wgconv.cjs"));
await Deno.chmod(join(folder, "bin/wgconv.cjs"), 0o755);
const root = fileURLToPath(new URL("..", import.meta.url));
const shipped = packagedFiles(root);
for (const path of shipped) {
  await Deno.mkdir(dirname(join(folder, path)), { recursive: true });
  if (/\.(md|ts)$/.test(path)) {
    const text = await Deno.readTextFile(join(root, path));
    const packaged = packagedText(path, text, shipped, { wgconv: VERSION, deno: DENO });
    await Deno.writeTextFile(join(folder, path), packaged);
  } else await Deno.copyFile(join(root, path), join(folder, path));
}
await run("npm", ["pack", folder, "--silent", "--pack-destination", dirname(folder)]);
console.log(`${relative(Deno.cwd(), dirname(folder))}/wgconv-${VERSION}.tgz`);
