/**
 * A worker for `wgconv verify --worker` that computes forward convolutions in nchw by the FP64 reference. With `--fault` it flips
 * filters.
 */
import { parseDescriptor, readNpy, referenceConv, tensor, writeNpy } from "../../mod.ts";

const fault = Deno.args.includes("--fault");

async function operand(path: string): Promise<Float32Array> {
  return (await readNpy(path)).data as Float32Array;
}

async function answer(request: Record<string, string>): Promise<object> {
  const { op, layout, dtype, descriptor, input, filter, output } = request;
  if (op !== "fwd" || layout !== "nchw" || dtype !== "f32" || "bias" in request) {
    return { unsupported: "it computes fwd in nchw and f32, without a bias" };
  }
  const problem = parseDescriptor(descriptor!);
  const [x, w] = await Promise.all([operand(input!), operand(filter!)]);
  if (fault) {
    const taps = problem.filterSize.reduce((product, size) => product * size, 1);
    for (let first = 0; first < w.length; first += taps) w.subarray(first, first + taps).reverse();
  }
  const { values, shape } = await referenceConv(problem, {
    input: { data: x, layout: "nchw" },
    filter: { data: w, layout: "kcrs" },
  });
  await writeNpy(output!, tensor("f32", shape, new Float32Array(values)));
  return { output, time_us: 1 };
}

let rest = "";
for await (const text of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
  const lines = (rest + text).split("\n");
  rest = lines.pop()!;
  for (const line of lines) console.log(JSON.stringify(await answer(JSON.parse(line))));
}
