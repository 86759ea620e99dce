/** `deno task docs`: writes the pages of docs/ that are made of definitions. */
import { commandsPage } from "./make_commands.ts";
import { recordsPage, recordsSchema } from "./make_records.ts";

/** Made files by their names in docs/. */
export async function madeDocs(): Promise<Readonly<Record<string, string>>> {
  return {
    "commands.md": await commandsPage(),
    "records.md": recordsPage(),
    "record.schema.json": recordsSchema(),
  };
}

if (import.meta.main) {
  for (const [name, text] of Object.entries(await madeDocs())) {
    await Deno.writeTextFile(new URL(`../docs/${name}`, import.meta.url), text);
  }
}
