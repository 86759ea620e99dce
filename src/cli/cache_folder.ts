import { join } from "node:path";

/** A file of ours in the user's cache directory; undefined where there is no such place, or it may not be known. */
export function cachePath(...names: readonly string[]): string | undefined {
  const folder = Deno.build.os === "windows"
    ? variable("LOCALAPPDATA")
    : variable("XDG_CACHE_HOME") ?? under(variable("HOME"), ".cache");
  return under(folder, join("wgconv", ...names));
}

function variable(name: string): string | undefined {
  const { state } = Deno.permissions.querySync({ name: "env", variable: name });
  return state === "granted" ? Deno.env.get(name) || undefined : undefined;
}

function under(folder: string | undefined, path: string): string | undefined {
  return folder === undefined ? undefined : join(folder, path);
}
