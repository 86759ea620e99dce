const USUAL = 80;

/** Columns of the terminal that a stream writes to; undefined where it is none. */
export function terminalColumns(stream: "stdout" | "stderr"): number | undefined {
  if (!Deno[stream].isTerminal()) return undefined;
  try {
    return Deno.consoleSize().columns || USUAL;
  } catch {
    return USUAL;
  }
}
