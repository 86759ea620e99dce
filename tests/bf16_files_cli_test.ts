/** Files of bfloat16 as operands of `wgconv conv` and `gemm`, on the CPU. */
import assert from "#assert";
import { temporaryDirectory } from "./cli.ts";
import { join } from "node:path";
import { readNpy, writeNpy } from "../src/npy/mod.ts";
import { convertDType, toBf16 } from "../src/tensor/convert.ts";
import { fillTensor } from "../src/tensor/fill.ts";
import { tensor } from "../src/tensor/tensor.ts";
import { refuses, succeeds } from "./support/in_process.ts";

Deno.test("--dtype bf16 computes in f32, and writes bfloat16", async () => {
  using temporary = temporaryDirectory();
  const folder = temporary.path;
  const at = (name: string) => join(folder, `${name}.npy`);
  for (
    const [name, shape] of [["x", [1, 3, 7, 5]], ["w", [3, 3, 3, 3]], ["a", [5, 7]]] as const
  ) {
    await writeNpy(at(name), fillTensor("f32", shape, "normal", 1));
  }
  const commands = [
    ["conv", "--input", at("x"), "--filter", at("w"), "--activation", "relu"],
    ["conv", "--op", "bwd-data", "--grad-output", at("x"), "--filter", at("w")],
    ["conv", "--op", "bwd-filter", "--input", at("x"), "--grad-output", at("x")],
    ["gemm", "--a", at("a"), "--b", at("a"), "--transpose", "nt"],
  ];
  for (const command of commands) {
    const result = async (...more: string[]) => {
      const output = ["--dtype", "bf16", "--output", at("y"), "--force"];
      await succeeds([...command, ...output, ...more]);
      return await readNpy(at("y"));
    };
    const computed = await result("--check", "full");
    assert.equal(computed.dtype, "bf16");
    const reference = await result("--device", "cpu");
    const far = computed.data.filter((one, i) => one !== reference.data[i]);
    assert.ok(far.length < computed.data.length / 20, `${command.join(" ")}: ${far.length}`);
  }
});

Deno.test("files of bfloat16, and of its bits, compute as f32 of the same values does", async () => {
  using temporary = temporaryDirectory();
  const folder = temporary.path;
  const at = (name: string) => join(folder, `${name}.npy`);
  const made: [name: string, shape: number[]][] = [["x", [1, 2, 5, 4]], ["w", [3, 2, 3, 3]]];
  made.push(["a", [3, 4]], ["b", [4, 2]], ["bias", [1]]);
  for (const [i, [name, shape]] of made.entries()) {
    const values = fillTensor("bf16", shape, "uniform11", i);
    await writeNpy(at(`${name}.f32`), convertDType(values, "f32"));
    await writeNpy(at(`${name}.bf16`), values);
    await writeNpy(at(`${name}.bits`), tensor("u16", shape, toBf16(values.data)));
  }
  const commands = (kind: string) => [
    ["conv", "--input", at(`x.${kind}`), "--filter", at(`w.${kind}`)],
    ["gemm", "--a", at(`a.${kind}`), "--b", at("b.f32"), "--bias", at(`bias.${kind}`)],
  ];
  for (const [i, command] of commands("f32").entries()) {
    const result = async (args: readonly string[], output: string) => {
      const run = [...args, "--device", "cpu", "--output", at(output), "--force"];
      await succeeds(run);
      return await readNpy(at(output));
    };
    const expected = await result(command, "y");
    assert.deepEqual(await result(commands("bf16")[i]!, "z"), expected);
    assert.deepEqual(await result([...commands("bits")[i]!, "--as", "bf16"], "z"), expected);
    assert.notDeepEqual(await result(commands("bits")[i]!, "z"), expected);
    await refuses(
      [...command, "--as", "bf16"],
      /--as bf16 reads files of uint16, int16 and V2, .*f32\.npy is f32/,
    );
  }
  for (const made of [["conv", "--problem", "mb1ic1ih3oc1kh3"], ["gemm", "--size", "3,3,3"]]) {
    await refuses([...made, "--as", "bf16"], /: --as bf16 reads files of .*, there are none\n$/);
  }
});
