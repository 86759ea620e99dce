import assert from "#assert";
import { parseManifest, parseNvidiaVersion } from "./drivers.ts";

Deno.test("parseManifest() reads library and version", () => {
  const text = `{"file_format_version": "1.0.0",
    "ICD": {"api_version": "1.3.230", "library_path": "libvulkan_lvp.so"}}`;
  assert.deepEqual(parseManifest("lvp.json", text), {
    manifest: "lvp.json",
    library: "libvulkan_lvp.so",
    apiVersion: "1.3.230",
  });
});

Deno.test("parseManifest() passes over text that is no manifest", () => {
  for (const text of ["", "{", "null", "[]", `{"ICD": {}}`, `{"layer": {}}`]) {
    assert.equal(parseManifest("x.json", text), undefined, text);
  }
});

Deno.test("parseNvidiaVersion() reads both kinds of kernel module", () => {
  const closed = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 2024\n";
  const open =
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (x)\n";
  assert.equal(parseNvidiaVersion(closed), "535.183.01");
  assert.equal(parseNvidiaVersion(open), "580.95.05");
  assert.equal(parseNvidiaVersion("GCC version: 12.2.0\n"), undefined);
});
