/** The pages of the npm package: those of the repository, without what leads out of the package. */
import { join, normalize } from "node:path/posix";

/** Files and folders of the repository that the npm package has: what help and messages name. */
const SHIPPED = [
  ...["README.md", "LICENSE", "CHANGELOG.md", "Containerfile", "docs", "tools"],
  ...["examples/kernels", "examples/workers", "examples/library.ts", "examples/accuracy.yml"],
  ...["examples/numpy_check.py", "examples/pytorch_check.py", "examples/gpus.sh"],
  ...["examples/one_gpu.sh", "examples/part.sh", "examples/merge.sh", "examples/parallel.sh"],
  "examples/slurm_array.sh",
];
/** What of those it has not. */
const LEFT = /^docs\/reports\/|onnx_worker|_test\.\w+$|\.pyc$/;

/** How the package is installed, in place of how a clone is. */
const INSTALL = `## Install

\`\`\`sh
npx ./wgconv-VERSION.tgz --help       # the program
npm install ./wgconv-VERSION.tgz      # in a project: npx wgconv --help
\`\`\`

The program needs Node 18 or later. npm installs Deno DENO, which runs it, beside it. Under Deno
\`import "wgconv"\` is the library. \`wgconv/web\` is for pages; in Node it plans, from Node 20 on. Its
f16 needs a browser that has \`Float16Array\`, or Node 24. CPU driver:
\`apt-get install mesa-vulkan-drivers libvulkan1\`.

`;

/** Paths of the files that the package has. */
export function packagedFiles(root: string): string[] {
  const files = (path: string): string[] =>
    Deno.statSync(join(root, path)).isFile ? [path] : [...Deno.readDirSync(join(root, path))]
      .flatMap(({ name }) => name === "__pycache__" ? [] : files(`${path}/${name}`));
  return SHIPPED.flatMap(files).filter((path) => !LEFT.test(path)).sort();
}

/**
 * A text of the repository as the package has it: links to what it lacks are their words, modules are the package's.
 *
 * @param shipped {@linkcode packagedFiles}.
 * @param versions Of the package and of Deno.
 */
export function packagedText(
  path: string,
  text: string,
  shipped: readonly string[],
  versions: { readonly wgconv: string; readonly deno: string },
): string {
  const modules = text.replace(/"(?:\.\.?\/)+mod\.ts"/g, '"wgconv"')
    .replace(/"(?:\.\.?\/)+web\.ts"/g, '"wgconv/web"');
  if (!path.endsWith(".md")) return modules;
  const has = (target: string) =>
    shipped.some((file) => file === target || file.startsWith(`${target}/`));
  const linked = modules.replace(/!?\[([^\]]*)\]\(([^)\s]+)\)/g, (link, words, to) => {
    if (/^(\w+:|#)/.test(to)) return link;
    return has(normalize(join(path, "..", to.split("#")[0]))) ? link : words;
  });
  if (path !== "README.md") return linked;
  const install = INSTALL.replaceAll("VERSION", versions.wgconv).replace("DENO", versions.deno);
  return linked.replace(/^## Install\n[^]*?(?=^## )/m, () => install);
}
