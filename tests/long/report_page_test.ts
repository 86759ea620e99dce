/** The report's page as a browser shows it: narrow and wide, to those who prefer light and dark. */
import assert from "#assert";
import { collectHistory } from "../../src/report/history.ts";
import { historyPage } from "../../src/report/history_page.ts";
import { eachRecord, parseRecords } from "../../src/report/read_records.ts";
import { reportPage } from "../../src/report/page.ts";
import { findChromium, openPage, type Page } from "../chromium.ts";
import { temporaryDirectory } from "../cli.ts";
import { stream, timeOf } from "../support/test_records.ts";

type Changes = Record<string, unknown>;

const NAMES = [
  (i: number) => `n"Conv${i}N32"`,
  () => "",
  (i: number) =>
    `n"a_network_with_a_very_long_name/stage_${i}/block_${i}/conv_three_by_three_down"`,
];

/** Cases of many sizes, a third of them with long names; every 20th failed. */
function cases(count: number, peers: boolean): Changes[] {
  return Array.from({ length: count }, (_, i) => {
    const channels = 16 + i;
    const problem = `mb32ic${channels}ih${28 + i % 3}oc64kh3ph1${NAMES[i % 3]!(i)}`;
    const op = ["fwd", "bwd-data", "bwd-filter"][i % 7 % 3];
    const ours = {
      problem,
      op,
      algorithm: ["winograd2d-nonfused", "implicit-gemm", "direct"][i % 5 % 3],
      time_ms: timeOf(0.4 + i % 11 / 10, [0.9, 0.96, 0.99, 1, 1.02, 1.07]),
      workspace_bytes: i % 4 * 700_000,
      multiplications: 1e6 * channels,
      verdict: i % 20 === 19 ? "fail" : "pass",
      kernel: "winograd2d_nonfused_fwd_f32_m6x6r3x3_64x128x16_nchw_place_place",
      accuracy: { mare: 1e-7 * (1 + i % 9), rel_l2: 1.2e-7, max_bound_ratio: 3, bound_limit: 48 },
    };
    const theirs = { provider: "cudnn", problem, op, algorithm: "", verdict: undefined };
    return peers ? [ours, { ...theirs, time_ms: timeOf(0.7) }] : [ours];
  }).flat();
}

/** Twelve layers in eight precisions of three providers, some as fast and exact as each other. */
function precisionCases(): Changes[] {
  const series: [Changes, rate: number, error: number][] = [
    [{ dtype: "f64" }, 0.5, 0],
    [{}, 1, 2e-7],
    [{ math: "f16x3" }, 3, 2.1e-7],
    [{ dtype: "f16", device: "testgpu" }, 9, 3e-4],
    [{ dtype: "f16", accumulate: "f16" }, 9.1, 3.1e-4],
    [{ provider: "cudnn" }, 1.02, 2.2e-7],
    [{ provider: "cudnn", dtype: "tf32" }, 5, 3e-4],
    [{ provider: "cudnn", dtype: "f16" }, 9.2, 2.9e-4],
    [{ provider: "a provider of a long name", dtype: "f16" }, 9, 3e-4],
  ];
  return series.flatMap(([changes, rate, error]) =>
    Array.from({ length: 12 }, (_, i) => ({
      problem: `mb32ic${16 * (i + 1)}ih28oc64kh3ph1n"Conv${i}N32"`,
      time_ms: timeOf((1 + i) / rate),
      accuracy: { rel_l2: error * (0.7 + i % 7 / 10) },
      ...changes,
    }))
  );
}

/** What is wrong with how the page lies in its window. */
async function flaws(page: Page): Promise<string[]> {
  return await page.evaluate(`(() => {
    const flaws = [];
    const root = document.documentElement;
    if (root.scrollWidth > root.clientWidth) flaws.push("the page is wider than the window");
    const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
      Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3;
    for (const svg of document.querySelectorAll("svg")) {
      const name = svg.getAttribute("aria-label");
      const outer = svg.getBoundingClientRect();
      if (outer.right > root.clientWidth) flaws.push(name + " reaches beyond the window");
      const texts = [...svg.querySelectorAll("text")].filter(({ textContent }) => textContent !== "");
      if (texts.length < 5) flaws.push(name + " has few labels");
      const boxes = texts.map((text) => text.getBoundingClientRect());
      boxes.forEach((box, i) => {
        if (box.left < outer.left - 1 || box.right > outer.right + 1) {
          flaws.push(name + ": " + texts[i].textContent + " is cut off");
        }
        if (box.height > 0 && box.height / texts[i].childElementCount < 8) {
          flaws.push(name + ": " + texts[i].textContent + " is too small");
        }
        const other = boxes.findIndex((next, k) => k > i && meet(box, next));
        if (other >= 0) {
          flaws.push(name + ": " + texts[i].textContent + " meets " + texts[other].textContent);
        }
      });
    }
    return flaws;
  })()`) as string[];
}

/** Whether the verdicts of the table of all cases are within the window. */
function seesVerdicts(page: Page): Promise<unknown> {
  return page.evaluate(`(() => {
    const heading = [...document.querySelectorAll("th")].findLast((th) => th.textContent === "verdict");
    heading.closest("details")?.setAttribute("open", "");
    return heading.getBoundingClientRect().right <= document.documentElement.clientWidth;
  })()`);
}

const chromium = findChromium();
// Registered only where there is a browser.
if (chromium !== undefined) {
  for (
    const [count, peers] of [[1, false], [3, true], [20, true], [150, false], [150, true]] as const
  ) {
    const name = `${count} ${count === 1 ? "case" : "cases"}${peers ? " and a peer's" : ""}`;
    Deno.test(`the page of ${name} is readable at 500 and 1400 pixels`, async () => {
      using folder = temporaryDirectory();
      const file = `${folder.path}/report.html`;
      const records = parseRecords(stream(...cases(count, peers)), "made.jsonl");
      const options = {
        title: name,
        sources: ["made.jsonl"],
        ceilings: { peak: 9e4, bandwidth: 4e3 },
      };
      await Deno.writeTextFile(file, await reportPage(records, options));
      await using page = await openPage(chromium, `file://${file}`);
      for (const width of [500, 1400]) {
        await page.look(width, "light");
        assert.deepEqual(await flaws(page), [], `${width} pixels`);
        assert.equal(await seesVerdicts(page), true, `${width} pixels`);
      }
    });
  }

  Deno.test("speed against error is readable at 500 and 1400 pixels, in light and dark", async () => {
    using folder = temporaryDirectory();
    const file = `${folder.path}/report.html`;
    const records = parseRecords(stream(...precisionCases()), "made.jsonl");
    await Deno.writeTextFile(
      file,
      await reportPage(records, { title: "t", sources: [], ceilings: {} }),
    );
    await using page = await openPage(chromium, `file://${file}`);
    for (const width of [500, 1400]) {
      for (const scheme of ["light", "dark"] as const) {
        await page.look(width, scheme);
        assert.deepEqual(await flaws(page), [], `${width} pixels`);
      }
    }
  });

  Deno.test("the page of cases that fail is readable, and says which they are without scrolling", async () => {
    const small = "mb1ic16ih28oc32oh28kh3ph1";
    const wrong = {
      problem: small,
      algorithm: "winograd2d-nonfused",
      verdict: "fail",
      message: "the relative L2 error 0.51 is above 1.2e-5 and 49 outputs are beyond their bounds",
      workspace_bytes: 700_000,
    };
    const right = { algorithm: "direct", workspace_bytes: 0, accuracy: undefined };
    const failing: Changes[][] = [
      [wrong],
      [{ ...wrong, verdict: "error", time_ms: null }],
      [
        wrong,
        { ...right, problem: small, time_ms: timeOf(90) },
        { ...right, problem: "mb1ic16ih28oc32oh28kh1", time_ms: timeOf(0.3) },
      ],
    ];
    for (const cases of failing) {
      using folder = temporaryDirectory();
      const file = `${folder.path}/report.html`;
      const records = parseRecords(stream(...cases), "made.jsonl");
      await Deno.writeTextFile(
        file,
        await reportPage(records, { title: "t", sources: [], ceilings: {} }),
      );
      await using page = await openPage(chromium, `file://${file}`);
      for (const width of [500, 1400]) {
        await page.look(width, "light");
        assert.deepEqual(await flaws(page), [], `${cases.length} cases, ${width} pixels`);
        const unseen = await page.evaluate(`[...document.querySelectorAll(".failures th")]
          .slice(0, 4).filter((th) => th.getBoundingClientRect().right > innerWidth)
          .map((th) => th.textContent)`);
        assert.deepEqual(unseen, []);
      }
    }
  });

  Deno.test("the page of a history is readable from 320 to 1400 pixels, and goes by keyboard", async () => {
    using folder = temporaryDirectory();
    const collector = collectHistory({ peak: 9e4 });
    for (let day = 0; day < 40; day++) {
      const slow = day < 25 ? 1 : 1.2;
      const own = cases(40, false).map((one, i) => ({
        ...one,
        verdict: day > 30 && i === 7 ? "fail" : "pass",
        time_ms: timeOf((1 + i) * (i % 9 === 4 ? slow : 1)),
      }));
      const date = new Date(Date.UTC(2026, 0, 1 + day)).toISOString();
      const text = stream(...own).replace(/"date":"[^"]*"/, `"date":"${date}"`);
      collector.add(eachRecord(text, "made.jsonl"), "made.jsonl");
    }
    const history = collector.end({ threshold: 0.05, margin: 0.02 });
    const file = `${folder.path}/history.html`;
    await Deno.writeTextFile(
      file,
      await historyPage(history, ["Cannot read a.jsonl:1: no record"]),
    );
    await using page = await openPage(chromium, `file://${file}`);
    for (const width of [320, 768, 1400]) {
      for (const scheme of ["light", "dark"] as const) {
        await page.look(width, scheme);
        const wide = await page.evaluate(
          "document.documentElement.scrollWidth > document.documentElement.clientWidth",
        );
        assert.equal(wide, false, `${width} pixels`);
        const colours = await page.evaluate(
          `[document.body, document.querySelector("td svg polyline")].map((one) =>
            getComputedStyle(one).color)`,
        ) as string[];
        const ink = scheme === "light" ? "rgb(29, 33, 38)" : "rgb(228, 230, 234)";
        assert.deepEqual(colours, [ink, ink]);
      }
    }
    const reached = new Set<string>();
    for (let i = 0; i < 30; i++) {
      await page.press("Tab");
      reached.add(
        String(
          await page.evaluate("document.activeElement.className || document.activeElement.tagName"),
        ),
      );
    }
    for (const what of ["SUMMARY", "table", "A"]) assert.ok(reached.has(what), [...reached].join());
    await page.evaluate(`document.querySelector('a[href^="#case"]').focus()`);
    await page.press("Enter");
    const found = await page.evaluate(`document.querySelector("tr:has(:target)")?.innerText ?? ""`);
    assert.match(String(found), /SLOWER by 20 %|WRONG/);
  });

  Deno.test("the page takes the reader's light or dark, its charts too", async () => {
    using folder = temporaryDirectory();
    const file = `${folder.path}/report.html`;
    const records = parseRecords(stream(...cases(3, true)), "made.jsonl");
    await Deno.writeTextFile(
      file,
      await reportPage(records, { title: "t", sources: [], ceilings: {} }),
    );
    await using page = await openPage(chromium, `file://${file}`);
    const colours = async (scheme: "light" | "dark") => {
      await page.look(500, scheme);
      return await page.evaluate(`(() => {
        const label = document.querySelector("svg .role-axis-label text");
        return [getComputedStyle(document.body).backgroundColor, getComputedStyle(label).fill];
      })()`);
    };
    assert.deepEqual(await colours("light"), ["rgb(255, 255, 255)", "rgb(29, 33, 38)"]);
    assert.deepEqual(await colours("dark"), ["rgb(22, 24, 28)", "rgb(228, 230, 234)"]);
  });
}
