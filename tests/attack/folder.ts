/** The folder that this process may write to (`run.ts`). */
export function attackFolder(): string {
  return Deno.env.get("WGCONV_ATTACK_FOLDER") ?? Deno.makeTempDirSync({ prefix: "wgconv-attack-" });
}
