/**
 * Variables that a WebGPU implementation reads before it is first asked for an adapter, with their values where the user
 * has set none.
 *
 * On Linux an OpenGL fallback calls itself by the same name as the Vulkan driver, so a machine without
 * Vulkan would be measured through OpenGL unseen: Vulkan or nothing. And Mesa complains on stderr where
 * `XDG_RUNTIME_DIR` is missing, as it is in containers.
 */
export function deviceVariables(): Record<string, string> {
  if (Deno.build.os !== "linux") return {};
  const wanted = { DENO_WEBGPU_BACKEND: "vulkan", XDG_RUNTIME_DIR: "/tmp" };
  return Object.fromEntries(Object.entries(wanted).filter(([variable]) => isUnset(variable)));
}

/** Sets {@linkcode deviceVariables} in this process. */
export function prepareEnvironment(): void {
  for (const [variable, value] of Object.entries(deviceVariables())) Deno.env.set(variable, value);
}

/** Whether this process may set a variable, and nobody has. */
function isUnset(variable: string): boolean {
  const permission = Deno.permissions.querySync({ name: "env", variable });
  return permission.state === "granted" && !Deno.env.has(variable);
}
