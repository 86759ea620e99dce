import assert from "#assert";
import { unzipSync, zipSync } from "../../src/deps/fflate.ts";
import { ROOT, run, temporaryDirectory } from "../cli.ts";
import { pythonWith } from "../python.ts";

const SCRIPT = `${ROOT}tests/make_golden.py`;
const GOLDEN = `${ROOT}fixtures/conv_pytorch_f64.zip`;

for (const [by, module] of [["numpy", "numpy"], ["torch", "torch"]] as const) {
  Deno.test(`the golden convolutions are what ${by} computes in float64, where Python has it`, async () => {
    const python = await pythonWith(module);
    if (python === undefined) return console.log(`left out: no Python has ${module}`);
    const check = (path: string) => run(python, [SCRIPT, "--check", path, "--by", by]);
    const { code, stdout, stderr } = await check(GOLDEN);
    assert.equal(code, 0, stdout + stderr);
    assert.match(stdout, /: 22 cases as they should be$/m);
    using temporary = temporaryDirectory();
    const files = unzipSync(await Deno.readFile(GOLDEN));
    // The last bytes of a double's mantissa do not count, an operand's bit does.
    files["pointwise/x.npy"]![200]! ^= 1;
    files["dilated_2/dw.npy"]![134]! ^= 0x10;
    files["odd_channels/y.npy"]![128]! ^= 1;
    const damaged = `${temporary.path}/damaged.zip`;
    await Deno.writeFile(damaged, zipSync(files, { level: 0 }));
    const found = await check(damaged);
    assert.equal(found.code, 1, found.stderr);
    assert.match(
      found.stdout,
      /^pointwise\/x\.npy has other values\ndilated_2\/dw\.npy is off by \S+ of the largest value\n$/,
    );
  });
}
