/**
 * What the standalone program may do. Files are the user's to name, so all may be read and written; of the
 * environment it sees what it asks for; it starts no processes, opens no connections and loads nothing.
 */

/** Variables that the program, or a package inside it, reads or sets. */
export const ENVIRONMENT: readonly string[] = [
  "BUF_BIGINT_DISABLE",
  "CLICOLOR_FORCE",
  "DENO_WEBGPU_BACKEND",
  "FORCE_COLOR",
  "HOME",
  "LOCALAPPDATA",
  "NO_COLOR",
  "ORT_DISABLE_TELEMETRY",
  "VK_DRIVER_FILES",
  "VK_ICD_FILENAMES",
  "WGCONV_DAWN",
  "WGCONV_NVIDIA_DRIVER",
  "XDG_CACHE_HOME",
  "XDG_RUNTIME_DIR",
];

/** The permissions as flags. */
export const PERMISSIONS: readonly string[] = [
  "--no-prompt",
  "--allow-read",
  "--allow-write",
  `--allow-env=${ENVIRONMENT.join()}`,
];

/** Flags of `deno run` that keep it from looking at anything but the one file. */
export const ALONE: readonly string[] = [
  "--quiet",
  "--no-config",
  "--no-lock",
  "--no-remote",
  "--no-npm",
  "--cached-only",
];
