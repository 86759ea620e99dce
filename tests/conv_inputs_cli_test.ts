/** Shapes and layouts of files that people have, by `wgconv conv` on the CPU. */
import assert from "#assert";
import { join } from "node:path";
import { readNpy, writeNpy } from "../src/npy/mod.ts";
import { fillTensor } from "../src/tensor/fill.ts";
import { convertLayout, type FileFilterLayout, type Layout } from "../src/tensor/layout.ts";
import { type Tensor, tensor } from "../src/tensor/tensor.ts";
import { wgconvHere } from "./support/in_process.ts";

async function inFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await body(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Runs `wgconv conv` on files of these tensors, and reads its result. */
async function conv(
  folder: string,
  files: Readonly<Record<string, Tensor>>,
  ...more: readonly string[]
): Promise<Tensor> {
  const args = ["conv", "--device", "cpu", "--force", "--output", join(folder, "y.npy")];
  for (const [option, whole] of Object.entries(files)) {
    const path = join(folder, `${option}.npy`);
    await writeNpy(path, whole);
    args.push(`--${option}`, path);
  }
  const { code, stderr } = await wgconvHere([...args, ...more]);
  assert.equal(code, 0, stderr);
  return await readNpy(join(folder, "y.npy"));
}

const made = (shape: readonly number[], seed: number) => fillTensor("f32", shape, "integer", seed);
const reshaped = ({ dtype, data }: Tensor, shape: readonly number[]) => tensor(dtype, shape, data);

const INPUT = made([1, 4, 6, 5], 1);
const FILTER = made([3, 4, 3, 2], 2);
const GRADIENT = made([1, 3, 4, 4], 3);

Deno.test("conv takes a single image without a batch, and its result has none", async () => {
  await inFolder(async (folder) => {
    for (const layout of ["nchw", "nhwc", "chwn"] as const) {
      const options = ["--layout", layout, "--filter-layout", "kcrs"];
      const input = convertLayout(INPUT, "nchw", layout);
      const whole = await conv(folder, { input, filter: FILTER }, ...options);
      const image = reshaped(input, layout === "chwn" ? [4, 6, 5] : input.shape.slice(1));
      const single = await conv(folder, { input: image, filter: FILTER }, ...options);
      const sizes = { nchw: [3, 4, 4], nhwc: [4, 4, 3], chwn: [3, 4, 4] };
      assert.deepEqual(single, reshaped(whole, sizes[layout]));
    }
    const output = reshaped(GRADIENT, [3, 4, 4]);
    const back = ["--op", "bwd-data"];
    const wholeBack = await conv(folder, { "grad-output": GRADIENT, filter: FILTER }, ...back);
    const singleBack = await conv(folder, { "grad-output": output, filter: FILTER }, ...back);
    assert.deepEqual(singleBack, reshaped(wholeBack, [4, 6, 5]));
    const both = ["--op", "bwd-filter"];
    const wholeFilter = await conv(folder, { input: INPUT, "grad-output": GRADIENT }, ...both);
    assert.deepEqual(wholeFilter.shape, [3, 4, 3, 2]);
    const input = reshaped(INPUT, [4, 6, 5]);
    for (const one of [GRADIENT, output]) {
      const files = { input, "grad-output": one };
      assert.deepEqual(await conv(folder, files, ...both, "--filter-size", "3,2"), wholeFilter);
    }
  });
});

Deno.test("conv reads and writes filters of TensorFlow and JAX, rsck", async () => {
  await inFolder(async (folder) => {
    const lying = (filter: Tensor, to: FileFilterLayout) => convertLayout(filter, "kcrs", to);
    for (const layout of ["nchw", "nhwc", "chwn"] as const satisfies readonly Layout[]) {
      const options = ["--layout", layout, "--filter-layout"];
      const input = convertLayout(INPUT, "nchw", layout);
      const gradient = convertLayout(GRADIENT, "nchw", layout);
      const filter = lying(FILTER, "rsck");
      assert.deepEqual(filter.shape, [3, 2, 4, 3]);
      assert.deepEqual(
        await conv(folder, { input, filter }, ...options, "rsck"),
        await conv(folder, { input, filter: FILTER }, ...options, "kcrs"),
      );
      const data = { "grad-output": gradient, filter };
      assert.deepEqual(
        await conv(folder, data, "--op", "bwd-data", ...options, "rsck"),
        await conv(folder, { ...data, filter: FILTER }, "--op", "bwd-data", ...options, "kcrs"),
      );
      const files = { input, "grad-output": gradient };
      const kcrs = await conv(folder, files, "--op", "bwd-filter", ...options, "kcrs");
      const rsck = await conv(folder, files, "--op", "bwd-filter", ...options, "rsck");
      assert.deepEqual(rsck, lying(kcrs, "rsck"));
    }
    // In chunks of the batch, too.
    const pair = { input: made([2, 4, 6, 5], 5), "grad-output": made([2, 3, 4, 4], 6) };
    const chunks = ["--op", "bwd-filter", "--chunk", "1", "--filter-layout"];
    const whole = await conv(folder, pair, ...chunks, "kcrs");
    assert.deepEqual(await conv(folder, pair, ...chunks, "rsck"), lying(whole, "rsck"));
    // In int8, which kernels take in one layout only.
    const [input, filter] = [convertLayout(INPUT, "nchw", "nhwc"), lying(FILTER, "rsck")];
    const nhwc = ["--layout", "nhwc", "--filter-layout", "rsck"];
    const int8 = await conv(folder, { input, filter }, ...nhwc, "--dtype", "i8");
    const exact = await conv(folder, { input, filter }, ...nhwc);
    assert.deepEqual([...int8.data], [...exact.data]);
    const path = join(folder, "rsck.npy");
    const convert = ["tensor", "convert", join(folder, "filter.npy"), path];
    const to = ["--from-layout", "rsck", "--to-layout", "kcrs"];
    assert.equal((await wgconvHere([...convert, ...to])).code, 0);
    assert.deepEqual(await readNpy(path), FILTER);
  });
});

Deno.test("conv takes a bias as it broadcasts to the output, or of one value", async () => {
  await inFolder(async (folder) => {
    for (const layout of ["nchw", "nhwc", "chwn"] as const) {
      const input = convertLayout(INPUT, "nchw", layout);
      const files = { input, filter: FILTER };
      const options = ["--layout", layout, "--filter-layout", "kcrs"];
      const bias = made([3], 4);
      const expected = await conv(folder, { ...files, bias }, ...options);
      const shapes = {
        nchw: [[1, 3, 1, 1], [3, 1, 1], [1, 3], [3, 1]],
        nhwc: [[1, 1, 1, 3], [1, 1, 3], [1, 3]],
        chwn: [[3, 1, 1, 1], [1, 3]],
      };
      for (const shape of shapes[layout]) {
        const given = { ...files, bias: reshaped(bias, shape) };
        assert.deepEqual(await conv(folder, given, ...options), expected, `${layout} [${shape}]`);
      }
      const same = { ...files, bias: tensor("f32", [3], new Float32Array(3).fill(7)) };
      const sevens = await conv(folder, same, ...options);
      for (const shape of [[1], [], [1, 1, 1, 1]]) {
        const one = { ...files, bias: tensor("f32", shape, Float32Array.of(7)) };
        assert.deepEqual(await conv(folder, one, ...options), sevens);
      }
    }
    for (const shape of [[1, 1, 1, 3], [1, 1, 3], [4], [3, 3], [1, 1, 3, 1, 1]]) {
      const bias = join(folder, "bad.npy");
      await writeNpy(bias, made(shape, 1));
      const files = ["--input", join(folder, "x.npy"), "--filter", join(folder, "filter.npy")];
      await writeNpy(join(folder, "x.npy"), INPUT);
      const { code, stderr } = await wgconvHere(["conv", ...files, "--bias", bias]);
      assert.equal(code, 2);
      const expected =
        "expected [3], one value an output channel, [1, 3, 1, 1] as nchw broadcasts it, or [1]";
      assert.ok(stderr.includes(`bias has shape [${shape.join(", ")}], ${expected}`), stderr);
    }
  });
});
