/**
 * `deno task test:attack [--seconds N] [--seed S] [--only KIND] [--from N] [--count N]`: random input of every kind against
 * the program. Prints the seed, what it found with how to run it again, and counts a kind; exits with 1 where anything was
 * found. `--count` takes the place of a time: so many cases of each kind.
 */
import { parseArgs } from "node:util";
import { ATTACKS, findAttack } from "../tests/attack/kinds.ts";
import { type AttackResult, type Found, runAttack } from "../tests/attack/run.ts";

const { values } = parseArgs({
  args: Deno.args,
  options: {
    seconds: { type: "string" },
    seed: { type: "string" },
    only: { type: "string" },
    from: { type: "string", default: "0" },
    count: { type: "string" },
  },
});

function whole(name: "seconds" | "seed" | "from" | "count"): number | undefined {
  const text = values[name];
  if (text === undefined) return undefined;
  if (/^\d{1,12}$/.test(text)) return Number(text);
  throw new TypeError(`Cannot attack: --${name} is ${text}, expected a whole number`);
}

const seed = whole("seed") ?? crypto.getRandomValues(new Uint32Array(1))[0]!;
const count = whole("count") ?? Infinity;
const seconds = whole("seconds") ?? (count === Infinity ? 60 : Infinity);
const from = whole("from")!;
const attacks = values.only === undefined ? [...ATTACKS] : values.only.split(",").map(findAttack);
const lanes = Math.min(navigator.hardwareConcurrency, attacks.length);
/** Seconds of an attack of weight 1, where a core does one at a time. */
const share = seconds * lanes / attacks.reduce((sum, { weight }) => sum + weight, 0);

console.log(`attacking with seed ${seed}`);
/** Prints a finding and how to see it again. */
function show({ kind, number, what, input }: Found): void {
  console.log(`\nfound by ${kind}, seed ${seed}, case ${number}: ${what}`);
  console.log(
    `  again: deno task test:attack --only ${kind} --seed ${seed} --from ${number} --count 1`,
  );
  console.log(`  input: ${input}`);
}

const results: AttackResult[] = [];
// The longest first, so that the lanes end together.
const waiting = attacks.toSorted((one, other) => other.weight - one.weight);
await Promise.all(Array.from({ length: lanes }, async () => {
  for (let attack = waiting.shift(); attack; attack = waiting.shift()) {
    const deadline = performance.now() + 1000 * share * attack.weight;
    const most = Math.min(count, 2 ** 32 - from);
    results.push(await runAttack(attack, { seed, from, count: most, deadline }, show));
  }
}));

console.log();
for (const { kind } of attacks) {
  const { cases, outcomes, found } = results.find((one) => one.kind === kind)!;
  const parts = [...outcomes].sort(([a], [b]) => a < b ? -1 : 1)
    .map(([outcome, times]) => `${times.toLocaleString("en")} ${outcome}`);
  console.log(
    `${kind}: ${cases.toLocaleString("en")} cases, ${found} found` +
      (parts.length > 0 ? ` (${parts.join(", ")})` : ""),
  );
}
const idle = results.some(({ cases }) => cases === 0);
if (idle) console.log("a kind ran no case: give it more seconds");
Deno.exit(idle || results.some(({ found }) => found > 0) ? 1 : 0);
