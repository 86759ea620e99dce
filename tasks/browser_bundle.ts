/** Bundles for browsers: in ES2022, which has no `using`. */
import { basename, join } from "node:path";
import { TSC } from "./tsc.ts";

/**
 * What browsers of 2025 may lack: the symbols of `using`, its stack (Safari), and f16, of which all is told that asks for it. Only
 * symbols are made for everybody: the page's own code looks for the others.
 */
const LACKING = `const Float16Array = globalThis.Float16Array ?? class Float16Array {
  static BYTES_PER_ELEMENT = 2;
  constructor() {
    throw new TypeError("Cannot hold f16: there is no Float16Array here");
  }
  static from() {
    return new Float16Array();
  }
};
const DisposableStack = globalThis.DisposableStack ?? class DisposableStack {
  #held = [];
  use(value) {
    if (value != null) this.#held.push(() => value[Symbol.dispose]());
    return value;
  }
  defer(end) {
    this.#held.push(end);
  }
  move() {
    const other = new DisposableStack();
    [other.#held, this.#held] = [this.#held, []];
    return other;
  }
  dispose() {
    while (this.#held.length > 0) this.#held.pop()();
  }
  [Symbol.dispose]() {
    this.dispose();
  }
};
`;
/** What `using` needs where there are no such symbols yet. */
const SYMBOLS = `for (const name of ["dispose", "asyncDispose"]) {
  if (!(name in Symbol)) Object.defineProperty(Symbol, name, { value: Symbol(name) });
}
`;

/**
 * Writes a module and all that it imports as one file that current browsers run.
 *
 * @throws {Error} with what Deno or TypeScript says where it cannot be bundled.
 */
export async function bundleForBrowsers(
  module: string,
  output: string,
  { minify = false }: { readonly minify?: boolean } = {},
): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "wgconv-bundle-" });
  try {
    const whole = join(folder, "bundle.js");
    await deno("bundle", "-q", "--platform", "browser", "-o", whole, module);
    const flags = ["--allowJs", "--noCheck", "--noResolve", "--target", "es2022"];
    await deno(...TSC, whole, ...flags, "--module", "esnext", "--outDir", join(folder, "lowered"));
    const lowered = join(folder, "lowered", basename(whole));
    // What exports something is a module, in which `await` may stand by itself.
    const text = `${SYMBOLS}${LACKING}${await Deno.readTextFile(lowered)}export {};\n`;
    await Deno.writeTextFile(lowered, text);
    if (minify) {
      await deno("bundle", "-q", "--platform", "browser", "--minify", "-o", output, lowered);
    } else await Deno.copyFile(lowered, output);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function deno(...args: string[]): Promise<void> {
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args,
    cwd: new URL("..", import.meta.url),
    env: { NO_COLOR: "1" },
    stdin: "null",
  }).output();
  if (success) return;
  const said = new TextDecoder().decode(stderr) || new TextDecoder().decode(stdout);
  throw new Error(`Cannot bundle for browsers: ${said.trim()}`);
}
