/**
 * The process that runs an attack's cases: `worker.ts <kind> <seed> <from> <count> <ms>`. A line of JSON a case goes to
 * stdout. It ends after `count` cases, or the one during which its time is over: nothing that a case has begun outlives
 * it. `run.ts` sees where it hangs or dies.
 */
import { Finding } from "./attack.ts";
import { findAttack } from "./kinds.ts";

const [kind, seed, from, count, ms] = Deno.args;
const stdout = Deno.stdout;
const write = stdout.writeSync.bind(stdout);
const say = (value: unknown) => {
  const bytes = new TextEncoder().encode(`${JSON.stringify(value)}\n`);
  for (let at = 0; at < bytes.length;) at += write(bytes.subarray(at));
};
const exit = Deno.exit;
const now = performance.now.bind(performance);

{
  await using runner = await findAttack(kind!).open(Number(seed));
  const end = Number(from) + Number(count);
  for (let number = Number(from); number < end && now() < Number(ms); number++) {
    try {
      say({ number, outcome: await runner.run(number) });
    } catch (error) {
      const finding = error instanceof Finding
        ? error.message
        : `unexpected ${error instanceof Error ? error.stack ?? error.message : error}`;
      say({ number, finding, input: runner.describe(number) });
    }
  }
}
say({ done: true });
exit(0);
