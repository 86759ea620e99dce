import assert from "#assert";
import { progressLine } from "./output.ts";

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
