/** Names beside their marks, where they meet neither each other nor a mark, and hide few dots. */

/** Where something lies, in pixels from the left and the top of the plot. */
export interface Place {
  readonly x: number;
  readonly y: number;
}

/** Sides of names that their places are of. */
export const ALIGNS = ["left", "right", "center"] as const;

/** Where a name begins, ends or has its middle, from its mark. */
export interface LabelPlace {
  readonly align: typeof ALIGNS[number];
  readonly dx: number;
  readonly dy: number;
}

/** Share of a name that lies left of its place. */
const SHARES = { left: 0, center: 0.5, right: 1 };

interface Box {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

/** Pixels of a character, at most in the mean; of a line; of half a mark; between a mark and its name. */
const CHARACTER = 6.7;
const LINE = 14;
const HALF_MARK = 8;
const AIR = 10;
/** How far a name may be moved up or down, in lines: near first. */
const SHIFTS = [0, -1, 1, -1.5, 1.5, -2, 2, -3, 3, -4, 4, -5, 5, -6, 6];

/** Prices: of what must not be met, of a hidden dot, and of a line between a mark and its name. */
const MET = 1000;
const HIDDEN = 1;
const SHIFTED = 1.5;

/** Places the names of marks one after the other, each where it costs least. */
export function placeLabels(
  marks: readonly (Place & { readonly text: string })[],
  dots: readonly Place[],
  plot: { readonly width: number; readonly height: number },
): LabelPlace[] {
  const taken: Box[] = marks.map(({ x, y }) => around(x, y, HALF_MARK));
  return marks.map((mark) => {
    const width = mark.text.length * CHARACTER;
    const tried = SHIFTS.flatMap((lines) =>
      ALIGNS.map((align) => {
        const dx = align === "center"
          ? Math.min(Math.max(0, width / 2 - mark.x), plot.width - width / 2 - mark.x)
          : align === "left"
          ? AIR
          : -AIR;
        const place = { align, dx, dy: lines * LINE };
        const box = labelBox(mark, place, width);
        const beyond = Math.max(0, -box.left, box.right - plot.width, -box.top) +
          Math.max(0, box.bottom - plot.height);
        const met = taken.filter((other) => meet(box, other)).length;
        const hidden = dots.filter((dot) => meet(box, around(dot.x, dot.y, 2))).length;
        const cost = MET * (met + beyond) + HIDDEN * hidden + SHIFTED * Math.abs(lines);
        return { place, box, cost };
      })
    );
    const best = tried.reduce((least, one) => one.cost < least.cost ? one : least);
    taken.push(best.box);
    return best.place;
  });
}

/** What a name covers. */
function labelBox({ x, y }: Place, { align, dx, dy }: LabelPlace, width: number): Box {
  const left = x + dx - width * SHARES[align];
  return { left, right: left + width, top: y + dy - LINE / 2, bottom: y + dy + LINE / 2 };
}

function around(x: number, y: number, half: number): Box {
  return { left: x - half, right: x + half, top: y - half, bottom: y + half };
}

function meet(a: Box, b: Box): boolean {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}
