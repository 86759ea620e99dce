import type { MathChoice } from "../math.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import { cutGemm } from "./cut.ts";
import { chooseGemv, type Gemv } from "./gemv.ts";
import { chooseMath } from "./math.ts";
import { mainLoopTime } from "./price.ts";
import type { GemmRequest } from "./request.ts";

/** What multiplies a product. */
export interface GemmChoice {
  /** How the main loop does. */
  readonly math: Exclude<MathChoice, "auto">;
  /** A matrix times vectors in its place. */
  readonly gemv?: Gemv;
}

/** What multiplies a product: what was asked for, else what should take less. */
export function chooseGemm(request: GemmRequest): Planned<GemmChoice> {
  const math = chooseMath(request);
  if (isRefusal(math)) return math;
  const gemv = chooseGemv(request, () => {
    const asked = { ...request, math };
    const cut = cutGemm(asked);
    return isRefusal(cut) ? Infinity : mainLoopTime(asked, cut);
  });
  if (isRefusal(gemv)) return gemv;
  return { math, ...(gemv && { gemv }) };
}
