import { type Library, type Peer, unsupported } from "./peer.ts";

/** jax-js, whose functions are jitted. A call takes an array, unless it is passed as `ref`. */
export async function jaxJs({ init, defaultDevice, jit, vjp, lax, numpy }: Library): Promise<Peer> {
  await init();
  defaultDevice("webgpu");
  return {
    version: "0.1.25",
    prepare({ conv, gemm, layout, half, operands, shape }) {
      if (conv && layout !== "nchw") unsupported("jax-js computes in nchw");
      const dtype = half ? "float16" : "float32";
      const convolve = (x: Library, w: Library) => {
        const padding = conv!.paddingBegin.map((begin, axis) => [begin, conv!.paddingEnd[axis]]);
        const options = { rhsDilation: conv!.dilation, featureGroupCount: conv!.groups };
        return lax.convGeneralDilated(x, w, conv!.stride, padding, options);
      };
      const gradient = (of: (x: Library) => Library, dy: Library) => {
        const [value, back] = vjp(of, [numpy.zeros(shape, { dtype })]);
        value.dispose();
        return back(dy)[0];
      };
      const stored = (a: Library, at: number) =>
        gemm!.transpose[at] === "t" ? numpy.swapaxes(a, -1, -2) : a;
      const operations: Record<string, (one: Library, other: Library) => Library> = {
        "gemm": (a, b) => numpy.matmul(stored(a, 0), stored(b, 1)),
        "fwd": convolve,
        "bwd-data": (dy, w) => gradient((x) => convolve(x, w), dy),
        "bwd-filter": (x, dy) => gradient((w) => convolve(x, w), dy),
      };
      const compute = jit(operations[conv?.op ?? "gemm"]);
      const values = operands.map(({ data, shape }) => numpy.array(data, { shape, dtype }));
      const run = () => compute(...values.map(({ ref }) => ref));
      return {
        // Submits the call and waits for nothing.
        call: () => run().gpuBuffer(),
        result: () => run().data(),
        dispose: () => values.forEach((one) => one.dispose()),
      };
    },
  };
}
