import { DEFAULT_LIMITS, type DeviceLimits } from "../algorithms/plan.ts";
import { InputSyntaxError, InputTypeError } from "../errors.ts";
import { parseJson } from "../json.ts";
import { readText } from "../read_text.ts";
import { readPathOr } from "./values.ts";

/**
 * Reads device limits from the first line of a file, or from the whole of it; those it lacks are the defaults.
 *
 * @throws {SyntaxError} if it is no JSON object, {TypeError} if a limit is none of a device.
 */
export function readLimitsFile(path: string): DeviceLimits {
  if (path === "default") return DEFAULT_LIMITS;
  const json = limitsObject(readPathOr(["default"], path, readText), path);
  const limits: Record<string, number> = { ...DEFAULT_LIMITS };
  for (const name of Object.keys(DEFAULT_LIMITS)) {
    const value = json[name];
    if (value === undefined) continue;
    const least = leastOf(name);
    if (!(typeof value === "number" && Number.isSafeInteger(value) && value >= least)) {
      throw new InputTypeError(
        `Cannot read ${path}: ${name} is ${
          JSON.stringify(value)
        }, expected a whole number >= ${least}`,
      );
    }
    limits[name] = value;
  }
  return { ...DEFAULT_LIMITS, ...limits };
}

/** The least that a device may have of a limit: bindings begin at multiples of 256 bytes. */
function leastOf(name: string): number {
  return name.endsWith("Size") ? 256 : 1;
}

function limitsObject(text: string, path: string): Record<string, unknown> {
  for (const candidate of [text, text.slice(0, Math.max(0, text.indexOf("\n")))]) {
    const parsed = tryJson(candidate);
    if (typeof parsed !== "object" || parsed === null) continue;
    const { limits } = parsed as { limits?: unknown };
    const found = typeof limits === "object" && limits !== null ? limits : parsed;
    if (Object.keys(DEFAULT_LIMITS).some((name) => name in found)) {
      return found as Record<string, unknown>;
    }
    throw new InputTypeError(
      `Cannot read ${path}: it has no limit of a device, expected one such as ${
        Object.keys(DEFAULT_LIMITS)[0]
      }`,
    );
  }
  const expected = "expected a JSON object of device limits";
  parseJson(
    text,
    (what, line) => new InputSyntaxError(`Cannot read ${path}: line ${line} ${what}, ${expected}`),
  );
  throw new InputSyntaxError(`Cannot read ${path}: ${expected}`);
}

function tryJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
