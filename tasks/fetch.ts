/** Everything that tests need from a network: fetched before they start, so that none of them asks for one. */
import { UnsupportedError } from "../src/errors.ts";
import { fetchAddon } from "../src/gpu/dawn.ts";
import { TSC } from "./tsc.ts";
import { succeeds } from "./vulkan.ts";

/** Fetches dependencies (as the lock file has them), the bundler and Dawn; false where that fails. */
export async function fetchAll(): Promise<boolean> {
  console.log("deno install");
  if (!await succeeds(Deno.execPath(), ["install", "--quiet"])) return false;
  if (!await succeeds(Deno.execPath(), [...TSC, "--version"])) return false;
  // Deno gets its bundler when it is first asked to bundle.
  const directory = await Deno.makeTempDir({ prefix: "wgconv-fetch-" });
  try {
    const bundle = ["bundle", "--quiet", "--output", `${directory}/wgconv.js`, "main.ts"];
    if (!await succeeds(Deno.execPath(), bundle)) return false;
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
  try {
    console.log(`Dawn: ${await fetchAddon()}`);
    return true;
  } catch (error) {
    if (!(error instanceof UnsupportedError)) throw error;
    console.error(error.message);
    return false;
  }
}
