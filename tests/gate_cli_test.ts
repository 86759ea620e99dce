import assert from "#assert";
import { wgconv } from "./cli.ts";

const G14 = ["--fill", "normal", "--algorithm", "winograd2d-nonfused", "--tile", "F(14x14,3x3)"];
const CONV = ["conv", "--runs", "1", "--problem"];

Deno.test("a tile whose results are no use is refused, planned on demand, and fails all the same (G1)", async () => {
  const problem = "mb1ic32ih28oc8kh3ph1";
  const refused = await wgconv([...CONV, problem, ...G14]);
  assert.equal(refused.code, 2);
  assert.match(
    refused.stderr,
    /^wgconv: Cannot plan: winograd2d-nonfused F\(14x14,3x3\) typically errs by \d\.\de-3 of /,
  );
  const planned = await wgconv([...CONV, problem, ...G14, "--max-bound-ratio", "1e9"]);
  assert.equal(planned.code, 1);
  assert.match(planned.stdout, /fail: error over the data's norm 0\.00\d+ is above 0\.001/);
});

/** Right results that some rule of thumb would fail. */
const RIGHT: Readonly<Record<string, readonly string[]>> = {
  "constants, whose sums round to one side (G2)": [
    ...CONV,
    "mb1ic64ih14oc8kh3ph1",
    "--fill",
    "constant",
  ],
  "errors below one rounding of a large addend (G3)": ["--size", "8,8,8", "--beta", "4294967296"],
  "f64 above the square root of its range (G3)": [
    ...["--size", "8,8,8", "--dtype", "f64", "--alpha", "1e155", "--fill", "normal"],
  ],
  "outputs that are all clipped": ["--size", "8,8,8", "--alpha", "-1", "--activation", "relu"],
  "a sigmoid of large sums": [
    ...CONV,
    "g3mb1ic6ih13iw2oc24oh3ow5kh3kw2sh3sw1ph0pw3dh2dw0",
    ...["--fill", "int8", "--activation", "sigmoid"],
  ],
  "exponentials of exact sums in f64": [
    ...["--size", "4,5,53", "--dtype", "f64", "--fill", "uniform11", "--activation", "tanh"],
  ],
  "constants in f64, cut in depth": [
    ...["--size", "7,15,72", "--batch", "3", "--transpose", "tn", "--dtype", "f64"],
    ...["--fill", "constant", "--activation", "relu", "--policy", "wide", "--splits", "3"],
  ],
  "sums that come out exact by chance": [
    ...["--size", "56,36,70", "--dtype", "f64", "--fill", "constant", "--alpha", "0.1"],
    ...["--beta", "1", "--activation", "relu", "--policy", "tiny", "--splits", "5"],
  ],
};

for (const [what, args] of Object.entries(RIGHT)) {
  Deno.test(`right results pass: ${what}`, async () => {
    const { code, stdout, stderr } = await wgconv(
      args[0] === "conv" ? args : ["gemm", "--runs", "1", ...args],
    );
    // A driver without f64 says so.
    if (code === 3 && args.includes("f64")) return;
    assert.equal(code, 0, stdout + stderr);
    assert.match(stdout, /verdict +pass/);
  });
}

Deno.test("f16 products with subnormal results pass (G3)", async () => {
  const half = ["--size", "8,8,8", "--dtype", "f16", "--alpha", "1e-7", "--runs", "1"];
  const { code, stdout, stderr } = await wgconv(["gemm", ...half]);
  assert.ok(code === 0 || (code === 3 && stderr.includes("shader-f16")), stdout + stderr);
});

Deno.test("a sigmoid's sums allow it no more than its own range does", async () => {
  const { stdout } = await wgconv([
    ...CONV,
    "mb1ic6ih13oc8kh3ph1",
    ...["--fill", "int8", "--activation", "sigmoid", "--algorithm", "direct", "--json"],
  ]);
  const { accuracy } = JSON.parse(stdout.trim().split("\n").at(-1)!);
  assert.ok(accuracy.rel_l2_limit < 1e-5, `${accuracy.rel_l2_limit}`);
});
