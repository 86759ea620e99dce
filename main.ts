/** Starts the command line program. */
import { main } from "./src/cli/program.ts";

if (import.meta.main) Deno.exit(await main(Deno.args));
