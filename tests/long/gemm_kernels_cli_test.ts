/** Which kernels the command line makes of products: policies, tiles, splits, balance, vectors. */
import assert from "#assert";
import { refuses, succeeds, wgconvHere } from "../support/in_process.ts";

const once = "--runs 1";

Deno.test("wgconv says which optimisations the tuned kernel has not, or has", async () => {
  const options = "--without double-buffer,peel --with prefetch";
  const plan = "plan --problem mb4ic4ih9oc4kh3 --algorithm im2win";
  for (const command of ["gemm --size 3,4,5", plan]) {
    const { stdout, stderr } = await succeeds(`${command} ${options}`);
    assert.match(stdout, /_no_peel$/m);
    assert.equal(
      stderr,
      "wgconv: note: --without double-buffer changes nothing, it is off by default\n" +
        "wgconv: note: --with prefetch changes nothing, it is on by default\n",
    );
  }
});

Deno.test("what changes nothing leaves auto its choice, and f16 tiles are refused to f32", async () => {
  const plan = "plan --problem mb4ic4ih9oc4kh3";
  const alone = await wgconvHere(plan);
  const same = await wgconvHere(`${plan} --with prefetch`);
  assert.equal(same.stdout, alone.stdout);
  await refuses(
    `${plan} --with half-tile`,
    /^wgconv: Cannot vary the main loop: half-tile is of f16 products/,
  );
});

Deno.test("wgconv gemm and conv take a tile by its sizes", async () => {
  for (
    const [policy, kernel] of [
      ["128x32x8_8x4", "gemm_f32_128x32x8_8x4_nn"],
      ["16x128x4_4x4", "gemm_f32_16x128x4_4x4_nn"],
      ["32x96x8_4x12", "gemm_f32_32x96x8_4x12_nn"],
      ["64x64x16_8x4", "gemm_f32_64x64x16_nn"],
    ] as const
  ) {
    const options = `--size 67,45,29 --policy ${policy} --check full --json`;
    const { stdout } = await succeeds(`gemm ${options}`);
    const record = JSON.parse(stdout);
    assert.equal(record.verdict, "pass", policy);
    assert.ok(record.kernel.startsWith(kernel), record.kernel);
  }
  const wide = await wgconvHere("gemm --size 67,45,29 --policy 512x512x16");
  assert.equal(wide.code, 3);
  assert.match(wide.stderr, /policy 512x512x16_8x8 does not fit the device's 32768 bytes/);
  const problem = "--problem mb2ic20ih9oc24kh3ph1 --policy 32x96x8_4x12";
  for (const algorithm of ["implicit-gemm", "winograd2d-nonfused", "im2win"]) {
    const options = `${problem} --algorithm ${algorithm} --check full --json`;
    const { stdout } = await succeeds(`conv ${options}`);
    assert.match(JSON.parse(stdout).kernel, /32x96x8_4x12/);
  }
});

Deno.test("wgconv conv and plan take --splits", async () => {
  const problem = "--problem mb1ic64ih6oc16kh3 --algorithm implicit-gemm";
  const plan = await wgconvHere(`plan ${problem} --splits 3`);
  assert.match(plan.stdout, /split in 3/);
  const conv = await succeeds(`conv ${problem} --splits 3 ${once}`);
  assert.match(conv.stdout, /^kernel .*_split/m);
});

Deno.test("wgconv gemm multiplies a matrix by vectors, by price or where gemv is asked for", async () => {
  const kernelOf = async (args: string) => {
    const { stdout } = await succeeds(`gemm ${args} --check full --json`);
    const [record] = stdout.trim().split("\n").map((line) => JSON.parse(line))
      .filter(({ kind }) => kind === "case");
    assert.equal(record.verdict, "pass");
    return record.kernel;
  };
  const row = `--size 1,300,200 ${once}`;
  assert.match(await kernelOf(row), /^gemv_f32_1rows_/);
  assert.match(await kernelOf(`${row} --policy tiny`), /^gemm_f32_32x32x8_/);
  assert.match(await kernelOf(`${row} --splits 3`), /^gemv_f32_1rows_\w+_split$/);
  const columns = `--size 30,16,200 --policy gemv ${once}`;
  assert.match(await kernelOf(columns), /^gemv_f32_16columns_/);
  await refuses(
    `gemm --size 30,17,200 --policy gemv ${once}`,
    /gemv is of products with up to 16 rows or columns, these are 30 x 17$/m,
  );
});

Deno.test("wgconv gemm --balance says how tiles are spread, and the kernel which it is", async () => {
  for (
    const [balance, kernel] of [["none", /_o4$/], ["split-k", /_split$/], ["stream-k", /_streamk$/]]
  ) {
    // Tiles enough that the last wave of them is not full, whether the machine has two cores or two hundred.
    const args = `--size 4130,268,360 --policy tiny --balance ${balance}`;
    const { stdout } = await succeeds(`gemm ${args} --json --check full`);
    const record = JSON.parse(stdout);
    assert.equal(record.verdict, "pass");
    assert.match(record.kernel, kernel as RegExp);
  }
});

Deno.test("a software driver never cuts a long sum short: it is split, or refused", async () => {
  const size = `gemm --size 8,8,1000000 ${once}`;
  await succeeds(`${size} --check full`);
  await succeeds(`gemm --size 8,8,470000 --splits 1 --check full ${once}`);
  const software = /software/.test((await wgconvHere(["devices"])).stdout);
  for (const check of ["none", "sample", "full"]) {
    const whole = `--policy tiny --splits 1 --check ${check}`;
    const { code, stderr } = await wgconvHere(`${size} ${whole}`);
    assert.equal(code, software ? 3 : 0, stderr);
    if (software) {
      assert.match(stderr, /^wgconv: Cannot plan: gemm_f32_\w+ loops \d+ times, [^\n]*\n$/);
    }
  }
  const long = `conv --problem mb1ic1000000ih1oc4kh1 --check none ${once}`;
  assert.equal((await wgconvHere(`${long} --splits 1`)).code, software ? 3 : 0);
  const segments = "conv --problem mb1ic1oc1ih1800kh3 --op bwd-filter --algorithm winrs";
  assert.equal(
    (await wgconvHere(`${segments} ${once} --segments 1`)).code,
    software ? 3 : 0,
  );
});
