import assert from "#assert";
import {
  BARRIER,
  block,
  forLoop,
  is,
  printStatements,
  rewrite,
  text,
  withoutLastBarrier,
} from "./tree.ts";

Deno.test("statements are printed as WGSL, blocks indented", () => {
  const tree = [
    forLoop("i", "0u", "n", [text("    a();"), BARRIER], 4),
    block([text("    b();"), text("")], "if (n > 0u)"),
    block([forLoop("j", "1u", "4u", [text("      c(j);")])]),
  ];
  assert.equal(
    printStatements(tree),
    `  for (var i = 0u; i < n; i += 4u) {
    a();
    workgroupBarrier();
  }
  if (n > 0u) {
    b();
  }
  {
    for (var j = 1u; j < 4u; j++) {
      c(j);
    }
  }`,
  );
});

Deno.test("rewrite() reaches statements at any depth, and gives none, one or several", () => {
  const tree = [
    forLoop("i", "0u", "n", [text("a", "fetch"), block([text("b", "store")]), BARRIER]),
  ];
  const changed = rewrite(
    tree,
    (one) => is(one, "fetch") ? [] : is(one, "store") ? [one, BARRIER] : [one],
  );
  assert.deepEqual(changed, [
    forLoop("i", "0u", "n", [block([text("b", "store"), BARRIER]), BARRIER]),
  ]);
});

Deno.test("withoutLastBarrier() leaves other barriers", () => {
  assert.deepEqual(withoutLastBarrier([BARRIER, text("a"), BARRIER]), [BARRIER, text("a")]);
  assert.deepEqual(withoutLastBarrier([text("a")]), [text("a")]);
});
