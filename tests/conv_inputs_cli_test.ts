/** Shapes and layouts of files that people have, by `wgconv conv` and `wgconv tensor`. */
import assert from "#assert";
import { join } from "node:path";
import { readNpy, writeNpy } from "../src/npy/mod.ts";
import { fillTensor } from "../src/tensor/fill.ts";
import { convertLayout, type FileFilterLayout, type Layout } from "../src/tensor/layout.ts";
import { type Tensor, tensor } from "../src/tensor/tensor.ts";
import { succeeds, wgconvHere } from "./support/in_process.ts";
import { inFolder } from "./cli.ts";

/** Runs `wgconv conv` on files of these tensors, on the CPU where nothing else is said, and reads its result. */
async function conv(
  folder: string,
  files: Readonly<Record<string, Tensor>>,
  ...more: readonly string[]
): Promise<Tensor> {
  const args = ["conv", "--force", "--output", join(folder, "y.npy")];
  if (!more.includes("--device")) args.push("--device", "cpu");
  for (const [option, whole] of Object.entries(files)) {
    const path = join(folder, `${option}.npy`);
    await writeNpy(path, whole);
    args.push(`--${option}`, path);
  }
  await succeeds([...args, ...more]);
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
    // In int8, which kernels take in one layout only, whatever the file's.
    const [input, filter] = [convertLayout(INPUT, "nchw", "nhwc"), lying(FILTER, "rsck")];
    const nhwc = ["--layout", "nhwc", "--filter-layout", "rsck"];
    const exact = await conv(folder, { input, filter }, ...nhwc);
    for (const layout of ["rsck", "kcrs", "crsk", "krsc"] as const) {
      const files = { input, filter: lying(FILTER, layout) };
      const options = ["--layout", "nhwc", "--filter-layout", layout, "--dtype", "i8"];
      assert.deepEqual([...(await conv(folder, files, ...options)).data], [...exact.data], layout);
    }
    await writeNpy(join(folder, "filter.npy"), filter);
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

Deno.test("conv of many images without a batch writes results without one", async () => {
  await inFolder(async (folder) => {
    await Deno.mkdir(join(folder, "frames"));
    const image = made([6, 5, 4], 1);
    for (const name of ["a", "b"]) await writeNpy(join(folder, "frames", `${name}.npy`), image);
    const options = ["--layout", "nhwc", "--filter-layout", "rsck", "--padding", "same"];
    const filter = convertLayout(FILTER, "kcrs", "rsck");
    const whole = await conv(folder, { input: reshaped(image, [1, 6, 5, 4]), filter }, ...options);
    const files = ["--input", join(folder, "frames", "*.npy")];
    const to = ["--filter", join(folder, "filter.npy"), "--output", join(folder, "out")];
    const args = ["conv", "--device", "cpu", ...files, ...to, ...options];
    await succeeds(args);
    for (const name of ["a", "b"]) {
      const result = await readNpy(join(folder, "out", `${name}.npy`));
      assert.deepEqual(result, reshaped(whole, [6, 5, 3]));
    }
  });
});

Deno.test("padding same with strides, a filter of rsck, one bias and an image, in chunks to a GPU", async () => {
  await inFolder(async (folder) => {
    const [input, filter] = [made([6, 8, 4], 1), made([3, 2, 4, 3], 2)];
    const options = ["--layout", "nhwc", "--filter-layout", "rsck", "--stride", "2"];
    const files = { input, filter, bias: tensor("f32", [1], Float32Array.of(7)) };
    for (const [padding, before] of [["same", 0], ["same-lower", 1]] as const) {
      // Six rows and one of zeros are three windows; eight columns need no zeros.
      const expected = new Float32Array(3 * 4 * 3).map((_, flat) => {
        const [p, q, k] = [Math.floor(flat / 12), Math.floor(flat / 3) % 4, flat % 3];
        let sum = 7;
        for (let r = 0; r < 3; r++) {
          const h = 2 * p + r - before;
          if (h < 0 || h > 5) continue;
          for (let s = 0; s < 2; s++) {
            for (let c = 0; c < 4; c++) {
              const at = (h * 8 + 2 * q + s) * 4 + c;
              sum += input.data[at]! * filter.data[((r * 2 + s) * 4 + c) * 3 + k]!;
            }
          }
        }
        return sum;
      });
      const device = ["--device", "gpu", "--check", "none", "--runs", "1"];
      const result = await conv(folder, files, ...options, "--padding", padding, ...device);
      assert.deepEqual(result, tensor("f32", [3, 4, 3], expected));
    }
  });
});

Deno.test("tensor convert brings an image without a batch from hwc to chw", async () => {
  await inFolder(async (folder) => {
    const [image, to, back] = ["image", "to", "back"].map((name) => join(folder, `${name}.npy`));
    const whole = made([5, 4, 3], 1);
    await writeNpy(image!, whole);
    const convert = (...args: string[]) => wgconvHere(["tensor", "convert", ...args]);
    const there = await convert(image!, to!, "--from-layout", "hwc", "--to-layout", "chw");
    assert.equal(there.code, 0, there.stderr);
    const lying = convertLayout(reshaped(whole, [1, 5, 4, 3]), "nhwc", "nchw");
    assert.deepEqual(await readNpy(to!), reshaped(lying, [3, 5, 4]));
    assert.equal((await convert(to!, back!, "--from-layout", "chw", "--to-layout", "hwc")).code, 0);
    assert.deepEqual(await readNpy(back!), whole);
    const mixed = await convert(image!, "-", "--from-layout", "hwc", "--to-layout", "nchw");
    assert.match(
      mixed.stderr,
      /hwc and nchw are not both layouts of activations, of filters, or of/,
    );
  });
});
