import assert from "#assert";
import { caseProgress, progressLine } from "./output.ts";

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Lets `performance.now()` tell what the clock says, so that no test depends on how busy the machine is. */
function stoppedClock(clock: { ms: number }): Disposable {
  const { now } = performance;
  performance.now = () => clock.ms;
  return { [Symbol.dispose]: () => void (performance.now = now) };
}

Deno.test("progressLine() shows the last of what came too early when its time comes", async () => {
  const clock = { ms: 0 };
  using _ = stoppedClock(clock);
  const written: string[] = [];
  const line = progressLine(true, (text) => written.push(text));
  line.update("one");
  line.update("two");
  assert.deepEqual(written, []);
  await wait(600);
  assert.deepEqual(written, ["\r\x1b[Ktwo"]);
  clock.ms += 150;
  line.update("three");
  line.update("four");
  assert.equal(written.at(-1), "\r\x1b[Kthree");
  line.done();
  assert.equal(written.at(-1), "\r\x1b[K");
  await wait(150);
  assert.equal(written.length, 3);
});

Deno.test("progressLine() says nothing where nobody looks", async () => {
  const written: string[] = [];
  const line = progressLine(false, (text) => written.push(text));
  line.update("one");
  await wait(550);
  line.update("two");
  line.done();
  assert.deepEqual(written, []);
});

Deno.test("progressLine() never shows more than a terminal's line holds, whatever that is now", () => {
  const clock = { ms: 0 };
  using _ = stoppedClock(clock);
  const written: string[] = [];
  let columns = 60;
  const line = progressLine(true, (text) => written.push(text), () => columns);
  const said =
    "case 12 of 20, about 40 s left: mb32ic64ih56oc64kh3ph1 fwd, a first look: 3 of 12, im2win";
  const shown = (text: string) => {
    clock.ms += 1000;
    line.update(text);
    return written.at(-1)!.replace("\r\x1b[K", "");
  };
  assert.equal(shown(said), "case 12 of 20, about 40 s lef…a first look: 3 of 12, im2win");
  columns = 200;
  assert.equal(shown(said), said);
  columns = 30;
  assert.equal(shown("short"), "short");
  // Letters of two columns each.
  assert.equal([...shown("\u7d50".repeat(40))].length, 15);
  columns = 1;
  assert.equal(shown(said).length, 1);
  line.done();
});

Deno.test("caseProgress() counts on after what an earlier run has done", () => {
  const said: string[] = [];
  const shown = caseProgress("case", 19, {
    visible: true,
    update: (text) => void said.push(text),
    done: () => {},
  });
  shown.begin(1, 1, "last");
  assert.deepEqual(said, ["case 20 of 20: last"]);
});
