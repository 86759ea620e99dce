import assert from "#assert";
import { closest, editDistance, suggestion } from "./closest.ts";

Deno.test("editDistance() counts insertions, deletions, substitutions and swaps", () => {
  assert.equal(editDistance("kitten", "sitting"), 3);
  assert.equal(editDistance("", "abc"), 3);
  assert.equal(editDistance("hi", "ih"), 1);
  assert.equal(editDistance("abc", "abc"), 0);
});

Deno.test("closest() names the nearest candidate", () => {
  assert.equal(closest("implicit-gem", ["direct", "implicit-gemm"]), "implicit-gemm");
  assert.equal(closest("A", ["b", "a"]), "a");
  assert.equal(closest("x", []), undefined);
});

Deno.test("suggestion() is silent where nothing is near", () => {
  assert.equal(suggestion("hi", ["mb", "ih"]), ', did you mean "ih"?');
  assert.equal(suggestion("winograd", ["auto", "direct"]), "");
  assert.equal(suggestion("tcsh", ["bash", "zsh"]), "");
  assert.equal(suggestion("bahs", ["bash", "zsh"]), ', did you mean "bash"?');
  assert.equal(suggestion("x", ["g", "mb"]), "");
});
