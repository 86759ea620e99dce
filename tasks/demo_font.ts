/** Letters of 5 x 7 dots, for captions of pictures. */

/** Rows from the top, a dot a `#`: the letters of the demo's captions, as capitals. */
const GLYPHS: Readonly<Record<string, string>> = {
  a: ".###. #...# #...# ##### #...# #...# #...#",
  b: "####. #...# #...# ####. #...# #...# ####.",
  c: ".###. #...# #.... #.... #.... #...# .###.",
  d: "####. #...# #...# #...# #...# #...# ####.",
  e: "##### #.... #.... ####. #.... #.... #####",
  g: ".###. #...# #.... #.### #...# #...# .###.",
  h: "#...# #...# #...# ##### #...# #...# #...#",
  l: "#.... #.... #.... #.... #.... #.... #####",
  m: "#...# ##.## #.#.# #.#.# #...# #...# #...#",
  n: "#...# ##..# #.#.# #..## #...# #...# #...#",
  o: ".###. #...# #...# #...# #...# #...# .###.",
  p: "####. #...# #...# ####. #.... #.... #....",
  r: "####. #...# #...# ####. #.#.. #..#. #...#",
  s: ".#### #.... #.... .###. ....# ....# ####.",
  t: "##### ..#.. ..#.. ..#.. ..#.. ..#.. ..#..",
  u: "#...# #...# #...# #...# #...# #...# .###.",
  x: "#...# #...# .#.#. ..#.. .#.#. #...# #...#",
  y: "#...# #...# .#.#. ..#.. ..#.. ..#.. ..#..",
  " ": "..... ..... ..... ..... ..... ..... .....",
};

/** Dots of a letter, and from one to the next. */
const [WIDTH, HEIGHT, ADVANCE] = [5, 7, 6];
/** Pixels of a dot, each way. */
const SCALE = 2;

/** Rows of pixels that a text takes. */
export const TEXT_HEIGHT = HEIGHT * SCALE;

/**
 * Pixels of a text, row by row: its width, and what is set.
 *
 * @throws {RangeError} for a letter that the font has not.
 */
export function textPixels(text: string): { readonly width: number; readonly set: Uint8Array } {
  const letters = [...text].map((letter) => {
    const glyph = GLYPHS[letter];
    if (glyph === undefined) throw new RangeError(`Cannot write "${text}": no letter "${letter}"`);
    return glyph.split(" ");
  });
  const width = (letters.length * ADVANCE - (ADVANCE - WIDTH)) * SCALE;
  const set = new Uint8Array(width * TEXT_HEIGHT);
  for (let y = 0; y < TEXT_HEIGHT; y++) {
    for (let x = 0; x < width; x++) {
      const column = Math.floor(x / SCALE);
      const dot = letters[Math.floor(column / ADVANCE)]![Math.floor(y / SCALE)]![column % ADVANCE];
      set[y * width + x] = dot === "#" ? 1 : 0;
    }
  }
  return { width, set };
}
