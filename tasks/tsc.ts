/** Deno's arguments that start TypeScript's compiler, which Deno has no command for: it writes the npm package's declarations. */
export const TSC = ["run", "-A", "--no-config", "--no-lock", "npm:typescript@5.9.3/tsc"];
