import assert from "#assert";
import { parseDescriptor } from "../../web.ts";
import { NETWORKS, withBatch } from "./networks.ts";

Deno.test("the page has the suites' networks, whose layers can be parsed for any batch", () => {
  assert.ok(NETWORKS.size > 20, String(NETWORKS.size));
  const resnet = NETWORKS.get("resnet18")!;
  assert.deepEqual(resnet[1]!.name, "conv2");
  for (const { descriptor } of [...NETWORKS.values()].flat()) {
    assert.equal(parseDescriptor(withBatch(descriptor, 3)).batch, 3);
  }
});
