import assert from "#assert";
import { storedShare } from "./product_time.ts";
import { H200 } from "./device/h200.ts";
import { parseDescriptor } from "../problem/descriptor.ts";
import { request } from "../../tests/plan_request.ts";

Deno.test("storedShare() has images in turn leave whole where their planes are whole sectors", () => {
  const conv = request(parseDescriptor("mb8ic3ih16oc64kh3ph1", "fwd"));
  const share = (plane: number, interleave?: number, asked = conv) =>
    storedShare(asked, {
      row: plane,
      outer: 4 * 64 * plane,
      inner: 1,
      period: 4 * plane,
      group: 64 * plane,
      ...(interleave === undefined ? {} : { interleave }),
    }, 64);
  assert.equal(share(112 * 112, 64 * 112 * 112), 1);
  assert.equal(share(55 * 55, 64 * 55 * 55), H200.shares.single);
  const half = { ...conv, dtype: "f16" } as const;
  assert.equal(share(112 * 112, 64 * 112 * 112, half), 1);
  assert.equal(share(2 * 52, 64 * 2 * 52), 1, "a sector holds 8 of f32 ...");
  const apart = share(2 * 52, 64 * 2 * 52, half);
  assert.ok(apart < H200.shares.single, "... and 16 of f16, which take longer alone");
  assert.equal(share(112 * 112), 1, "by fours");
  assert.equal(share(55 * 55), H200.shares.single);
});
