import assert from "#assert";
import { join } from "node:path";
import { decode } from "fast-png";
import { inFolder, ROOT, wgconv } from "../../tests/cli.ts";
import { wgconvHere } from "../../tests/support/in_process.ts";
import { zipSync } from "../deps/fflate.ts";
import { npyBytes } from "../npy/header.ts";
import { readNpy, writeNpy } from "../npy/mod.ts";
import { fillTensor } from "../tensor/fill.ts";
import { type Tensor, tensor } from "../tensor/tensor.ts";

const SAMPLE = join(ROOT, "fixtures", "sample.npz");

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** Runs `wgconv tensor` with `args` in `dir`. */
async function run(dir: string, args: string[], input?: Uint8Array<ArrayBuffer>): Promise<Ran> {
  const { code, stdout, stderr, bytes } = await wgconv(["tensor", ...args], { cwd: dir, input });
  return { code, out: stdout, err: stderr, bytes };
}

/** {@linkcode run} in this process: files have their places in `dir`, which stands in no answer. */
async function runHere(dir: string, args: string[]): Promise<Omit<Ran, "bytes">> {
  const placed = args.map((word) => /\.np[yz]$/.test(word) ? join(dir, word) : word);
  const { code, stdout, stderr } = await wgconvHere(["tensor", ...placed]);
  return { code, out: stdout.replaceAll(`${dir}/`, ""), err: stderr.replaceAll(`${dir}/`, "") };
}

function cliTest(name: string, body: (dir: string) => Promise<void>): void {
  Deno.test(`wgconv tensor ${name}`, () => inFolder(body));
}

function counting(...shape: number[]): Tensor {
  const count = shape.reduce((a, b) => a * b, 1);
  return tensor("f32", shape, Float32Array.from({ length: count }, (_, i) => i));
}

cliTest("make writes the seeded tensor it was asked for", async (dir) => {
  const args = ["--shape", "2,3", "--fill", "normal", "--dtype", "f16", "--seed", "5"];
  const { code, out } = await run(dir, ["make", "x.npy", ...args, "--json"]);
  assert.equal(code, 0);
  assert.deepEqual(JSON.parse(out), {
    path: "x.npy",
    dtype: "f16",
    shape: [2, 3],
    bytes: 12,
    fill: "normal",
    seed: 5,
  });
  assert.deepEqual(await readNpy(join(dir, "x.npy")), fillTensor("f16", [2, 3], "normal", 5));
});

cliTest("make writes to stdout, and info reads it from stdin", async (dir) => {
  const made = await run(dir, [
    "make",
    "-",
    "--shape",
    "scalar",
    "--fill",
    "integer",
    "--dtype=i8",
  ]);
  assert.equal(made.code, 0);
  assert.equal(made.bytes.length, 129);
  assert.match(made.err, /^stdout: i8 \[\], integer, seed 1, 1 B\n$/);
  const { code, out } = await run(dir, ["info", "-", "--json"], made.bytes);
  assert.equal(code, 0);
  assert.deepEqual(JSON.parse(out), {
    path: "-",
    dtype: "i8",
    shape: [],
    elements: 1,
    bytes: 1,
    byte_order: "little",
    order: "C",
    version: "1.0",
    data_offset: 128,
  });
});

cliTest("info lists the members of archives", async (dir) => {
  const { code, out } = await run(dir, ["info", SAMPLE, `${SAMPLE}:w`]);
  assert.equal(code, 0);
  const rows = out.trimEnd().split("\n").map((line) => line.replace(SAMPLE, "sample.npz"));
  assert.equal(rows.length, 4);
  assert.match(rows[1]!, /^sample\.npz:x +f32 +\[1, 3, 8, 8\] +192 +768 B +little-endian, C order/);
  assert.match(rows[2]!, /^sample\.npz:w +f32 +\[2, 3, 3, 3\]/);
  assert.equal(rows[3], rows[2]);
});

/** A small tensor's file. */
function npyFile(value: Tensor): Uint8Array {
  return new Uint8Array([...npyBytes(value)].flatMap((piece) => [...piece]));
}

cliTest("info says what a member is that is no tensor", async (dir) => {
  const x = npyFile(counting(2));
  const readme = new TextEncoder().encode("hello");
  await Deno.writeFile(join(dir, "a.npz"), zipSync({ "readme.txt": readme, "x.npy": x }));
  const { code, out } = await runHere(dir, ["info", "a.npz"]);
  assert.equal(code, 0);
  const rows = out.trimEnd().split("\n");
  assert.match(rows[1]!, /^a\.npz:readme\.txt +- +- +- +5 B +no array: no \.npy file$/);
  assert.match(rows[2]!, /^a\.npz:x +f32 +\[2\] +2 +8 B +little-endian/);
  const json = await runHere(dir, ["info", "a.npz", "--json"]);
  assert.deepEqual(JSON.parse(json.out.split("\n")[0]!), {
    path: "a.npz:readme.txt",
    dtype: null,
    bytes: 5,
    message: "no .npy file",
  });
});

cliTest("bf16 is made, told, converted, kept and compared", async (dir) => {
  const ran = async (...args: string[]) => {
    const { code, out, err } = await runHere(dir, args);
    assert.equal(code, 0, err);
    return out;
  };
  const refused = async (message: RegExp, ...args: string[]) => {
    const { code, err } = await runHere(dir, args);
    assert.equal(code, 2);
    assert.match(err, message);
  };
  const made = await ran("make", "x.npy", "--shape", "1,2,3,4", "--dtype", "bf16");
  assert.equal(made, "x.npy: bf16 [1, 2, 3, 4], uniform01, seed 1, 48 B\n");
  assert.match(
    await ran("info", "x.npy"),
    /^x\.npy +bf16 +\[1, 2, 3, 4\] +24 +48 B +little-endian/m,
  );
  const layouts = ["--from-layout", "nchw", "--to-layout", "nhwc"];
  assert.match(await ran("convert", "x.npy", "y.npy", ...layouts), /^y\.npy: bf16 \[1, 3, 4, 2\]/);
  await ran("convert", "y.npy", "z.npy", "--from-layout", "nhwc", "--to-layout", "nchw");
  assert.deepEqual(
    await Deno.readFile(join(dir, "z.npy")),
    await Deno.readFile(join(dir, "x.npy")),
  );
  assert.match(await ran("convert", "x.npy", "f.npy", "--dtype", "f32"), /^f\.npy: f32 /);
  assert.match(await ran("diff", "x.npy", "f.npy"), /relative L2 +0 of/);
  const bytes = await Deno.readFile(join(dir, "x.npy"));
  for (const [name, descr] of [["u.npy", "<u2"], ["v.npy", "|V2"]] as const) {
    const header = String.fromCharCode(...bytes.subarray(0, 128)).replace("<V2", descr);
    bytes.set(Uint8Array.from(header, (letter) => letter.charCodeAt(0)));
    await Deno.writeFile(join(dir, name), bytes);
    bytes.set(Uint8Array.from(header.replace(descr, "<V2"), (letter) => letter.charCodeAt(0)));
    await ran("diff", name, "f.npy", "--as", "bf16", "--max-rel-l2", "0");
    await ran("convert", name, "g.npy", "--as", "bf16", "--force");
    assert.deepEqual(await Deno.readFile(join(dir, "g.npy")), bytes);
  }
  await refused(/--as bf16 takes them as bfloat16\n$/, "info", "v.npy");
  await refused(/--as bf16 reads files of uint16, int16 and V2, f.npy is f32\n$/, ...[
    ...["convert", "f.npy", "h.npy", "--as", "bf16"],
  ]);
});

cliTest("info answers for a file of 3 GiB without reading it", async (dir) => {
  const path = join(dir, "big.npy");
  await writeNpy(path, tensor("u8", [0], new Uint8Array(0)));
  const header = new TextDecoder("latin1").decode(await Deno.readFile(path));
  const text = header.replace("(0,), }", `(${3 * 2 ** 30},), }`).slice(0, 127) + "\n";
  const bytes = Uint8Array.from(text, (char) => char.charCodeAt(0));
  bytes.set([0x93], 0);
  await Deno.writeFile(path, bytes);
  await Deno.truncate(path, 128 + 3 * 2 ** 30);
  const { code, out } = await run(dir, ["info", path, "--json"]);
  assert.equal(code, 0);
  assert.equal(JSON.parse(out).bytes, 3 * 2 ** 30);
});

cliTest("convert changes layout and dtype, and back", async (dir) => {
  const source = counting(1, 2, 3, 2);
  await writeNpy(join(dir, "x.npy"), source);
  const there = ["--from-layout", "nchw", "--to-layout", "nhwc", "--dtype", "i16"];
  assert.equal((await run(dir, ["convert", "x.npy", "y.npy", ...there])).code, 0);
  const y = await readNpy(join(dir, "y.npy"));
  assert.equal(y.dtype, "i16");
  assert.deepEqual(y.shape, [1, 3, 2, 2]);
  assert.deepEqual([...y.data], [0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11]);
  const back = ["--from-layout", "nhwc", "--to-layout", "nchw", "--dtype", "f32", "--json"];
  const { out } = await run(dir, ["convert", "y.npy", "y.npy", "--force", ...back]);
  assert.equal(JSON.parse(out).layout, "nchw");
  assert.deepEqual(await readNpy(join(dir, "y.npy")), source);
});

cliTest("convert serves filters of one and three spatial axes", async (dir) => {
  await writeNpy(join(dir, "w1.npy"), counting(2, 1, 3));
  await writeNpy(join(dir, "w3.npy"), counting(2, 3, 1, 1, 2));
  const layouts = ["--from-layout", "kcrs", "--to-layout", "crsk"];
  await run(dir, ["convert", "w1.npy", "w1.npy", "--force", ...layouts]);
  await run(dir, ["convert", "w3.npy", "w3.npy", "--force", ...layouts]);
  assert.deepEqual([...(await readNpy(join(dir, "w1.npy"))).data], [0, 3, 1, 4, 2, 5]);
  assert.deepEqual((await readNpy(join(dir, "w3.npy"))).shape, [3, 1, 1, 2, 2]);
});

cliTest("convert refuses in one sentence with exit 2 and writes nothing", async (dir) => {
  await writeNpy(join(dir, "x.npy"), counting(2, 200));
  const cases: [args: string[], message: RegExp][] = [
    [["--from-layout", "nchw"], /--from-layout and --to-layout go together/],
    [["--from-layout", "nchw", "--to-layout", "krsc"], /nchw and krsc are not both layouts of/],
    [["--from-layout", "nchw", "--to-layout", "nhwc"], /has 3 to 5 axes, the tensor has 2/],
    [["--dtype", "i8"], /Cannot convert x\.npy to i8: element 128 is 128, i8 holds -128 to 127$/],
    [["--dtype", "f8"], /option '--dtype <name>' argument 'f8' is invalid/],
  ];
  for (const [args, message] of cases) {
    const { code, out, err } = await run(dir, ["convert", "x.npy", "y.npy", ...args]);
    assert.equal(code, 2, err);
    assert.equal(out, "");
    assert.match(err.trimEnd(), message);
    assert.match(err, /^wgconv: .*\n$/);
  }
  assert.deepEqual([...Deno.readDirSync(dir)].map(({ name }) => name), ["x.npy"]);
});

cliTest("diff passes, fails with exit 1, and refuses other shapes with exit 2", async (dir) => {
  const source = counting(2, 2, 50);
  const off = counting(2, 2, 50);
  off.data[150] = 151;
  await writeNpy(join(dir, "a.npy"), off);
  await writeNpy(join(dir, "b.npy"), source);
  await writeNpy(join(dir, "c.npy"), counting(200));
  await writeNpy(join(dir, "nan.npy"), tensor("f32", [200], new Float32Array(200).fill(NaN)));
  await writeNpy(join(dir, "empty.npy"), counting(0, 3));

  const same = await run(dir, ["diff", "b.npy", "b.npy"]);
  assert.equal(same.code, 0);
  assert.match(same.out, /^verdict +pass$/m);

  const failed = await run(dir, ["diff", "a.npy", "b.npy", "--json"]);
  assert.equal(failed.code, 1);
  const diff = JSON.parse(failed.out);
  const norm = Math.sqrt(199 * 200 * 399 / 6);
  assert(Math.abs(diff.accuracy.rel_l2 - 1 / norm) < 1e-15);
  assert(Math.abs(diff.accuracy.mare - 1 / 150 / 199) < 1e-15);
  assert.equal(diff.accuracy.zero_ref, 1);
  assert.deepEqual(diff.accuracy.worst, [{ index: [1, 1, 0], got: 151, ref: 150 }]);
  assert.equal(diff.verdict, "fail");

  assert.equal((await run(dir, ["diff", "a.npy", "b.npy", "--max-rel-l2", "1e-2"])).code, 0);
  const shapes = await run(dir, ["diff", "a.npy", "c.npy"]);
  assert.equal(shapes.code, 2);
  assert.equal(shapes.err, "wgconv: Cannot compare: a.npy has shape [2,2,50], c.npy has [200]\n");
  const nan = await run(dir, ["diff", "nan.npy", "c.npy", "--max-rel-l2", "1e9"]);
  assert.equal(nan.code, 1);
  assert.match(
    nan.out,
    /^verdict +fail: 200 elements are NaN or infinite in one tensor, and not the/m,
  );
  const nothing = await run(dir, ["diff", "nan.npy", "nan.npy"]);
  assert.equal(nothing.code, 2);
  assert.match(nothing.out, /^verdict +not checked: all elements of both tensors are NaN$/m);
  const empty = await run(dir, ["diff", "empty.npy", "empty.npy"]);
  assert.equal(empty.code, 2);
  assert.match(empty.out, /^verdict +not checked: the tensors are empty$/m);
});

cliTest("show writes a PNG of the values", async (dir) => {
  await writeNpy(join(dir, "nan.npy"), tensor("f32", [2, 2], new Float32Array(4).fill(NaN)));
  assert.match((await run(dir, ["show", "nan.npy", "nan.png"])).out, /grey, no value is finite$/m);
  await writeNpy(join(dir, "x.npy"), counting(2, 4, 2, 3));
  const args = ["show", "x.npy", "x.png", "--layout", "nchw", "--json"];
  const { code, out } = await run(dir, [...args, "--index", "1", "--channel", "2"]);
  assert.equal(code, 0);
  assert.deepEqual(JSON.parse(out), {
    path: "x.png",
    width: 3,
    height: 2,
    channels: 1,
    range: [36, 41],
  });
  const png = decode(await Deno.readFile(join(dir, "x.png")));
  assert.deepEqual([png.width, png.height, png.channels], [3, 2, 1]);
  assert.deepEqual([...png.data], [0, 51, 102, 153, 204, 255]);
  const there = await run(dir, args);
  assert.equal(there.code, 2);
  assert.equal(
    there.err,
    "wgconv: Cannot write x.png: it is not empty, --force overwrites it\n",
  );
  // How the axes of a guess were taken can be seen.
  const guess = await run(dir, ["show", "x.npy", "y.png", "--channel", "2"]);
  assert.match(guess.out, /^y\.png: 2 x 4 grey of nhwc, values /);
  const refused = await run(dir, [...args, "--force"]);
  assert.equal(refused.code, 2);
  assert.equal(
    refused.err,
    "wgconv: Cannot show x.npy: 4 channels make no picture: pick one with --channel\n",
  );
});

cliTest("info lists the members beside a damaged one, and exits 2", async (dir) => {
  const good = npyFile(counting(3));
  await Deno.writeFile(
    join(dir, "x.npz"),
    zipSync({ "bad.npy": good.subarray(0, 90), "z.npy": good }),
  );
  const { code, out, err } = await runHere(dir, ["info", "x.npz"]);
  assert.equal(code, 2);
  assert.match(out, /^x\.npz:bad .*no array: damaged: byte 90.*\nx\.npz:z +f32 /m);
  assert.match(err, /^wgconv: Cannot read x\.npz:bad: byte 90/);
});

cliTest("info says what is wrong with a file in one sentence with exit 2", async (dir) => {
  await Deno.writeTextFile(join(dir, "x.npy"), "no tensor");
  const { code, out, err } = await run(dir, ["info", "x.npy"]);
  assert.equal(code, 2);
  assert.equal(out, "");
  assert.match(err, /^wgconv: Cannot read x\.npy: byte 0: expected the magic .*\n$/);
  const missing = await run(dir, ["info", "none.npy"]);
  assert.equal(missing.code, 2);
  assert.match(missing.err, /^wgconv: Cannot read none\.npy: there is no such file/);
});
