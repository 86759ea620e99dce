/** The folder that this process may write to (`run.ts`). */
export function attackFolder(): string {
  return Deno.env.get("WGCONV_ATTACK_FOLDER") ?? Deno.makeTempDirSync({ prefix: "wgconv-attack-" });
}

/** Arguments of Deno for a program that is attacked: offline, and with no other place to write to than `folder`. */
export function attackedProgram(folder: string, program: URL, args: readonly string[]): string[] {
  return [
    "run",
    "--no-check",
    "--quiet",
    "--cached-only",
    "--allow-read",
    "--allow-env",
    "--allow-sys",
    "--allow-run",
    "--allow-ffi",
    // Whatever is written elsewhere is found out.
    `--allow-write=${folder},/dev/null,/dev/full`,
    program.href,
    ...args,
  ];
}
