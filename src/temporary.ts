import { systemWords } from "./errors.ts";

/**
 * Makes a temporary folder or file, which the caller removes.
 *
 * @throws {Deno.errors.NotFound} and kin, naming what says where it would be.
 */
export async function makeTemporary(
  kind: "folder" | "file",
  options: Deno.MakeTempOptions = {},
): Promise<string> {
  try {
    return kind === "folder" ? await Deno.makeTempDir(options) : await Deno.makeTempFile(options);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const variable = Deno.build.os === "windows" ? "TMP" : "TMPDIR";
    const where = options.dir ?? `the folder that ${variable} names`;
    error.message = `Cannot make a temporary ${kind} in ${where}: ${systemWords(error)}`;
    throw error;
  }
}
