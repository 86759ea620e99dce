/** What passes make of mainloops, for people: trees in outline, before and after each pass. */
import type { Statement } from "../ir/tree.ts";
import type { LoopTree, Pass } from "./loop_tree.ts";

/** A mainloop's tree as it is before its passes, or after one of them. */
export interface TracedTree {
  /** The pass; undefined of the first tree. */
  readonly pass: string | undefined;
  /** Lines of its parts. */
  readonly parts: { readonly [part in keyof LoopTree]: readonly string[] };
}

/** Trees by the WGSL of the kernel that they became. */
export type Trace = ReadonlyMap<string, readonly TracedTree[]>;

/** Who is told of mainloops. */
let listener: ((wgsl: string, trees: readonly TracedTree[]) => void) | undefined;

/** What `make` returns, with the trees of all mainloops that it writes. */
export function traceMainloops<T>(make: () => T): [T, Trace] {
  const trace = new Map<string, readonly TracedTree[]>();
  const outer = listener;
  listener = (wgsl, trees) => trace.set(wgsl, trees);
  try {
    return [make(), trace];
  } finally {
    listener = outer;
  }
}

/** The tree after all passes, of which the WGSL is then written. */
export function applyPasses(
  tree: LoopTree,
  passes: readonly (readonly [name: string, pass: Pass])[],
  write: (tree: LoopTree) => string,
): string {
  const trees = [{ pass: undefined as string | undefined, tree }];
  for (const [name, pass] of passes) trees.push({ pass: name, tree: pass(trees.at(-1)!.tree) });
  const wgsl = write(trees.at(-1)!.tree);
  listener?.(wgsl, trees.map(({ pass, tree }) => ({ pass, parts: outline(tree) })));
  return wgsl;
}

/** Lines of a text that an outline shows. */
const SHOWN = 2;

const PARTS = ["state", "sums", "main", "finish", "output"] as const;

function outline(tree: LoopTree): TracedTree["parts"] {
  const parts = PARTS.map((part) => [part, statementLines(tree[part], "  ")]);
  return Object.fromEntries(parts);
}

function statementLines(statements: readonly Statement[], indent: string): string[] {
  return merged(statements).flatMap((one): string[] => {
    if (one.kind === "barrier") return [`${indent}workgroupBarrier();`];
    if (one.kind === "text") return textLines(one.wgsl, one.role, indent);
    const head = one.kind === "block"
      ? one.head
      : `for ${one.index} in ${one.first}..${one.end}${one.by === 1 ? "" : ` by ${one.by}`}`;
    const role = one.kind === "block" && one.role !== undefined ? ` // ${one.role}` : "";
    return [
      `${indent}${head === "" ? "" : `${head} `}{${role}`,
      ...statementLines(one.body, `${indent}  `),
      `${indent}}`,
    ];
  });
}

/** Statements with texts of one role, which follow each other, as one. */
function merged(statements: readonly Statement[]): Statement[] {
  const all: Statement[] = [];
  for (const one of statements) {
    const last = all.at(-1);
    if (one.kind !== "text" || last?.kind !== "text" || one.role !== last.role) all.push(one);
    else all[all.length - 1] = { ...last, wgsl: `${last.wgsl}\n${one.wgsl}` };
  }
  return all;
}

/** The first lines of a text without comments, and how many follow. */
function textLines(wgsl: string, role: string | undefined, indent: string): string[] {
  const lines = wgsl.split("\n").map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("//"));
  const rest = lines.length - SHOWN;
  const note = role === undefined ? "" : ` // ${role}`;
  return [
    ...lines.slice(0, SHOWN).map((line, i) => `${indent}${line}${i === 0 ? note : ""}`),
    ...(rest > 0 ? [`${indent}… ${rest} more`] : []),
  ];
}

/** The trees of a kernel as text: the first, then what each pass changes: `-` before lines that it takes away, `+` before new ones. */
export function traceText(trees: readonly TracedTree[]): string {
  return trees.flatMap(({ pass, parts }, i) => {
    const before = trees[i - 1]?.parts;
    const lines = PARTS.flatMap((part) => {
      const changes = before === undefined
        ? parts[part].map((line) => `  ${line}`)
        : difference(before[part], parts[part]);
      const says = before === undefined
        ? changes.length > 0
        : changes.some((one) => one[0] !== " ");
      return says ? [`  ${part}:`, ...changes] : [];
    });
    return pass === undefined ? ["plain loop", ...lines] : ["", `after ${pass}`, ...lines];
  }).join("\n");
}

/** Lines of both, by their longest common subsequence. */
function difference(before: readonly string[], after: readonly string[]): string[] {
  const [n, m] = [before.length, after.length];
  const common = Array.from({ length: n + 1 }, () => new Uint32Array(m + 1));
  for (let i = n - 1; i >= 0; i--) {
    for (let j = m - 1; j >= 0; j--) {
      common[i]![j] = before[i] === after[j]
        ? common[i + 1]![j + 1]! + 1
        : Math.max(common[i + 1]![j]!, common[i]![j + 1]!);
    }
  }
  const lines: string[] = [];
  let i = 0, j = 0;
  while (i < n || j < m) {
    if (i < n && j < m && before[i] === after[j]) {
      lines.push(`  ${before[i++]}`);
      j++;
    } else if (i < n && (j === m || common[i + 1]![j]! >= common[i]![j + 1]!)) {
      lines.push(`- ${before[i++]}`);
    } else {
      lines.push(`+ ${after[j++]}`);
    }
  }
  return lines;
}
