import assert from "#assert";
import { encode } from "fast-png";
import { FILTERS } from "../../examples/web/filters.ts";
import { offeredChoices, pictureProblem } from "../../examples/web/offered.ts";
import { DEFAULT_LIMITS, fillTensor, readNpy, writeNpy } from "../../mod.ts";
import { parseRecords } from "../../src/report/read_records.ts";
import { findChromium, openPage, type Page } from "../chromium.ts";
import { deno, ROOT, temporaryDirectory } from "../cli.ts";

const EXAMPLES = `${ROOT}examples/`;

/** Serves a folder as file servers do. */
function serve(folder: string) {
  const types: Record<string, string> = { html: "text/html", js: "text/javascript" };
  const asked: string[] = [];
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, async (request) => {
    const name = decodeURIComponent(new URL(request.url).pathname).slice(1) || "index.html";
    asked.push(name);
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
    /** Names of files that were asked for. */
    asked,
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

/** A folder with the page's files. */
async function built() {
  const temporary = temporaryDirectory();
  const build = await deno(["run", "-A", `${EXAMPLES}web/build.ts`, "--output", temporary.path]);
  assert.equal(build.code, 0, build.stderr);
  return temporary;
}

Deno.test("the page's program asks for nothing of Deno or Node, and is in ES2022", async () => {
  using folder = await built();
  const text = await Deno.readTextFile(`${folder.path}/main.js`);
  assert.doesNotMatch(text, /\bDeno\.|"node:|\bprocess\.|^import /m);
  // Safari has no `using`, nor have older engines: the declaration, and not the word in a sentence.
  assert.doesNotMatch(text, /[;{}]\s*(?:await )?using [\w$]+\s*=/);
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
    using temporary = await built();
    const folder = temporary.path;
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

  Deno.test("the web page runs all algorithms of a layer, shows and hands over their records", async (t) => {
    using temporary = await built();
    const folder = temporary.path;
    await Deno.writeFile(`${folder}/photo.png`, await smallPhoto());
    await using server = serve(folder);
    await using page = await openPage(chromium, server.url);
    await finished(page);
    const set = (id: string, value: string) =>
      page.evaluate(`(() => {
        const field = document.querySelector(${JSON.stringify(id)});
        field.value = ${JSON.stringify(value)};
        field.dispatchEvent(new Event("change"));
      })()`);
    const descriptor = () => page.evaluate(`document.getElementById("descriptor").value`);
    const layers = async () => {
      await page.evaluate(`(async () => {
        await new Promise((done) => setTimeout(done, 100));
        const layers = document.getElementById("layers");
        while (layers.dataset.state === "working") await new Promise((done) => setTimeout(done, 50));
      })()`);
      return await page.evaluate(`({
        state: document.getElementById("layers").dataset.state,
        message: document.getElementById("layer-message").textContent,
        rows: Object.fromEntries([...document.querySelectorAll("#results tr")].map((row) =>
          [row.dataset.name, [...row.cells].map((cell) => cell.textContent)])),
        dots: document.querySelectorAll("#chart .dot").length,
      })`) as {
        state: string;
        message: string;
        rows: Record<string, string[]>;
        dots: number;
      };
    };
    const run = async () => {
      await page.evaluate(`document.querySelector("#layer-form button[type=submit]").click()`);
      return await layers();
    };

    await t.step("a layer of a network, and any batch", async () => {
      await set("#network", "resnet18");
      await set("#layer", "conv3");
      assert.equal(await descriptor(), 'mb1ic128ih28oc128oh28kh3ph1n"resnet18_conv3*3"');
      await set("#batch", "4");
      assert.match(String(await descriptor()), /^mb4ic128/);
    });

    await t.step("a descriptor, by keyboard", async () => {
      await set("#descriptor", "");
      await page.evaluate(`document.getElementById("descriptor").focus()`);
      for (const letter of "mb1ic4ih10oc8kh3ph1") await page.press(letter);
      await page.press("Enter");
      const { state, message, rows, dots } = await layers();
      assert.deepEqual([state, message], ["done", ""]);
      const names = Object.keys(rows);
      assert.ok(names.includes("direct") && names.includes("winograd2d"), names.join());
      assert.equal(dots, names.length);
      for (const cells of Object.values(rows)) assert.equal(cells.at(-1), "pass", cells.join());
      assert.equal(Object.values(rows).filter(([name]) => name!.endsWith("(auto)")).length, 1);
    });

    await t.step("its records, which report reads", async () => {
      const text = await page.evaluate(`(async () => {
        const { createObjectURL } = URL;
        let blob;
        URL.createObjectURL = (one) => (blob = one, createObjectURL.call(URL, one));
        document.getElementById("download").click();
        return await blob.text();
      })()`) as string;
      const { environments, cases } = parseRecords(text, "wgconv.jsonl");
      assert.deepEqual(environments.map(({ backend }) => backend), ["browser"]);
      assert.ok(cases.length > 3);
      for (const record of cases) {
        assert.deepEqual([record.problem, record.verdict], ["mb1ic4ih10oc8oh10kh3ph1", "pass"]);
        assert.match(record.device, /swiftshader/i);
        assert.deepEqual([record.fill, record.seed], ["uniform01", 1]);
      }
    });

    await t.step(
      "files that are dropped say the layer, and what does not fit is refused",
      async () => {
        const drop = async (place: number, name: string, shape?: number[]) => {
          const path = `${folder}/${name}`;
          if (shape === undefined) await Deno.writeTextFile(path, "no array");
          else await writeNpy(path, fillTensor("f32", shape, "normal", 5));
          const bytes = (await Deno.readFile(path)).toBase64();
          await page.evaluate(`(async () => {
          const data = new DataTransfer();
          const bytes = Uint8Array.fromBase64(${JSON.stringify(bytes)});
          data.items.add(new File([bytes], ${JSON.stringify(name)}));
          document.getElementById("drop-${place}").dispatchEvent(
            new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }),
          );
          await new Promise((done) => setTimeout(done, 200));
        })()`);
        };
        await drop(0, "x.npy", [2, 3, 9, 9]);
        await drop(1, "w.npy", [4, 3, 3, 3]);
        assert.equal(await descriptor(), "mb2ic3ih9oc4oh9kh3ph1");
        const { state, message, rows } = await run();
        assert.deepEqual([state, message], ["done", ""]);
        for (const cells of Object.values(rows)) assert.equal(cells.at(-1), "pass", cells.join());
        await set("#descriptor", "mb1ic3ih9oc4kh3");
        const other = await run();
        assert.equal(other.state, "failed");
        assert.match(
          other.message,
          /^Cannot read x\.npy: it is \[2,3,9,9\], the layer's input X is /,
        );
        await drop(0, "text.npy");
        assert.match(
          (await layers()).message,
          /^Cannot read text\.npy: byte 0: expected the magic/,
        );
        for (const place of [0, 1]) {
          await page.evaluate(`document.getElementById("remove-${place}").click()`);
        }
        await set("#descriptor", "nonsense");
        assert.match((await run()).message, /nonsense/);
      },
    );

    await t.step("a gradient, until it is stopped", async () => {
      await set("#op", "bwd-filter");
      const roles = `[0, 1].map((place) => document.getElementById("role-" + place).textContent)`;
      assert.deepEqual(await page.evaluate(roles), ["input X", "gradient dY"]);
      await set("#descriptor", "mb1ic4ih10oc8kh3ph1");
      await page.evaluate(`(async () => {
        document.querySelector("#layer-form button[type=submit]").click();
        while (document.querySelectorAll("#results tr").length !== 1) {
          await new Promise((done) => setTimeout(done, 10));
        }
        document.getElementById("stop").click();
      })()`);
      const { state, rows } = await layers();
      assert.equal(state, "done");
      for (const cells of Object.values(rows)) assert.equal(cells.at(-1), "pass", cells.join());
      const status = await page.evaluate(`document.getElementById("layer-status").textContent`);
      assert.match(String(status), /^stopped after \d of \d algorithms$/);
    });

    await t.step(
      "it fits from 320 to 1400 pixels, in light and dark, and asks for its own files alone",
      async () => {
        for (const width of [320, 500, 900, 1400]) {
          for (const scheme of ["light", "dark"] as const) {
            await page.look(width, scheme);
            const { beyond, contrast } = await page.evaluate(`(() => {
            const { scrollWidth, clientWidth } = document.documentElement;
            const ink = getComputedStyle(document.body).color;
            return { beyond: scrollWidth - clientWidth, contrast: ink };
          })()`) as { beyond: number; contrast: string };
            assert.equal(beyond, 0, `${width} pixels`);
            assert.equal(contrast, scheme === "light" ? "rgb(0, 0, 0)" : "rgb(255, 255, 255)");
          }
        }
        assert.deepEqual([...new Set(server.asked)].sort(), ["index.html", "main.js", "photo.png"]);
        const reached = new Set<unknown>();
        await page.evaluate(`document.activeElement?.blur()`);
        for (let i = 0; i < 24; i++) {
          await page.press("Tab");
          reached.add(
            await page.evaluate(`document.activeElement.id || document.activeElement.name`),
          );
        }
        for (const id of ["network", "layer", "batch", "op", "dtype", "descriptor", "choose-0"]) {
          assert.ok(reached.has(id), `${id}: ${[...reached]}`);
        }
      },
    );
  });

  Deno.test("without WebGPU the web page says so and offers nothing", async () => {
    using temporary = await built();
    const folder = temporary.path;
    // The page's policy lets no script run that is not a file of its own.
    const without = `Object.defineProperty(navigator, "gpu", { value: undefined })`;
    await Deno.writeTextFile(`${folder}/without.js`, without);
    const html = await Deno.readTextFile(`${folder}/index.html`);
    const script = `<script src="without.js"></script></head>`;
    await Deno.writeTextFile(`${folder}/index.html`, html.replace("</head>", script));
    await using server = serve(folder);
    await using page = await openPage(chromium, server.url);
    assert.match((await finished(page)).failed!, /^Cannot open a GPU: this browser has no WebGPU/);
    assert.deepEqual(await page.evaluate(STATE), { state: "failed", status: "", disabled: true });
  });
}
