/** Charts of the documentation, which are shown as images on light pages and on dark ones. */
import assert from "#assert";
import { decode } from "fast-png";
import { findChromium, openPage } from "../chromium.ts";
import { ROOT, temporaryDirectory } from "../cli.ts";

const CHARTS = [...Deno.readDirSync(`${ROOT}docs`)].map(({ name }) => name)
  .filter((name) => name.endsWith(".svg"));

Deno.test("the documentation's charts have grounds for light and dark, and text of the page's ink", async () => {
  assert.ok(CHARTS.length >= 2);
  for (const name of CHARTS) {
    const svg = await Deno.readTextFile(`${ROOT}docs/${name}`);
    assert.match(svg, /^<svg [^>]*aria-label="[^"]+"/, name);
    assert.match(
      svg,
      /<style>[^<]*prefers-color-scheme:dark[^<]*<\/style><rect class="ground"/,
      name,
    );
    for (const [text] of svg.matchAll(/<text [^>]*>/g)) {
      assert.match(text, /fill="currentColor"/, `${name}: ${text}`);
    }
  }
});

/** How light a picture's pixels are, 0 to 255: at a chart's corner, and the furthest from it in its left, where labels are. */
function tones(png: Uint8Array): { readonly ground: number; readonly ink: number } {
  const { width, data, channels } = decode(png);
  const tone = (x: number, y: number) => Number(data[(y * width + x) * channels]);
  const ground = tone(20, 20);
  let ink = ground;
  for (let y = 10; y < 330; y++) {
    for (let x = 10; x < 200; x++) {
      if (Math.abs(tone(x, y) - ground) > Math.abs(ink - ground)) ink = tone(x, y);
    }
  }
  return { ground, ink };
}

const chromium = findChromium();
// Registered only where there is a browser.
if (chromium !== undefined) {
  Deno.test("the documentation's charts are dark on light pages and light on dark ones", async () => {
    using folder = temporaryDirectory();
    for (const name of CHARTS) {
      const file = `${folder.path}/page.html`;
      await Deno.copyFile(`${ROOT}docs/${name}`, `${folder.path}/${name}`);
      const style = "<style>:root{color-scheme:light dark}body{margin:0}</style>";
      await Deno.writeTextFile(file, `<!doctype html>${style}<img src="${name}">`);
      await using page = await openPage(chromium, `file://${file}`);
      await page.look(800, "light");
      const light = tones(await page.screenshot());
      assert.ok(light.ground > 240 && light.ink < 60, `${name}: ${JSON.stringify(light)}`);
      await page.look(800, "dark");
      const dark = tones(await page.screenshot());
      assert.ok(dark.ground < 40 && dark.ink > 200, `${name}: ${JSON.stringify(dark)}`);
    }
  });
}
