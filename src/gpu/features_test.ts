import assert from "#assert";
import type { Kernel } from "../kernels/kernel.ts";
import { narrowSize, narrowSubgroups } from "./features.ts";

const KERNEL: Kernel = {
  name: "one",
  wgsl: "@compute @workgroup_size(64)\nfn main() {}",
  workgroupSize: [64, 1, 1],
  workgroupBytes: 0,
  bindings: [],
  features: [],
};
const SIZED = { subgroupMinSize: 8, subgroupMaxSize: 32 } as const;

Deno.test("narrowSize() is an Intel GPU's least where it has several and kernels may say theirs", () => {
  const granted = ["subgroup-size-control"];
  const size = (info: object, features = granted) => narrowSize(info as GPUAdapterInfo, features);
  assert.equal(size({ vendor: "intel", ...SIZED }), 8);
  assert.equal(size({ vendor: "intel", ...SIZED }, []), undefined);
  assert.equal(size({ vendor: "amd", ...SIZED }), undefined);
  assert.equal(size({ vendor: "intel", subgroupMinSize: 16, subgroupMaxSize: 16 }), undefined);
});

Deno.test("narrowSubgroups() fixes the subgroups of kernels that say nothing of them", () => {
  const { wgsl, features } = narrowSubgroups(KERNEL, 8);
  assert.equal(wgsl, "@compute @workgroup_size(64) @subgroup_size(8)\nfn main() {}");
  assert.deepEqual(features, ["subgroups", "subgroup-size-control"]);
});

Deno.test("narrowSubgroups() leaves kernels as they are that say theirs, are a user's, or have too many threads", () => {
  const same = (kernel: Kernel, size: number | undefined) =>
    assert.equal(narrowSubgroups(kernel, size), kernel);
  same(KERNEL, undefined);
  same({ ...KERNEL, features: ["subgroup-size-control"] }, 8);
  same({ ...KERNEL, file: "mine.wgsl" }, 8);
  same({ ...KERNEL, workgroupSize: [1024, 1, 1] }, 8);
  same({ ...KERNEL, workgroupSize: [4, 16, 1] }, 8);
});
