/** `bench/peers/webgpu`: libraries that compute with WebGPU, on the CPU's driver. */
import assert from "#assert";
import { parseRecords } from "../../src/report/read_records.ts";
import { ROOT, run, temporaryDirectory } from "../cli.ts";
import { succeeds, wgconvHere } from "../support/in_process.ts";

/** Chromium's driver for the CPU, of which Dawn takes devices. */
const SWIFTSHADER = "/usr/lib/chromium/vk_swiftshader_icd.json";

const CONVS = 'mb1ic4ih5iw7oc4kh3ph1n"own" g4mb1ic4ih6oc4kh3ph1 mb1ic4iw9oc3kw3pw1\n';
const PRODUCTS = "8 12 16\n9 8 7 t n\n";

/** Makes the bundles; what is said where npm cannot be reached. */
async function bundle(): Promise<string | undefined> {
  const { code, stderr } = await run(Deno.execPath(), ["run", "-A", "tasks/peers.ts"], {
    cwd: ROOT,
  });
  if (code === 0) return undefined;
  assert.match(stderr, /npm|network|dns|connect/i);
  return stderr.trim().split("\n").at(-1);
}

Deno.test("libraries that compute with WebGPU are timed, checked, compared and reported", async (t) => {
  const missing = await bundle();
  if (missing !== undefined) return console.log(`left out: ${missing}`);
  using temporary = temporaryDirectory();
  const at = (name: string) => `${temporary.path}/${name}`;
  await Deno.writeTextFile(at("convs.txt"), CONVS);
  await Deno.writeTextFile(at("products.txt"), PRODUCTS);
  /** Cases by library. */
  const time = async (names: string, suite: string, ...options: string[]) => {
    const node = names === "onnxruntime-node";
    const env = node ? { VK_DRIVER_FILES: SWIFTSHADER } : {};
    const asked = ["run", "-A", `${ROOT}dist/peers/peers.js`, names, at(suite), "--runs", "2"];
    const { code, stderr } = await run(
      Deno.execPath(),
      [...asked, "--out", temporary.path, ...options],
      { env },
    );
    assert.equal(code, 0, stderr);
    return await Promise.all(
      names.split(",").map(async (name) => {
        const text = await Deno.readTextFile(at(`${name}.jsonl`));
        const { environments, cases } = parseRecords(text, name);
        assert.equal(environments[0]!.program, name);
        for (const { provider, time_ms, verdict, message } of cases) {
          assert.deepEqual(
            [provider, verdict, time_ms?.samples.length],
            [name, "pass", 2],
            message,
          );
        }
        return [name, cases] as const;
      }),
    );
  };
  const node = await exists(SWIFTSHADER) ? ["onnxruntime-node"] : [];
  if (node.length === 0) console.log("onnxruntime-node left out: no driver that its Dawn takes");
  for (
    const [layout, names] of [
      ["nhwc", ["tfjs,wgconv-wall", "onnxruntime-web,wgconv", ...node]],
      ["nchw", ["jax-js,wgconv"]],
    ] as const
  ) {
    for (const some of names) {
      await t.step(`${some} in ${layout}`, async () => {
        if (some.endsWith("wgconv")) {
          for (const [, halves] of await time(some, "products.txt", "--op=gemm", "--dtype=f16")) {
            assert.deepEqual(halves.map(({ dtype }) => dtype), ["f16", "f16"]);
          }
        }
        for (const [, products] of await time(some, "products.txt", "--op", "gemm")) {
          assert.deepEqual(products.map(({ problem }) => problem), ["8 12 16", "9 8 7 t n"]);
        }
        for (const [name, cases] of await time(some, "convs.txt", "--layout", layout)) {
          const operations = ["fwd", "bwd-data", ...name.startsWith("onnx") ? [] : ["bwd-filter"]];
          assert.deepEqual(cases.map(({ op }) => op), [
            ...operations,
            ...operations,
            ...operations,
          ]);
        }
      });
    }
  }
  const files = [at("jax-js.jsonl"), at("wgconv.jsonl")];
  const compared = await wgconvHere(["compare", ...files, "--json"]);
  assert.equal(JSON.parse(compared.stdout).cases.length, 9, compared.stdout);
  const page = await succeeds(["report", ...files, "--format", "html"]);
  assert.match(page.stdout, /jax-js/);
});

async function exists(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}
