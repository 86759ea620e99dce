/**
 * Sets what a WebGPU implementation reads from the environment before it is first asked for an adapter.
 *
 * On Linux an OpenGL fallback calls itself by the same name as the Vulkan driver, so a machine without
 * Vulkan would be measured through OpenGL unseen: Vulkan or nothing. And Mesa complains on stderr where
 * `XDG_RUNTIME_DIR` is missing, as it is in containers.
 */
export function prepareEnvironment(): void {
  if (Deno.build.os !== "linux") return;
  setDefault("DENO_WEBGPU_BACKEND", "vulkan");
  setDefault("XDG_RUNTIME_DIR", "/tmp");
}

/** Sets a variable that is not set, where this process may. */
function setDefault(variable: string, value: string): void {
  const permission = Deno.permissions.querySync({ name: "env", variable });
  if (permission.state === "granted" && !Deno.env.has(variable)) Deno.env.set(variable, value);
}
