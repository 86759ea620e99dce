/**
 * The tables of docs/performance/, from the records in bench/results/:
 *   deno run -A bench/tables.ts NAME...
 *   deno run -A bench/tables.ts --update docs/performance/*.md
 * The first form prints tables, the second writes each anew where the file names it between
 * `<!-- bench/tables.ts NAME -->` and `<!-- end -->`. Without arguments: the names. Needs no GPU.
 */
import { GEMM_TABLES } from "./tables/gemm.ts";
import { GEMM_TRIAL_TABLES } from "./tables/gemm_trials.ts";
import { HALVES_TABLES } from "./tables/halves.ts";
import { IM2WIN_TABLES } from "./tables/im2win.ts";
import { LAYER_TABLES } from "./tables/layers.ts";
import { WINOGRAD_TABLES } from "./tables/winograd.ts";
import { WINRS_TABLES } from "./tables/winrs.ts";

const TABLES: Readonly<Record<string, () => string>> = {
  ...LAYER_TABLES,
  ...GEMM_TABLES,
  ...GEMM_TRIAL_TABLES,
  ...WINOGRAD_TABLES,
  ...IM2WIN_TABLES,
  ...WINRS_TABLES,
  ...HALVES_TABLES,
};
const PLACE = /(<!-- bench\/tables\.ts (\S+) -->\n)[\s\S]*?(<!-- end -->)/g;

function table(name: string): string {
  const make = TABLES[name];
  if (make === undefined) {
    throw new RangeError(
      `Cannot print table ${name}: there are ${Object.keys(TABLES).join(", ")}`,
    );
  }
  return make();
}

const [first, ...others] = Deno.args;
if (first === undefined) {
  console.log(Object.keys(TABLES).join("\n"));
} else if (first === "--update") {
  for (const path of others) {
    const text = await Deno.readTextFile(path);
    const fresh = text.replaceAll(
      PLACE,
      (_, start: string, name: string, end: string) => `${start}\n${table(name)}\n\n${end}`,
    );
    await Deno.writeTextFile(path, fresh);
  }
} else {
  console.log([first, ...others].map(table).join("\n\n"));
}
