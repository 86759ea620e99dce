import assert from "#assert";
import { join, normalize } from "node:path/posix";
import { ROOT } from "../tests/cli.ts";
import { packagedFiles, packagedText } from "./npm_pages.ts";

const VERSIONS = { wgconv: "1.2.3", deno: "4.5.6" };

Deno.test("the npm package has what its pages lead to, and what messages name", () => {
  const files = packagedFiles(ROOT);
  for (const name of ["docs/guides/gpus.md", "docs/accuracy.md", "tools/wgconv_torch.py"]) {
    assert.ok(files.includes(name), name);
  }
  const pages = files.filter((path) => path.endsWith(".md"));
  for (const path of pages) {
    const text = packagedText(path, Deno.readTextFileSync(join(ROOT, path)), files, VERSIONS);
    for (const [, to] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^(\w+:|#)/.test(to!)) continue;
      const target = normalize(join(path, "..", to!.split("#")[0]!));
      assert.ok(files.some((file) => `${file}/`.startsWith(`${target}/`)), `${path}: ${to}`);
    }
  }
});

Deno.test("packagedText() keeps links within the package, and says how the package is installed", () => {
  const shipped = ["docs/a.md", "docs/guides/b.md"];
  const of = (path: string, text: string) => packagedText(path, text, shipped, VERSIONS);
  assert.equal(of("docs/guides/b.md", "[A](../a.md#x), [B](../../src/b.ts)"), "[A](../a.md#x), B");
  assert.equal(
    of("docs/a.md", "[W](https://a.b) [H](#here) [G](guides)"),
    "[W](https://a.b) [H](#here) [G](guides)",
  );
  assert.equal(
    of("examples/x.ts", 'import { a } from "../mod.ts";'),
    'import { a } from "wgconv";',
  );
  const readme = of("README.md", "# T\n\n## Install\n\ndeno task demo\n\n## Jobs\n");
  assert.match(
    readme,
    /^# T\n\n## Install\n\n```sh\nnpx \.\/wgconv-1\.2\.3\.tgz[^]*Deno 4\.5\.6[^]*\n\n## Jobs\n$/,
  );
  assert.doesNotMatch(readme, /deno task/);
});
