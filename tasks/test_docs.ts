/** `deno task test:docs`: runs the examples in comments of the public surface, in README.md and in docs. */
import { readdirSync } from "node:fs";
import { succeeds } from "./vulkan.ts";

/** Files that hold examples in TypeScript. */
function filesWithExamples(): string[] {
  const within = (folder: string) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" }).map((path) => `${folder}/${path}`);
  return ["README.md", "mod.ts", "web.ts", ...within("docs"), ...within("src")]
    .filter((path) => /(?<!_test)\.(ts|md)$/.test(path))
    .filter((path) => /^( \* )?```ts$/m.test(Deno.readTextFileSync(path)))
    .toSorted();
}

/**
 * Arguments of `deno test` that run them. Types are not checked: Deno imports all that a file exports into each of its
 * examples, which `noUnusedLocals` then refuses.
 */
export function docTestArguments(): string[] {
  return ["--doc", "-A", "--no-check", "--cached-only", "--parallel", ...filesWithExamples()];
}

if (import.meta.main) {
  if (!await succeeds(Deno.execPath(), ["test", ...docTestArguments()])) Deno.exit(1);
}
