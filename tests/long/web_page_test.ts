import assert from "#assert";
import { encode } from "fast-png";
import { FILTERS } from "../../examples/web/filters.ts";
import { offeredChoices, pictureProblem } from "../../examples/web/offered.ts";
import { DEFAULT_LIMITS, readNpy } from "../../mod.ts";
import { findChromium, openPage, type Page } from "../chromium.ts";
import { deno, ROOT, temporaryDirectory } from "../cli.ts";

const EXAMPLES = `${ROOT}examples/`;

/** Serves a folder as file servers do. */
function serve(folder: string) {
  const types: Record<string, string> = { html: "text/html", js: "text/javascript" };
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, async (request) => {
    const name = decodeURIComponent(new URL(request.url).pathname).slice(1) || "index.html";
    try {
      const type = types[name.split(".").at(-1)!] ?? "application/octet-stream";
      return new Response(await Deno.readFile(`${folder}/${name}`), {
        headers: { "content-type": type },
      });
    } catch {
      return new Response(null, { status: 404 });
    }
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}/`,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

/** What the page says when it has finished: its lines by name, or its message. */
async function finished(page: Page): Promise<Record<string, string>> {
  const state = `(async () => {
    for (;;) {
      const state = document.body?.dataset.state;
      if (state === "done") break;
      if (state === "failed") return { failed: document.getElementById("message").textContent };
      await new Promise((done) => setTimeout(done, 50));
    }
    return Object.fromEntries([...document.querySelectorAll("#report dd")]
      .map((line) => [line.dataset.name, line.textContent]));
  })()`;
  return await page.evaluate(state) as Record<string, string>;
}

interface PageState {
  readonly state: string;
  readonly status: string;
  readonly disabled: boolean;
}

/** What the page says it is at, and whether nothing can be chosen. */
const STATE = `({
  state: document.body.dataset.state,
  status: document.getElementById("status").textContent,
  disabled: document.getElementById("choices").disabled,
})`;

/** Chooses as a user would; what the page says then, before it can have finished. */
async function choose(page: Page, id: string, value: string): Promise<PageState> {
  const state = page.evaluate(`(async () => {
    const select = document.getElementById(${JSON.stringify(id)});
    select.value = ${JSON.stringify(value)};
    select.dispatchEvent(new Event("change"));
    await new Promise((done) => setTimeout(done));
    return ${STATE};
  })()`);
  return await state as PageState;
}

/** Mean and deviation of the red channel of a canvas. */
async function brightness(page: Page, id: string): Promise<{ mean: number; deviation: number }> {
  const values = await page.evaluate(`(() => {
    const { width, height } = document.getElementById(${JSON.stringify(id)});
    const { data } = document.getElementById(${JSON.stringify(id)})
      .getContext("2d").getImageData(0, 0, width, height);
    let [sum, squares] = [0, 0];
    for (let i = 0; i < data.length; i += 4) { sum += data[i]; squares += data[i] ** 2; }
    const mean = sum / (width * height);
    return { mean, deviation: Math.sqrt(squares / (width * height) - mean ** 2) };
  })()`);
  return values as { mean: number; deviation: number };
}

Deno.test("the page's program asks for nothing of Deno or Node", async () => {
  using temporary = temporaryDirectory();
  const output = `${temporary.path}/main.js`;
  const args = ["bundle", "--platform", "browser", "-o", output, `${EXAMPLES}web/main.ts`];
  const { code, stderr } = await deno(args);
  assert.equal(code, 0, stderr);
  const text = await Deno.readTextFile(output);
  assert.doesNotMatch(text, /\bDeno\.|"node:|\bprocess\.|^import /m);
});

/** The middle of the photo, 64 x 64: software devices are slow. */
async function smallPhoto(): Promise<Uint8Array> {
  const { shape, data } = await readNpy(`${EXAMPLES}../fixtures/astronaut_256x256x3_f4.npy`);
  const width = shape[1]!;
  const [size, channels, first] = [64, 3, 64];
  const bytes = new Uint8Array(size * size * channels);
  for (let y = 0; y < size; y++) {
    for (let x = 0; x < size * channels; x++) {
      const value = Number(data[((first + y) * width + first) * channels + x]);
      bytes[y * size * channels + x] = Math.round(255 * value);
    }
  }
  return encode({ width: size, height: size, channels, data: bytes });
}

Deno.test("the page offers auto and what can run within the device's limits", () => {
  const problem = (size: number) => pictureProblem(FILTERS["blur, 11 x 11"]!, size, size);
  const small = offeredChoices(problem(64), DEFAULT_LIMITS);
  assert.equal(small[0], "auto");
  assert.ok(small.includes("im2col") && small.includes("direct") && !small.includes("winrs"));
  // A row of places of 1024 x 1024 pixels is more than a binding of these limits holds.
  const large = offeredChoices(problem(1024), DEFAULT_LIMITS);
  assert.ok(large.includes("direct") && !large.includes("im2col"));
});

const chromium = findChromium();
// Registered only where there is a browser.
if (chromium !== undefined) {
  Deno.test("the web page convolves a picture in Chromium and checks it", async () => {
    using temporary = temporaryDirectory();
    const folder = temporary.path;
    const build = await deno(["run", "-A", `${EXAMPLES}web/build.ts`, "--output", folder]);
    assert.equal(build.code, 0, build.stderr);
    await Deno.writeFile(`${folder}/photo.png`, await smallPhoto());
    await using server = serve(folder);
    await using page = await openPage(chromium, server.url);

    const blurred = await finished(page);
    assert.equal(blurred.failed, undefined, blurred.failed);
    assert.match(blurred.device!, /swiftshader/i);
    assert.equal(blurred.verdict, "pass");
    assert.match(blurred.checked!, /^12,288 outputs/);
    const [photo, blur] = [await brightness(page, "source"), await brightness(page, "target")];
    assert.ok(Math.abs(blur.mean - photo.mean) < 5, `${blur.mean}, ${photo.mean}`);
    assert.ok(blur.deviation < photo.deviation);

    assert.deepEqual(await page.evaluate(STATE), { state: "done", status: "", disabled: false });

    const { state, status } = await choose(page, "filter", "sharpen, 3 x 3");
    assert.equal(state, "working");
    assert.match(status, /^working: (convolves 64 x 64 pixels with auto|checks every pixel)/);
    assert.equal((await finished(page)).verdict, "pass");
    assert.ok((await brightness(page, "target")).deviation > photo.deviation);

    await choose(page, "algorithm", "winograd2d");
    const winograd = await finished(page);
    assert.match(winograd.kernel!, /^winograd2d_fwd_f32_/);
    assert.equal(winograd.verdict, "pass");

    // What cannot run is not offered: winrs is of gradients.
    const offered = () =>
      page.evaluate(`[...document.getElementById("algorithm").options].map(({ value }) => value)`);
    const small = await offered() as string[];
    assert.ok(small.includes("auto") && small.includes("winograd2d") && !small.includes("winrs"));
    await choose(page, "algorithm", "direct");
    assert.equal((await finished(page)).verdict, "pass");
    for (const width of [500, 1400]) {
      await page.look(width, "dark");
      const room = await page.evaluate(`(() => {
        const { scrollWidth, clientWidth } = document.documentElement;
        const boxes = ["source", "target"].map((id) => document.getElementById(id).getBoundingClientRect());
        return { beyond: scrollWidth - clientWidth, abreast: boxes[0].top === boxes[1].top };
      })()`);
      assert.deepEqual(room, { beyond: 0, abreast: true }, `${width} pixels`);
    }
    const png = await page.screenshot();
    assert.deepEqual([...png.subarray(1, 4)], [...new TextEncoder().encode("PNG")]);
  });

  Deno.test("without WebGPU the web page says so and offers nothing", async () => {
    using temporary = temporaryDirectory();
    const folder = temporary.path;
    const build = await deno(["run", "-A", `${EXAMPLES}web/build.ts`, "--output", folder]);
    assert.equal(build.code, 0, build.stderr);
    const without =
      `<script>Object.defineProperty(navigator, "gpu", { value: undefined })</script>`;
    const html = await Deno.readTextFile(`${folder}/index.html`);
    await Deno.writeTextFile(`${folder}/index.html`, html.replace("</head>", `${without}</head>`));
    await using server = serve(folder);
    await using page = await openPage(chromium, server.url);
    assert.match((await finished(page)).failed!, /^Cannot open a GPU: this browser has no WebGPU/);
    assert.deepEqual(await page.evaluate(STATE), { state: "failed", status: "", disabled: true });
  });
}
