/** A test as CI systems show it. */
export interface JUnitCase {
  /** Dotted, as of a class. */
  readonly group: string;
  readonly name: string;
  readonly seconds: number;
  readonly problem?: {
    readonly kind: "failure" | "error" | "skipped";
    readonly message: string;
    readonly text?: string;
  };
}

/** JUnit's XML of one suite of tests, which GitHub, GitLab and Jenkins read. */
export function junitXml(name: string, cases: readonly JUnitCase[]): string {
  const count = (kind: string) => cases.filter(({ problem }) => problem?.kind === kind).length;
  const total = cases.reduce((sum, { seconds }) => sum + seconds, 0).toFixed(3);
  const counts = `tests="${cases.length}" failures="${count("failure")}" errors="${
    count("error")
  }"`;
  return [
    `<?xml version="1.0" encoding="UTF-8"?>`,
    `<testsuites ${counts} time="${total}">`,
    `  <testsuite name="${escapeXml(name)}" ${counts} skipped="${
      count("skipped")
    }" time="${total}">`,
    ...cases.map(caseXml),
    `  </testsuite>`,
    `</testsuites>`,
    "",
  ].join("\n");
}

function caseXml({ group, name, seconds, problem }: JUnitCase): string {
  const open = `    <testcase classname="${escapeXml(group)}" name="${escapeXml(name)}" ` +
    `time="${seconds.toFixed(3)}"`;
  if (problem === undefined) return `${open}/>`;
  const { kind, message, text } = problem;
  const inner = text === undefined ? "/>" : `>${escapeXml(text)}</${kind}>`;
  return `${open}>\n      <${kind} message="${escapeXml(message)}"${inner}\n    </testcase>`;
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&apos;",
  "\n": "&#10;",
  "\r": "&#13;",
  "\t": "&#9;",
};

/** Text as it may stand in XML 1.0; characters that it cannot have become `?`. */
export function escapeXml(text: string): string {
  return text.toWellFormed()
    .replace(/[^\P{Cc}\t\n\r]|[\ufffe\uffff]/gu, "?")
    .replace(/[&<>"'\n\r\t]/g, (character) => ENTITIES[character]!);
}
