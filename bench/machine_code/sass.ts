/** What a listing of nvdisasm says of a kernel: its instructions, and those of the loop that does the work. */

/** Instructions by name, without modifiers: `FFMA`, `LDS`, `BAR`. */
export type Mix = Readonly<Record<string, number>>;

/** What a kernel's machine code is made of. */
export interface Listing {
  readonly instructions: number;
  readonly mix: Mix;
  /** The loop with most of the arithmetic; absent where there is none. */
  readonly loop?: {
    readonly instructions: number;
    readonly mix: Mix;
    /** Loads from memory that a branch within a step jumps over: what waits for them stands there too. */
    readonly branchedLoads: number;
    /** Loads from memory that are stored to workgroup memory behind few products or none, which so hide nothing of them. */
    readonly lateLoads: number;
    /**
     * The shortest way from the loop's beginning to its end: of code with and without masks, between which a branch chooses,
     * a step runs one, and the loop's own counts hold both.
     */
    readonly shortest: { readonly instructions: number; readonly mix: Mix };
  };
}

interface Instruction {
  readonly address: number;
  readonly name: string;
  /** Where a jump goes: an address or a label. */
  readonly target?: string;
  /** Whether what follows in the listing may run next. */
  readonly goesOn: boolean;
}

const INSTRUCTION =
  /\/\*([0-9a-f]{4,})\*\/\s+(?:\{\s*)?(@!?U?P\w+\s+)?([A-Z][A-Z0-9]*)((?:\.[\w.]+)?[^;]*)/;
const LABEL = /^\s*\.?(L_\w+):/;
const TARGET = /`\(\.?(L_\w+)\)|(0x[0-9a-f]+)\s*$/;
/** Products: what a loop is known by. */
const PRODUCTS = ["FFMA", "FFMA2", "HMMA", "HGMMA", "IMMA", "IDP", "HFMA2", "DFMA"];

/** What ends a way where no predicate is before it. */
const ENDS = ["BRA", "EXIT", "RET", "BREAK"];

const productsOf = (mix: Mix) => PRODUCTS.reduce((sum, name) => sum + (mix[name] ?? 0), 0);

/** Counts by name, the most frequent first; what only fills space does not count. */
function mixOf(instructions: readonly Instruction[]): { instructions: number; mix: Mix } {
  const mix: Record<string, number> = {};
  let count = 0;
  for (const { name } of instructions) {
    if (name === "NOP") continue;
    count++;
    mix[name] = (mix[name] ?? 0) + 1;
  }
  return {
    instructions: count,
    mix: Object.fromEntries(Object.entries(mix).sort(([, one], [, other]) => other - one)),
  };
}

/** Loads that jumps within the loop skip, of jumps over neither products nor barriers. */
function branchedLoads(
  instructions: readonly Instruction[],
  end: (target: string) => number,
): number {
  const found = new Set<Instruction>();
  const last = instructions.at(-1)!.address;
  for (const { address, target } of instructions) {
    if (target === undefined || end(target) > last) continue;
    const skipped = instructions.filter((one) =>
      one.address > address && one.address < end(target)
    );
    if (skipped.some(({ name }) => name === "BAR" || PRODUCTS.includes(name))) continue;
    for (const one of skipped) if (one.name === "LDG") found.add(one);
  }
  return found.size;
}

/** The instructions of a shortest way from the first to the last; all where jumps by no address lie between. */
function shortestWay(
  instructions: readonly Instruction[],
  end: (target: string) => number,
): readonly Instruction[] {
  const places = new Map(instructions.map(({ address }, place) => [address, place]));
  const last = instructions.length - 1;
  const before = new Map<number, number>();
  let reached = [0];
  while (reached.length > 0 && !before.has(last)) {
    const next: number[] = [];
    for (const place of reached) {
      const { target, goesOn } = instructions[place]!;
      const jump = target === undefined ? undefined : places.get(end(target));
      for (const to of [...(goesOn ? [place + 1] : []), ...(jump === undefined ? [] : [jump])]) {
        if (to > last || to === 0 || before.has(to)) continue;
        before.set(to, place);
        next.push(to);
      }
    }
    reached = next;
  }
  if (last > 0 && !before.has(last)) return instructions;
  const way = [instructions[last]!];
  for (let place = last; place !== 0;) {
    place = before.get(place)!;
    way.push(instructions[place]!);
  }
  return way.reverse();
}

/** Products behind a load that hide something of it. */
const HIDING = 16;

/** Loads of a loop behind which something is stored to workgroup memory before so many products. */
function lateLoads(instructions: readonly Instruction[]): number {
  // What follows the loop's end is its beginning.
  const twice = [...instructions, ...instructions];
  return instructions.filter(({ name }, i) => {
    if (name !== "LDG") return false;
    const behind = twice.slice(i, i + instructions.length);
    const store = behind.findIndex((one) => one.name === "STS");
    const products = behind.slice(0, store).filter((one) => PRODUCTS.includes(one.name));
    return store >= 0 && products.length < HIDING;
  }).length;
}

/**
 * Reads a listing (`nvdisasm -c`, or of bare code). The loop is the smallest one with at least half of the products that any
 * loop has: an outer loop over tiles holds it and what stands around it.
 */
export function readListing(text: string): Listing {
  const labels = new Map<string, number>();
  const waiting: string[] = [];
  const instructions: Instruction[] = [];
  for (const line of text.split("\n")) {
    const label = LABEL.exec(line)?.[1];
    if (label !== undefined) waiting.push(label);
    const found = INSTRUCTION.exec(line);
    if (found === null) continue;
    const [, hex = "", predicate, name = "", rest = ""] = found;
    const address = parseInt(hex, 16);
    for (const one of waiting.splice(0)) labels.set(one, address);
    const jump = name === "BRA" ? TARGET.exec(rest.trim()) : null;
    const target = jump?.[1] ?? jump?.[2];
    // `BRA.U !UP0, 0x50` and `BRA.DIV UR4, 0x50` have conditions too.
    const goesOn = !ENDS.includes(name) || predicate !== undefined || rest.includes(",");
    instructions.push({ address, name, goesOn, ...(target === undefined ? {} : { target }) });
  }
  const addressOf = (target: string) => labels.get(target) ?? Number(target);
  const loops = instructions.flatMap(({ address, target }) => {
    if (target === undefined) return [];
    const start = addressOf(target);
    // The last instruction of a program jumps to itself.
    if (!(start < address)) return [];
    const own = instructions.filter((one) => one.address >= start && one.address <= address);
    return [{
      ...mixOf(own),
      branchedLoads: branchedLoads(own, addressOf),
      lateLoads: lateLoads(own),
      shortest: mixOf(shortestWay(own, addressOf)),
    }];
  });
  const most = Math.max(0, ...loops.map(({ mix }) => productsOf(mix)));
  const loop = loops
    .filter(({ mix }) => most > 0 && 2 * productsOf(mix) >= most)
    .sort((one, other) => one.instructions - other.instructions)[0];
  return { ...mixOf(instructions), ...(loop === undefined ? {} : { loop }) };
}
