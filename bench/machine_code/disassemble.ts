import { codeObjects } from "./nvidia_cache.ts";
import { type Listing, readListing } from "./sass.ts";

/** What nvdisasm is called by, and where its files lie. */
export interface Disassembler {
  readonly program: string;
  /** Compute capability times ten. */
  readonly capability: number;
  readonly folder: string;
}

/** Whether there is a program of that name which answers. */
export function isThere(program: string): boolean {
  try {
    return new Deno.Command(program, { args: ["--version"], stdout: "null", stderr: "null" })
      .outputSync().success;
  } catch {
    return false;
  }
}

/**
 * The listing of what a cache file holds, written to `NAME.sass` in the folder; undefined where it holds no code that
 * nvdisasm can read.
 */
export function disassemble(
  cache: string,
  name: string,
  { program, capability, folder }: Disassembler,
): Listing | undefined {
  for (const { kind, data } of codeObjects(Deno.readFileSync(`${folder}/${cache}`))) {
    const path = `${folder}/${cache}.${kind}`;
    Deno.writeFileSync(path, data);
    const args = kind === "elf" ? ["-c", path] : ["--binary", `SM${capability}`, path];
    const { success, stdout } = new Deno.Command(program, { args, stderr: "null" }).outputSync();
    Deno.removeSync(path);
    const text = new TextDecoder().decode(stdout);
    if (!success || !text.includes("EXIT")) continue;
    Deno.writeTextFileSync(`${folder}/${name}.sass`, text);
    return readListing(text);
  }
  return undefined;
}
