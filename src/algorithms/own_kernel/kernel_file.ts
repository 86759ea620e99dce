/** Kernels of users: WGSL with a JSON file that says how it is run. */
import * as v from "valibot";
import { InputSyntaxError, InputTypeError } from "../../errors.ts";
import { parseJson, schemaFault } from "../../json.ts";
import type { BindingKind } from "../../kernels/kernel.ts";
import { OPERATIONS } from "../../problem/conv_problem.ts";
import { ACTIVATIONS } from "../../problem/activations.ts";
import { FILTER_LAYOUTS, LAYOUTS } from "../../tensor/layout.ts";
import type { BufferRole } from "../plan.ts";
import { type Expression, parseExpression } from "./expression.ts";
import { CHANNEL_OPERANDS } from "../../problem/epilogue.ts";

/** Names of a convolution's sizes in expressions, as descriptors have them; axes that a problem lacks count 1. */
export const CONV_NAMES = [
  ...["mb", "g", "ic", "oc", "id", "ih", "iw", "od", "oh", "ow", "kd", "kh", "kw"],
  ...["sd", "sh", "sw", "pd", "ph", "pw", "dd", "dh", "dw"],
];
/** The same of a product. */
const GEMM_NAMES = ["m", "n", "k", "batch"];

const DTYPES = ["f32", "f16", "bf16"] as const;
const ROLES = ["input", "filter", "output", ...CHANNEL_OPERANDS, "a", "b", "c", "residual"];

const EXPRESSION = v.union([v.string(), v.number()]);
const NAME = v.pipe(v.string(), v.regex(/^[A-Za-z_]\w*$/, "a name"));

/** What the JSON file holds. */
const FileSchema = v.strictObject({
  name: v.pipe(
    v.string(),
    v.regex(/^[a-z0-9][\w.-]{0,63}$/i, "a name of letters, digits, . and -"),
  ),
  op: v.picklist([...OPERATIONS, "gemm"]),
  dtype: v.optional(v.picklist(DTYPES), "f32"),
  outDtype: v.optional(v.picklist(DTYPES)),
  layout: v.optional(v.picklist(LAYOUTS)),
  filterLayout: v.optional(v.picklist(FILTER_LAYOUTS)),
  transpose: v.optional(v.picklist(["nn", "nt", "tn", "tt"])),
  activation: v.optional(v.picklist(ACTIVATIONS), "none"),
  when: v.optional(EXPRESSION),
  let: v.optional(v.record(NAME, EXPRESSION), {}),
  buffers: v.optional(v.record(NAME, EXPRESSION), {}),
  arithmetic: v.optional(
    v.strictObject({
      chain: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1))),
      segment: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1))),
      sums: v.optional(v.picklist(["f32", "f16"])),
    }),
    {},
  ),
  passes: v.pipe(
    v.array(v.strictObject({
      wgsl: v.string(),
      entry: v.optional(NAME, "main"),
      workgroups: v.pipe(v.array(EXPRESSION), v.minLength(1), v.maxLength(3)),
      bindings: v.pipe(v.array(NAME), v.minLength(1)),
      overrides: v.optional(v.record(NAME, EXPRESSION), {}),
    })),
    v.minLength(1),
    v.maxLength(64),
  ),
});

/** A dispatch, whose counts follow from a problem's sizes. */
export interface OwnPass {
  /** Without `enable` lines. */
  readonly wgsl: string;
  /** Where it is from. */
  readonly file: string;
  readonly entry: string;
  readonly features: readonly string[];
  readonly workgroups: readonly Expression[];
  /** The buffer of each binding of group 0: a tensor's role, or one of {@linkcode OwnKernel.buffers}. */
  readonly bindings: readonly string[];
  readonly kinds: readonly BindingKind[];
  readonly overrides: readonly Named[];
}

interface Named {
  readonly name: string;
  readonly value: Expression;
}

/** A kernel of a user's. */
export interface OwnKernel extends Omit<v.InferOutput<typeof FileSchema>, Replaced> {
  readonly when?: { readonly text: string; readonly value: Expression };
  /** Values that later expressions name, in order. */
  readonly values: readonly Named[];
  /** Workspace, in bytes. */
  readonly buffers: readonly Named[];
  readonly passes: readonly OwnPass[];
}

type Replaced = "when" | "let" | "buffers" | "passes";

/** Features that WGSL enables, by WebGPU's names. */
const FEATURES: Readonly<Record<string, string>> = { f16: "shader-f16", subgroups: "subgroups" };

/**
 * Reads what a JSON file says of a user's kernel.
 *
 * @param readWgsl Gives the text of a WGSL file that it names.
 * @throws {SyntaxError} for text that is no JSON or expression, {TypeError} for fields that are none, or do not go with the WGSL.
 */
export function parseOwnKernel(
  text: string,
  path: string,
  readWgsl: (name: string) => string,
): OwnKernel {
  const doing = `Cannot read ${path}`;
  const { when, let: values, buffers, passes, ...file } = fieldsOf(text, doing);
  const names = file.op === "gemm" ? [...GEMM_NAMES] : [...CONV_NAMES];
  const expression = (field: string, given: string | number) => {
    try {
      return parseExpression(given, names);
    } catch (error) {
      throw new InputSyntaxError(`${doing}: ${field} ${(error as Error).message}`);
    }
  };
  const named = (field: string, fields: Readonly<Record<string, string | number>>): Named[] =>
    Object.entries(fields).map(([name, value]) => ({
      name,
      value: expression(`${field}.${name}`, value),
    }));
  const own = Object.entries(values).map(([name, given]) => {
    if (names.includes(name)) throw new InputTypeError(`${doing}: let.${name} is a size's name`);
    const value = expression(`let.${name}`, given);
    names.push(name);
    return { name, value };
  });
  const taken = Object.keys(buffers).find((name) => ROLES.includes(name));
  if (taken !== undefined) {
    throw new InputTypeError(`${doing}: buffers.${taken} is a tensor's name`);
  }
  return {
    ...file,
    ...(when === undefined ? {} : { when: { text: `${when}`, value: expression("when", when) } }),
    values: own,
    buffers: named("buffers", buffers),
    passes: passes.map((pass, i) => {
      const field = `passes.${i}`;
      const unknown = pass.bindings.find((name) =>
        !Object.hasOwn(buffers, name) && !rolesOf(file.op).includes(name)
      );
      if (unknown !== undefined) {
        const known = [...rolesOf(file.op), ...Object.keys(buffers)].join(", ");
        throw new InputTypeError(`${doing}: ${field}.bindings has ${unknown}, expected ${known}`);
      }
      const { wgsl, ...module } = moduleOf(
        readWgsl(pass.wgsl),
        pass.entry,
        (what) => new InputTypeError(`${doing}: ${field}: ${pass.wgsl} ${what}`),
      );
      if (module.kinds.length !== pass.bindings.length) {
        throw new InputTypeError(
          `${doing}: ${field}.bindings has ${pass.bindings.length}, ${pass.wgsl} declares ` +
            `${module.kinds.length} of group 0`,
        );
      }
      return {
        ...module,
        wgsl,
        file: pass.wgsl,
        entry: pass.entry,
        bindings: pass.bindings,
        workgroups: pass.workgroups.map((each, axis) =>
          expression(`${field}.workgroups.${axis}`, each)
        ),
        overrides: named(`${field}.overrides`, pass.overrides),
      };
    }),
  };
}

/** Tensors that a kernel of an operation may bind; a gradient is at the place of its tensor. */
function rolesOf(op: OwnKernel["op"]): string[] {
  const roles: readonly BufferRole[] = op === "gemm"
    ? ["a", "b", "c", "bias", "residual", "output"]
    : ["input", "filter", "output", ...(op === "fwd" ? CHANNEL_OPERANDS : [])];
  return [...roles];
}

function fieldsOf(text: string, doing: string): v.InferOutput<typeof FileSchema> {
  const json = parseJson(
    text,
    (what, line) => new InputSyntaxError(`${doing}: line ${line} ${what}`),
  );
  const result = v.safeParse(FileSchema, json);
  if (result.success) return result.output;
  const { unknown, field, what } = schemaFault(result.issues[0], "the text");
  throw new InputTypeError(`${doing}: ${unknown ? `a kernel has no ${field}` : what}`);
}

const DECLARATION = /\bvar\s*<\s*(storage|uniform)\s*(?:,\s*(\w+)\s*)?,?\s*>/;

/** What WGSL says of its bindings and features. */
function moduleOf(
  text: string,
  entry: string,
  wrong: (what: string) => Error,
): Pick<OwnPass, "wgsl" | "kinds" | "features"> {
  const code = text.replace(/\/\*[\s\S]*?\*\/|\/\/[^\n]*/g, "");
  if (!new RegExp(`\\bfn\\s+${entry}\\s*\\(`).test(code)) throw wrong(`has no fn ${entry}`);
  const features: string[] = [];
  const wgsl = text.replace(/^[ \t]*enable\s+(\w+)\s*;[ \t]*\n?/gm, (line, name: string) => {
    if (!Object.hasOwn(FEATURES, name)) return line;
    features.push(FEATURES[name]!);
    return "";
  });
  const kinds: BindingKind[] = [];
  for (const statement of code.split(/[;{}]/)) {
    const found = DECLARATION.exec(statement);
    if (found === null) continue;
    const [, space, access = "read"] = found;
    const attributes = statement.slice(0, found.index);
    const number = (name: string) =>
      Number(new RegExp(`@${name}\\s*\\(\\s*(\\d+)`).exec(attributes)?.[1] ?? NaN);
    const at = number("binding");
    if (number("group") !== 0 || !(at < 64)) {
      throw wrong("declares a buffer without @group(0) and a @binding of a number");
    }
    if (space === "uniform") {
      throw wrong(`declares binding ${at} a uniform: sizes are overrides`);
    }
    if (kinds[at] !== undefined) throw wrong(`declares binding ${at} twice`);
    kinds[at] = access === "read" ? "read" : "write";
  }
  const missing = Array.from(kinds).indexOf(undefined as unknown as BindingKind);
  if (missing >= 0) throw wrong(`declares no binding ${missing}`);
  return { wgsl, kinds, features };
}
