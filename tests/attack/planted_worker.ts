/** A worker whose cases 1 to 4 end as no case may: with a finding, by dying, by hanging, by taking memory. */
const [, , from, count] = Deno.args.map(Number);
const hold: Uint8Array[] = [];
for (let number = from!; number < from! + count!; number++) {
  if (number === 1) console.log(JSON.stringify({ number, finding: "planted", input: "one" }));
  else if (number === 2) Deno.exit(7);
  else if (number === 3) { while (true); }
  else if (number === 4) {
    // More than it may have, and no more than a machine has.
    while (true) if (hold.length < 24) hold.push(new Uint8Array(1 << 26).fill(1));
  } else console.log(JSON.stringify({ number, outcome: "held" }));
}
console.log(JSON.stringify({ done: true }));
