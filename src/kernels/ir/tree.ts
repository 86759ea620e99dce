/**
 * Statements of WGSL as a tree, for passes that move, copy and wrap them. Expressions, and all that no pass looks into, are text.
 */

/** What a statement is for a pass: work of a step, or a part that a pass has made. */
export type Role = "fetch" | "store" | "advance" | "multiply" | "fold" | "prefetch" | "last";

/** Lines of WGSL. */
export interface Text {
  readonly kind: "text";
  readonly wgsl: string;
  readonly role?: Role | undefined;
}

/** All threads of a workgroup wait for each other, and see what each has stored. */
export interface Barrier {
  readonly kind: "barrier";
}

/** Statements in braces behind a head: `if (t == 0u)`, `loop`, or nothing. */
export interface Block {
  readonly kind: "block";
  readonly head: string;
  readonly body: readonly Statement[];
  readonly role?: Role | undefined;
}

/** A loop whose index goes from `first` up to, not including, `end`, in WGSL. */
export interface For {
  readonly kind: "for";
  readonly index: string;
  readonly first: string;
  readonly end: string;
  readonly by: number;
  readonly body: readonly Statement[];
}

export type Statement = Text | Barrier | Block | For;

export function text(wgsl: string, role?: Role): Text {
  return { kind: "text", wgsl, role };
}

export const BARRIER: Barrier = { kind: "barrier" };

export function block(body: readonly Statement[], head = "", role?: Role): Block {
  return { kind: "block", head, body, role };
}

export function forLoop(
  index: string,
  first: string,
  end: string,
  body: readonly Statement[],
  by = 1,
): For {
  return { kind: "for", index, first, end, by, body };
}

/** Whether a statement has a role. */
export function is(statement: Statement, role: Role): boolean {
  return "role" in statement && statement.role === role;
}

/** Statements with others in the place of each one that `change` does not return as it is; of a loop or block after its body. */
export function rewrite(
  statements: readonly Statement[],
  change: (statement: Statement) => readonly Statement[],
): Statement[] {
  return statements.flatMap((one) =>
    change("body" in one ? { ...one, body: rewrite(one.body, change) } : one)
  );
}

/** Statements without the barrier at their end, if there is one. */
export function withoutLastBarrier(statements: readonly Statement[]): readonly Statement[] {
  return statements.at(-1)?.kind === "barrier" ? statements.slice(0, -1) : statements;
}

/** The WGSL of statements, so many blocks deep; text stands as it is. */
export function printStatements(statements: readonly Statement[], depth = 1): string {
  const indent = "  ".repeat(depth);
  return statements.map((one) => {
    if (one.kind === "text") return one.wgsl;
    if (one.kind === "barrier") return `${indent}workgroupBarrier();`;
    return `${indent}${headOf(one)}{\n${printStatements(one.body, depth + 1)}\n${indent}}`;
  }).filter((lines) => lines !== "").join("\n");
}

function headOf(one: Block | For): string {
  if (one.kind === "block") return one.head === "" ? "" : `${one.head} `;
  const { index, first, end, by } = one;
  const step = by === 1 ? `${index}++` : `${index} += ${by}u`;
  return `for (var ${index} = ${first}; ${index} < ${end}; ${step}) `;
}
