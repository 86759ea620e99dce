import type { Backend } from "./provider.ts";

/** Why there is no adapter and what to do, in one sentence. */
export function noAdapterMessage(backend: Backend): string {
  if (backend === "dawn") {
    return "Cannot open a GPU through Dawn: it accepts no Vulkan driver of this machine " +
      "(lavapipe before 23 is refused); without a GPU install SwiftShader, which Debian's package " +
      "chromium brings, and set VK_DRIVER_FILES=/usr/lib/chromium/vk_swiftshader_icd.json";
  }
  if (Deno.build.os !== "linux") return "Cannot open a GPU: the system offers no adapter";
  return "Cannot open a GPU: no Vulkan driver was found; install the GPU's own, or for the CPU " +
    "`apt-get install mesa-vulkan-drivers libvulkan1`";
}
