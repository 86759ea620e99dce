/** `wgconv verify` on files. */
import assert from "#assert";
import { readNpy, writeNpy, writeNpz } from "../src/npy/mod.ts";
import { bf16round, tf32round } from "../src/tensor/convert.ts";
import { fillTensor } from "../src/tensor/fill.ts";
import { convertDType } from "../src/tensor/convert.ts";
import { permute } from "../src/tensor/layout.ts";
import { type Tensor, tensor } from "../src/tensor/tensor.ts";
import { succeeds, wgconvHere } from "./support/in_process.ts";
import { inFolder } from "./cli.ts";

/** Operands of a convolution with padding 1 and a bias, and its result. */
interface Convolved {
  readonly x: Tensor<"f32">;
  readonly w: Tensor<"f32">;
  readonly b: Tensor<"f32">;
  readonly y: Tensor<"f32">;
}

/** Operands in the files x.npy, w.npy and b.npy, and what they convolve to, rounded once to f32. */
async function convolve(at: (name: string) => string): Promise<Convolved> {
  const x = fillTensor("f32", [2, 16, 7, 6], "normal", 1);
  const w = fillTensor("f32", [12, 16, 3, 3], "normal", 2);
  const b = fillTensor("f32", [12], "normal", 3);
  for (const [name, value] of Object.entries({ x, w, b })) await writeNpy(at(`${name}.npy`), value);
  const y = await result(at, "y.npy", operands(at));
  return { x, w, b, y };
}

function operands(at: (name: string) => string, ending = "npy"): string[] {
  const flags = { input: "x", filter: "w", bias: "b" };
  return [
    ...Object.entries(flags).flatMap(([flag, name]) => [`--${flag}`, at(`${name}.${ending}`)]),
    ...["--padding", "1"],
  ];
}

async function result(at: (name: string) => string, name: string, args: readonly string[]) {
  await succeeds(
    ["conv", "--device", "cpu", ...args, "--output", at(name), "--force"],
  );
  return await readNpy(at(name)) as Tensor<"f32">;
}

/** Exit code, and the record. */
async function verified(args: readonly string[]) {
  const { code, stdout, stderr } = await wgconvHere(["verify", ...args, "--json"]);
  return { code, stderr, record: stdout === "" ? undefined : JSON.parse(stdout) };
}

Deno.test("verify passes a right result and fails a wrong one, with a record that reports show", () =>
  inFolder(async (folder) => {
    const at = (name: string) => `${folder}/${name}`;
    const { y } = await convolve(at);
    const args = [...operands(at), "--output", at("y.npy"), "--arithmetic", "f32"];
    const right = await succeeds(["verify", ...args, "--jsonl", at("r.jsonl")]);
    assert.match(right.stdout, /^arithmetic +f32, one sum$/m);
    assert.match(right.stdout, /^verdict +pass$/m);
    y.data[100]! += 0.01;
    await writeNpy(at("y.npy"), y);
    const wrong = await wgconvHere(
      ["verify", ...args, "--jsonl", at("r.jsonl"), "--save-failures", at("failed")],
    );
    assert.equal(wrong.code, 1);
    assert.match(wrong.stdout, /^verdict +fail: bound ratio/m);
    assert.match(
      wrong.stdout,
      /^diagnosis +1 of 1,008 outputs is wrong: in image 0, channel 2, row 2, column 4$/m,
    );
    const again = /^repeat +wgconv (.*)$/m.exec(wrong.stdout)![1]!.split(" ");
    const repeated = await verified(again.slice(1));
    assert.equal(repeated.code, 1, repeated.stderr);
    const lines = (await Deno.readTextFile(at("r.jsonl"))).trimEnd().split("\n");
    assert.deepEqual(lines.map((line) => JSON.parse(line).kind), ["environment", "case", "case"]);
    const report = await succeeds(["report", at("r.jsonl"), "--columns", "problem,verdict"]);
    assert.match(report.stdout, /fail/);
  }));

Deno.test("verify tells an arithmetic from another, by claims and by itself", () =>
  inFolder(async (folder) => {
    const at = (name: string) => `${folder}/${name}`;
    const { x, w } = await convolve(at);
    const round = ({ data, shape }: Tensor<"f32">, by: (value: number) => number) =>
      tensor("f32", shape, data.map(by));
    for (
      const [by, claim, finer] of [
        [tf32round, "tf32", "f32"],
        [bf16round, "bf16-f32", "tf32"],
      ] as const
    ) {
      await writeNpy(at("x.less"), round(x, by));
      await writeNpy(at("w.less"), round(w, by));
      await Deno.copyFile(at("b.npy"), at("b.less"));
      await result(at, "less.npy", operands(at, "less"));
      const args = [...operands(at), "--output", at("less.npy")];
      assert.equal((await verified([...args, "--arithmetic", claim])).code, 0, claim);
      assert.equal((await verified([...args, "--arithmetic", finer])).code, 1, finer);
      const { code, record } = await verified(args);
      assert.equal(code, 0);
      assert.match(record.message, new RegExp(`^errors are those of ${claim}, not of f32`));
    }
  }));

Deno.test("verify reads f64, Fortran order, archives, bf16, other layouts and single images", () =>
  inFolder(async (folder) => {
    const at = (name: string) => `${folder}/${name}`;
    const { x, w, b, y } = await convolve(at);
    const passes = async (args: readonly string[]) => {
      const { code, stderr, record } = await verified(args);
      assert.equal(code, 0, `${args.join(" ")}: ${stderr} ${record?.message}`);
      return record;
    };
    const f64 = (value: Tensor<"f32">) => tensor("f64", value.shape, Float64Array.from(value.data));
    await writeNpz(at("all.npz"), { x: f64(x), w: f64(w), b: f64(b), y: f64(y) });
    const member = (name: string) => at(`all.npz:${name}`);
    const record = await passes([
      ...["--input", member("x"), "--filter", member("w"), "--bias", member("b")],
      ...["--padding", "1", "--output", member("y"), "--arithmetic", "f32"],
    ]);
    assert.equal(record.dtype, "f64");
    await writeNpy(at("y.f16"), tensor("f16", y.shape, Float16Array.from(y.data)));
    await passes([...operands(at), "--output", at("y.f16"), "--arithmetic", "f32"]);
    await writeNpy(at("y.bf16"), convertDType(y, "bf16"));
    const half = await passes([...operands(at), "--output", at("y.bf16"), "--arithmetic", "f32"]);
    assert.equal(half.out_dtype, "bf16");
    const nhwc = (value: Tensor<"f32">) => permute(value, [0, 2, 3, 1]);
    for (const [name, value] of Object.entries({ x, w, y })) {
      await writeNpy(at(`${name}.last`), nhwc(value));
    }
    await passes([
      ...["--input", at("x.last"), "--filter", at("w.last"), "--bias", at("b.npy")],
      ...["--padding", "1", "--layout", "nhwc", "--output", at("y.last"), "--arithmetic", "f32"],
    ]);
    const first = ({ shape, data }: Tensor<"f32">) =>
      tensor("f32", shape.slice(1), data.slice(0, data.length / 2));
    await writeNpy(at("x.one"), first(x));
    await writeNpy(at("y.one"), first(y));
    await passes([
      ...["--input", at("x.one"), "--filter", at("w.npy"), "--bias", at("b.npy")],
      ...["--padding", "1", "--output", at("y.one"), "--arithmetic", "f32"],
    ]);
  }));

Deno.test("verify gemm takes products, of f64 by a reference of their own", () =>
  inFolder(async (folder) => {
    const at = (name: string) => `${folder}/${name}`;
    await writeNpy(at("a.npy"), fillTensor("f64", [2, 5, 40], "normal", 1));
    await writeNpy(at("b.npy"), fillTensor("f64", [40, 6], "normal", 2));
    const product = ["--a", at("a.npy"), "--b", at("b.npy")];
    const { code, stderr } = await wgconvHere(
      ["gemm", ...product, "--dtype", "f64", "--device", "cpu", "--output", at("y.npy")],
    );
    assert.equal(code, 0, stderr);
    const right = await verified(["gemm", ...product, "--output", at("y.npy")]);
    assert.deepEqual([right.code, right.record.arithmetic], [0, "f64, one sum"]);
    const y = await readNpy(at("y.npy")) as Tensor<"f64">;
    await writeNpy(at("y.npy"), tensor("f64", y.shape, y.data.map(Math.fround)));
    const single = await verified(["gemm", ...product, "--output", at("y.npy")]);
    assert.match(single.record.message, /^errors are those of f32, not of f64$/);
    const claimed = await verified(
      ["gemm", ...product, "--output", at("y.npy"), "--arithmetic", "f64"],
    );
    assert.equal(claimed.code, 1);
  }));

Deno.test("verify compares results of i8 exactly", () =>
  inFolder(async (folder) => {
    const at = (name: string) => `${folder}/${name}`;
    const x = fillTensor("i8", [1, 7, 7, 8], "int8", 1);
    const w = fillTensor("i8", [8, 3, 3, 8], "int8", 2);
    await writeNpy(at("x.npy"), x);
    await writeNpy(at("w.npy"), w);
    const args = ["--input", at("x.npy"), "--filter", at("w.npy"), "--layout", "nhwc"];
    const { data, shape } = await result(at, "y.npy", [...args, "--dtype", "i8"]);
    assert.equal(
      (await verified([...args, "--output", at("y.npy")])).record.arithmetic,
      "i8, exact",
    );
    data[3]! += 1;
    await writeNpy(at("y.npy"), tensor("i32", shape, Int32Array.from(data)));
    assert.equal((await verified([...args, "--output", at("y.npy")])).code, 1);
  }));

Deno.test("verify refuses what does not fit in a sentence", () =>
  inFolder(async (folder) => {
    const at = (name: string) => `${folder}/${name}`;
    const { x } = await convolve(at);
    await writeNpy(at("i.npy"), tensor("i32", [1], new Int32Array(1)));
    for (
      const [args, message] of [
        [[...operands(at)], /--output names no file/],
        [
          [...operands(at), "--output", at("x.npy")],
          /has shape \[2, 16, 7, 6\], the result of these operands has \[2, 12, 7, 6\]/,
        ],
        [[...operands(at), "--output", at("none.npy")], /none\.npy/],
        [[...operands(at), "--output", at("y.npy"), "--arithmetic", "f31"], /no arithmetic "f31"/],
        [[...operands(at), "--output", at("y.npy"), "--as", "bf16"], /--as bf16 reads files of/],
        [["gemm", ...operands(at)], /unknown option '--input'/],
        [
          ["--input", "-", "--filter", at("w.npy"), "--output", "-"],
          /only one file can come from stdin/,
        ],
      ] as const
    ) {
      const { code, stderr } = await verified(args);
      assert.equal(code, 2, stderr);
      assert.match(stderr, message);
    }
    assert.equal(x.shape.length, 4);
  }));
