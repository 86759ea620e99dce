import assert from "#assert";
import { treeSum } from "../sums.ts";
import { treeSteps } from "./products.ts";

Deno.test("treeSteps() adds all lanes, at most eight at once", () => {
  for (let lanes = 1; lanes <= 1024; lanes *= 2) {
    const { before, last } = treeSteps(lanes);
    assert.equal(before.reduce((all, one) => all * one, last), lanes);
    assert.ok([...before, last].every((one) => one <= 8 && (one > 1 || lanes === 1)), `${lanes}`);
  }
});

Deno.test("treeSum() adds every term once, halves first", () => {
  assert.equal(treeSum(["a"]), "a");
  assert.equal(treeSum(["a", "b"]), "(a + b)");
  assert.equal(treeSum(["a", "b", "c", "d"]), "((a + b) + (c + d))");
});
