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
  };
}

interface Instruction {
  readonly address: number;
  readonly name: string;
  /** Where a jump goes: an address or a label. */
  readonly target?: string;
}

const INSTRUCTION =
  /\/\*([0-9a-f]{4,})\*\/\s+(?:\{\s*)?(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9]*)((?:\.[\w.]+)?[^;]*)/;
const LABEL = /^\s*\.?(L_\w+):/;
const TARGET = /`\(\.?(L_\w+)\)|(0x[0-9a-f]+)\s*$/;
/** Products: what a loop is known by. */
const PRODUCTS = ["FFMA", "FFMA2", "HMMA", "HGMMA", "IMMA", "IDP", "HFMA2", "DFMA"];

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
    const [, hex = "", name = "", rest = ""] = found;
    const address = parseInt(hex, 16);
    for (const one of waiting.splice(0)) labels.set(one, address);
    const jump = name === "BRA" ? TARGET.exec(rest.trim()) : null;
    const target = jump?.[1] ?? jump?.[2];
    instructions.push({ address, name, ...(target === undefined ? {} : { target }) });
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
    }];
  });
  const most = Math.max(0, ...loops.map(({ mix }) => productsOf(mix)));
  const loop = loops
    .filter(({ mix }) => most > 0 && 2 * productsOf(mix) >= most)
    .sort((one, other) => one.instructions - other.instructions)[0];
  return { ...mixOf(instructions), ...(loop === undefined ? {} : { loop }) };
}
