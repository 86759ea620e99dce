import assert from "#assert";
import { temporaryDirectory } from "../../tests/cli.ts";
import { writeNpy } from "../npy/mod.ts";
import { parseDescriptor } from "../problem/descriptor.ts";
import { tensor } from "../tensor/tensor.ts";
import { makeOperands } from "./data.ts";
import { type FuzzCase, runCase } from "./fuzz.ts";
import { convAsked, subjectOf } from "./problems.ts";
import { NO_EPILOGUE } from "../problem/epilogue.ts";
import type { ForeignKernel } from "./worker.ts";

/** A kernel in f16 whose results are right but for one in place of 0. */
function withoutZero(one: FuzzCase, value: number): ForeignKernel {
  return {
    async ask({ words }) {
      const subject = subjectOf(one.asked, one.dtype);
      const { values } = await subject.reference.of(makeOperands(subject, one), {});
      const result = Float16Array.from(values);
      const at = result.indexOf(0);
      assert.notEqual(at, -1);
      result[at] = value;
      await writeNpy(words.output!, tensor("f16", subject.shape, result));
      return {};
    },
    close: () => Promise.resolve(),
  };
}

Deno.test("sums of whole numbers in f16 may be of Winograd in f32, as in files: a product's are exact", async () => {
  using temporary = temporaryDirectory();
  const folder = temporary.path;
  const verdict = async (descriptor: string, value: number) => {
    const asked = convAsked(parseDescriptor(descriptor), {
      layout: "nchw",
      epilogue: NO_EPILOGUE,
    });
    const one = { asked, dtype: "f16", data: "integers", special: [], seed: 1 } as const;
    const judging = { arithmetic: "f16-f32", provider: "own" };
    return (await runCase(withoutZero(one, value), one, folder, judging)).verdict;
  };
  assert.equal(await verdict("mb1ic2ih4oc5kh3ph1", 2e-5), "pass");
  assert.equal(await verdict("mb1ic2ih3oc4kh1", 2e-5), "fail");
});
