/**
 * The tables of docs/performance.md, from the records in bench/results/, of docs/gpus_compiled.md and docs/guides/gpus.md:
 *   deno run -A bench/tables.ts NAME...
 *   deno run -A bench/tables.ts --update docs/performance.md
 * The first form prints tables, the second writes each anew where the file names it between
 * `<!-- bench/tables.ts NAME -->` and `<!-- end -->`. Without arguments: the names. Needs no GPU.
 */
import { CONVOLUTION_TABLES } from "./tables/convolutions.ts";
import { COMPILED_TABLES } from "./tables/gpus_compiled.ts";
import { GPU_TABLES } from "./tables/gpus.ts";
import { PEER_TABLES } from "./tables/peers.ts";
import { PRODUCT_TABLES } from "./tables/products.ts";

const TABLES: Readonly<Record<string, () => string>> = {
  ...CONVOLUTION_TABLES,
  ...PRODUCT_TABLES,
  ...PEER_TABLES,
  ...COMPILED_TABLES,
  ...GPU_TABLES,
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

/** A page with its tables made anew. */
export function withTables(page: string): string {
  return page.replaceAll(
    PLACE,
    (_, start: string, name: string, end: string) => `${start}\n${table(name)}\n\n${end}`,
  );
}

if (import.meta.main) {
  const [first, ...others] = Deno.args;
  if (first === undefined) {
    console.log(Object.keys(TABLES).join("\n"));
  } else if (first === "--update") {
    for (const path of others) {
      await Deno.writeTextFile(path, withTables(await Deno.readTextFile(path)));
    }
  } else {
    console.log([first, ...others].map(table).join("\n\n"));
  }
}
