/**
 * The first character of a text that moves the cursor, turns the direction of text or breaks lines: C0 but the line break
 * and the tab, DEL, C1, marks of direction and of lines. Told by numbers, apart from the pattern of `src/printable.ts`.
 */
export function harmful(text: string): string | undefined {
  return [...text].find((character) => {
    const code = character.codePointAt(0)!;
    const within = (first: number, last: number) => code >= first && code <= last;
    if (code === 0x09 || code === 0x0a) return false;
    return within(0, 0x1f) || within(0x7f, 0x9f) || within(0x2028, 0x202e) ||
      within(0x2066, 0x2069) || [0x061c, 0x200e, 0x200f, 0xfeff].includes(code);
  });
}
