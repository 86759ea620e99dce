import assert from "#assert";
import { parseDescriptor } from "./descriptor.ts";
import { occurrences } from "./occurrences.ts";

Deno.test("occurrences() reads *N inside and behind the quotes", () => {
  const named = (name: string) => occurrences(parseDescriptor(`ic1ih3oc1kh3${name}`).name);
  assert.deepEqual(['n"net:res2*3"', 'n"net:res2"*3', "nnet:res2*3"].map(named), [3, 3, 3]);
  assert.deepEqual(['n"a*b"', 'n"2*"', "", "n*12x"].map(named), [1, 1, 1, 1]);
});
