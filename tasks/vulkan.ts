/** Finding and installing a Vulkan driver, for the tasks that need one. */
import { taskEnvironment } from "./environment.ts";

const MOD = new URL("../mod.ts", import.meta.url);
/** Opens a device: not every adapter that a system offers can be. */
const PROBE = `import { openDevice } from ${JSON.stringify(MOD.href)};
console.log((await openDevice()).info.adapter);
Deno.exit();`;

/** Ends what is not done after ten minutes: a download, a package's installation or a driver may stand still. */
function patience(): AbortSignal {
  return AbortSignal.timeout(600_000);
}

/** The name of the adapter a fresh process finds; undefined where there is none. */
export async function findAdapterName(
  env: Readonly<Record<string, string>> = {},
): Promise<string | undefined> {
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["eval", "--quiet", PROBE],
    env: { ...taskEnvironment(), ...env },
    stderr: "null",
    signal: patience(),
  }).output();
  return new TextDecoder().decode(stdout).trim() || undefined;
}

/** Runs a command with its output shown; whether it ran and succeeded. */
export async function succeeds(command: string, args: readonly string[]): Promise<boolean> {
  try {
    const child = new Deno.Command(command, {
      args: [...args],
      env: taskEnvironment(),
      signal: patience(),
    });
    return (await child.spawn().status).success;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/** Whether `command` runs quietly to success. */
async function quietly(command: string, args: readonly string[]): Promise<boolean> {
  try {
    const child = new Deno.Command(command, {
      args: [...args],
      stdin: "null",
      stdout: "null",
      stderr: "null",
      signal: patience(),
    });
    return (await child.output()).success;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/** Installs Debian packages with apt-get, where this user may: as root, or with sudo that asks nothing. */
export async function aptInstall(packages: readonly string[]): Promise<boolean> {
  if (Deno.build.os !== "linux" || !await quietly("apt-get", ["--version"])) return false;
  const root = Deno.uid() === 0;
  if (!root && !await quietly("sudo", ["-n", "true"])) return false;
  const [command, prefix] = root ? ["apt-get", []] : ["sudo", ["-n", "apt-get"]];
  const install = ["install", "-y", "-qq", "--no-install-recommends", ...packages];
  console.log(`Installing ${packages.join(" ")} with apt-get`);
  if (await quietly(command, [...prefix, ...install])) return true;
  await quietly(command, [...prefix, "update", "-qq"]);
  return await quietly(command, [...prefix, ...install]);
}

/** Packages of lavapipe, the Vulkan driver that computes on the CPU, on Debian and Ubuntu. */
export const LAVAPIPE_PACKAGES = ["mesa-vulkan-drivers", "libvulkan1"];
