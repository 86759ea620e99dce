/**
 * Gives every test a deadline: `deno test --preload tests/deadline.ts`, as `deno task test` does. It is there so that
 * no test waits for ever, and is many times what the slowest takes on a busy machine.
 */

const MINUTES = 10;

const { test } = Deno;

/** `Deno.test` with a `timeout` where none is asked for. */
function testWithDeadline(
  ...[what, fn]: [Deno.TestDefinition] | [name: string, fn: Deno.TestDefinition["fn"]]
): void {
  const definition = typeof what === "string" ? { name: what, fn: fn! } : what;
  test({ timeout: 60_000 * MINUTES, ...definition });
}

Object.assign(Deno, { test: Object.assign(testWithDeadline, test) });
