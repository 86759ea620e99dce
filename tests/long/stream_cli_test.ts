/** `wgconv conv` in chunks of the batch. */
import assert from "#assert";
import { encodeNpyHeader, readNpy, writeNpy } from "../../src/npy/mod.ts";
import type { DType } from "../../src/tensor/dtype.ts";
import { fillTensor } from "../../src/tensor/fill.ts";
import { startWgconv, temporaryDirectory, until, wgconv } from "../cli.ts";

/** Writes seeded values, in Fortran order where that is asked for. */
async function makeFile(
  path: string,
  shape: readonly number[],
  fortran = false,
  dtype: DType = "f32",
) {
  const made = fillTensor(dtype, shape, "uniform11", 1);
  if (!fortran) return await writeNpy(path, made);
  const header = encodeNpyHeader(dtype, shape);
  const text = String.fromCharCode(...header).replace("False", "True ");
  const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  await Deno.writeFile(path, bytes);
  await Deno.writeFile(path, new Uint8Array(made.data.buffer as ArrayBuffer), { append: true });
}

Deno.test("wgconv conv --chunk writes what conv writes, from files, archives and stdin to files and stdout", async () => {
  using temporary = temporaryDirectory();
  const at = (name: string) => `${temporary.path}/${name}`;
  await makeFile(at("x.npy"), [7, 3, 12, 12]);
  await makeFile(at("w.npy"), [4, 3, 3, 3]);
  const pinned = ["--algorithm", "implicit-gemm", "--policy", "small", "--splits", "1"];
  const conv = ["conv", "--filter", at("w.npy"), "--padding", "1", ...pinned];
  const whole = await wgconv([...conv, "--input", at("x.npy"), "--output", at("y.npy")]);
  assert.equal(whole.code, 0, whole.stderr);
  const expected = await Deno.readFile(at("y.npy"));
  const input = await Deno.readFile(at("x.npy"));
  const chunked = [...conv, "--chunk", "2"];
  const file = await wgconv([...chunked, "--input", at("x.npy"), "--output", at("z.npy")]);
  assert.equal(file.code, 0, file.stderr);
  assert.match(file.stdout, /^stream +4 chunks of 2 images, 4 of them checked$/m);
  assert.match(file.stdout, /^verdict +pass$/m);
  assert.deepEqual(await Deno.readFile(at("z.npy")), expected);
  const member = `${at("all.npz")}:y`;
  const archive = await wgconv([...chunked, "--input", at("x.npy"), "--output", member]);
  assert.equal(archive.code, 0, archive.stderr);
  assert.deepEqual(await readNpy(member), await readNpy(at("y.npy")));
  const pipe = await wgconv([...chunked, "--input", "-", "--output", "-"], { input });
  assert.equal(pipe.code, 0, pipe.stderr);
  assert.deepEqual(pipe.bytes, expected);
  const made = await wgconv(["conv", "--problem", "mb4ic1ih3oc1kh3", "--chunk", "2"]);
  assert.equal(made.code, 2);
  assert.equal(
    made.stderr,
    "wgconv: Cannot convolve: --chunk needs files, not --problem\n",
  );
});

Deno.test("wgconv conv --chunk reads and writes long pieces where the batch lies innermost, and refuses short ones", async () => {
  using temporary = temporaryDirectory();
  const at = (name: string) => `${temporary.path}/${name}`;
  const N = 40_000;
  await makeFile(at("x.npy"), [1, 2, 3, N]);
  await makeFile(at("f.npy"), [N, 1, 2, 3], true);
  await makeFile(at("w.npy"), [1, 2, 2, 1]);
  await makeFile(at("k.npy"), [1, 1, 2, 2]);
  const conv = (...more: string[]) => wgconv(["conv", "--algorithm", "direct", ...more]);
  const chwn = ["--layout", "chwn", "--input", at("x.npy"), "--filter", at("w.npy")];
  const whole = await conv(...chwn, "--output", at("y.npy"));
  assert.equal(whole.code, 0, whole.stderr);
  const chunked = await conv(...chwn, "--output", at("z.npy"), "--chunk", "17000");
  assert.equal(chunked.code, 0, chunked.stderr);
  assert.deepEqual(await readNpy(at("z.npy")), await readNpy(at("y.npy")));
  const fortran = ["--input", at("f.npy"), "--filter", at("k.npy")];
  await conv(...fortran, "--output", at("y.npy"), "--force");
  const permuted = await conv(...fortran, "--output", at("z.npy"), "--chunk", "17000", "--force");
  assert.equal(permuted.code, 0, permuted.stderr);
  assert.deepEqual(await readNpy(at("z.npy")), await readNpy(at("y.npy")));

  const refused = async (line: string, ...args: string[]) => {
    const { code, stderr } = await conv(...args, "--chunk", "100");
    assert.deepEqual({ code, stderr }, { code: 2, stderr: `wgconv: ${line}\n` });
  };
  const short = (name: string) =>
    `Cannot read ${
      at(name)
    } in chunks of 100 images: 400 bytes of its innermost batch at a time, ` +
    `expected 65536; wgconv tensor convert ${at(name)} out.npy`;
  await refused(
    `${short("x.npy")} --from-layout chwn --to-layout nchw fixes it, then --layout nchw ` +
      "--filter-layout crsk",
    ...chwn,
  );
  await refused(`${short("f.npy")} fixes it`, ...fortran);
  // The commands that it names do what it says.
  const names = [at("x.npy"), at("out.npy")];
  const layouts = ["--from-layout", "chwn", "--to-layout", "nchw"];
  const converted = await wgconv(["tensor", "convert", ...names, ...layouts]);
  assert.equal(converted.code, 0, converted.stderr);
  const again = ["--layout", "nchw", "--filter-layout", "crsk", "--input", at("out.npy")];
  const { code, stderr } = await conv(...again, "--filter", at("w.npy"), "--chunk", "10000");
  assert.equal(code, 0, stderr);
});

Deno.test("Ctrl-C amid a stream leaves nothing", async () => {
  using temporary = temporaryDirectory();
  const at = (name: string) => `${temporary.path}/${name}`;
  await makeFile(at("x.npy"), [4000, 4, 16, 16]);
  await makeFile(at("w.npy"), [4, 4, 3, 3]);
  const files = ["--input", at("x.npy"), "--filter", at("w.npy"), "--output", at("y.npy")];
  const child = startWgconv(["conv", ...files, "--chunk", "2", "--check", "none"], {
    stdout: "null",
    stderr: "null",
  });
  const names = () => [...Deno.readDirSync(temporary.path)].map(({ name }) => name);
  // The first file of such a name proves that the folder can be written to, and may be gone before its size is read.
  const size = (name: string) => Deno.stat(at(name)).then(({ size }) => size, () => 0);
  const written = async () => {
    const unfinished = names().filter((name) => name.startsWith("y.npy.tmp-"));
    return (await Promise.all(unfinished.map(size))).some((bytes) => bytes > 1000);
  };
  await until(written, child);
  child.kill("SIGINT");
  assert.equal((await child.status).code, 130);
  assert.deepEqual(names().sort(), ["w.npy", "x.npy"]);
});
