import assert from "#assert";
import { findListed, parseDawnAdapters } from "./list_adapters.ts";

const LISTED = [
  { adapter: "NVIDIA H200", software: false, manifest: "nvidia.json" },
  { adapter: "NVIDIA H200", software: false, manifest: "nvidia.json" },
  { adapter: "Intel Arc A770", software: false, manifest: "intel.json" },
  { adapter: "Intel Arc A770 LE", software: false, manifest: "intel.json" },
  { adapter: "llvmpipe (LLVM 15.0.6, 256 bits)", software: true, manifest: "lvp.json" },
];

Deno.test("findListed() takes an index, a whole name, or a part of one name", () => {
  const found = (wanted: string) => LISTED.indexOf(findListed(LISTED, wanted) as typeof LISTED[0]);
  assert.deepEqual(["0", "4", "h200", "LLVM", "intel arc a770"].map(found), [0, 4, 0, 4, 2]);
});

Deno.test("findListed() says what there is, and that equal GPUs cannot be told apart", () => {
  const refused = (wanted: string, pattern: RegExp, listed = LISTED) =>
    assert.throws(() => findListed(listed, wanted), pattern);
  refused(
    "5",
    /^UnsupportedError: Cannot choose adapter 5: expected an index or a part of a name of 0: NVIDIA H200, 1: NVIDIA H200, 2: /,
  );
  refused(
    "AMD",
    /^UnsupportedError: Cannot choose adapter AMD: expected an index or a part of a name of 0: NVIDIA H200/,
  );
  refused("", /^UnsupportedError: Cannot choose adapter "": expected an index or a part of a name/);
  refused("a", /^UnsupportedError: Cannot choose adapter a: it may be any of 0: NVIDIA H200/);
  refused("1", /takes the first of equal GPUs; give each process one of its own, by .* cgroups/);
  refused("0", /^UnsupportedError: Cannot choose adapter 0: there is none$/, []);
});

Deno.test("parseDawnAdapters() reads the names of a list, equal ones as often as they are there", () => {
  const message = `no suitable backends found
Available adapters:
 * backend: 'vulkan', name: 'NVIDIA H200'
 * backend: 'vulkan', name: 'NVIDIA H200'
 * backend: 'vulkan', name: 'SwiftShader Device (Subzero)'
 * backend: 'null', name: 'Null backend'`;
  assert.deepEqual(parseDawnAdapters(message), [
    { adapter: "NVIDIA H200", software: false },
    { adapter: "NVIDIA H200", software: false },
    { adapter: "SwiftShader Device (Subzero)", software: true },
  ]);
  assert.deepEqual(parseDawnAdapters("something else"), []);
});
