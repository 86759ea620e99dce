import assert from "#assert";
import { text } from "../ir/tree.ts";
import { range } from "../lists.ts";
import { moduleBuilder } from "../module.ts";
import {
  type Mainloop,
  type MainloopSchedule,
  mainloopText,
  type StepProducts,
} from "./mainloop.ts";

type Buffers = MainloopSchedule["buffers"];

/** What a mainloop does, one letter each: multiplied steps by their number, `b` and `a` around a back edge, flushes, output. */
function run(
  first: number,
  end: number,
  schedule: Partial<MainloopSchedule>,
  products: Partial<StepProducts> = {},
): string[] {
  const { buffers = 1 } = schedule;
  const [store, tile] = tileTexts(buffers);
  const loader = {
    places: "",
    begin: "var s = first_step;",
    registers: "var loaded = 0;",
    advance: "s += 1u;",
    fetch: "loaded = s;",
    store,
  };
  const none = { places: "", registers: "", advance: "", fetch: "", store: "" };
  const multiply = `see(${tile});${buffers === "register-double" ? " held = tiles[fill];" : ""}`;
  const loop: Mainloop = {
    name: "test",
    summary: "",
    declarations: [],
    threads: 1,
    workgroups: "1u",
    workgroup: `let first_step = ${first}u; let end_step = ${end}u;`,
    places: "",
    schedule: {
      buffers,
      prefetch: true,
      tripCount: { form: "range" },
      steps: end - first,
      ...schedule,
    },
    loaders: [loader, none],
    products: {
      declarations: [],
      sums: "",
      loadFragments: "held = tiles[fill];",
      rows: [multiply],
      lastRows: undefined,
      fold: "",
      finish: [],
      flush: undefined,
      ...products,
    },
    output: [text('see("out");')],
  };
  const [, main] = mainloopText(loop, moduleBuilder("constant")).split(/if \(id >= 1u\).*\n/);
  const script = main!.replaceAll(/(\d)u\b/g, "$1").replaceAll(
    "workgroupUniformLoad(&loop_end)",
    "loop_end",
  )
    .replace(/\}\n$/, "").replaceAll("loop {", "for (;;) {");
  const seen: string[] = [];
  const body =
    `let held, loop_end, t = 0, tiles = []; const workgroupBarrier = () => {}, min = Math.min;\n${script}`;
  new Function("see", body)((what: unknown) => seen.push(`${what}`));
  return seen;
}

/** How a tile is stored, and the one that is multiplied. */
function tileTexts(buffers: Buffers): readonly [store: string, tile: string] {
  if (buffers === "register-double") return ["tiles[fill] = loaded;", "held"];
  const tile = buffers === 1 ? "tiles[0]" : "tiles[half]";
  return [`${tile} = loaded;`, tile];
}

function steps(first: number, end: number): string[] {
  return range(end - first).map((step) => `${first + step}`);
}

Deno.test("every form of the loop multiplies each step's tile once, in order", () => {
  for (const buffers of [1, 2, 3, "register-double"] as const) {
    for (const prefetch of buffers === "register-double" ? [true] : [true, false]) {
      for (const [first, end] of [[0, 1], [0, 2], [3, 9], [4, 8], [2, 2]] as const) {
        const all = [...steps(first, end), "out"];
        const schedule = { buffers, prefetch };
        const what = `${buffers} ${prefetch} ${first} to ${end}`;
        assert.deepEqual(run(first, end, schedule), all, what);
        const opaque = { form: "opaque" } as const;
        assert.deepEqual(run(first, end, { ...schedule, tripCount: opaque }), all, what);
        const counted = { form: "counted", steps: `${end - first}u` } as const;
        assert.deepEqual(run(first, end, { ...schedule, tripCount: counted }), all, what);
        const longer = { form: "counted", steps: `${end - first - 1}u`, longer: "true" } as const;
        if (end > first) {
          assert.deepEqual(run(first, end, { ...schedule, tripCount: longer }), all, what);
        }
        const unrolled = { form: "unrolled", factor: 2 } as const;
        if ((end - first) % 2 === 0) {
          assert.deepEqual(run(first, end, { ...schedule, tripCount: unrolled }), all, what);
        }
      }
    }
  }
});

Deno.test("a last step of its own multiplies what is left", () => {
  for (const end of [1, 2, 3, 7]) {
    const seen = run(0, end, { steps: end }, { lastRows: ['see("last " + tiles[0]);'] });
    assert.deepEqual(seen, [...steps(0, end - 1), `last ${end - 1}`, "out"]);
  }
});

Deno.test("ends of a row have products of their own, round by round", () => {
  const rowEnds = { before: ['see("first");'], after: ['see("last");'] };
  const loopCarried = { begin: "", next: 'see("carried");', rowEnds };
  const tripCount = { form: "unrolled", factor: 4 } as const;
  assert.deepEqual(
    run(0, 8, { tripCount }, { loopCarried }),
    ["first", "1", "2", "last", "first", "5", "6", "last", "out"],
  );
});

Deno.test("a software-pipelined loop finishes each step's products after its back edge", () => {
  const [before, after] = ['see("b" + tiles[0]);', 'see("a" + tiles[0]);'];
  for (const early of [true, false]) {
    for (const [first, end] of [[0, 1], [2, 7], [3, 3]] as const) {
      const seen = run(first, end, {}, { rows: [before, after], cut: { rows: 1, early } });
      assert.deepEqual(seen, [
        ...steps(first, end).flatMap((step) => [`b${step}`, `a${step}`]),
        "out",
      ]);
    }
  }
});

Deno.test("sums are flushed every interval and at the end, stored each time or at last", () => {
  const flush = { interval: "3u", clear: 'see("clear");' };
  const finish = [text('see("flush");')];
  const part = (
    first: number,
    end: number,
    more: string[] = [],
  ) => ["clear", ...steps(first, end), "flush", ...more];
  for (const tripCount of [{ form: "range" }, { form: "opaque" }] as const) {
    assert.deepEqual(
      run(0, 7, { tripCount }, { finish, flush: { ...flush, stored: true } }),
      [...part(0, 3, ["out"]), ...part(3, 6, ["out"]), ...part(6, 7, ["out"])],
    );
    assert.deepEqual(
      run(0, 7, { tripCount }, { finish, flush: { ...flush, stored: false } }),
      [...part(0, 3), ...part(3, 6), ...part(6, 7), "out"],
    );
  }
  const last = {
    lastRows: ['see("last " + tiles[0]);'],
    finish,
    flush: { ...flush, stored: true },
  };
  assert.deepEqual(
    run(0, 4, {}, last),
    [...part(0, 3, ["out"]), "clear", "last 3", "flush", "out"],
  );
});
