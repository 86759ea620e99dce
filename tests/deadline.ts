/**
 * Gives every test a deadline: `deno test --preload tests/deadline.ts`, as `deno task test` does. It is there so that
 * no test waits for ever, and is many times what the slowest takes on a busy machine.
 */

const MINUTES = 10;

const { test } = Deno;

type TestFunction = Deno.TestDefinition["fn"];

/** `Deno.test` with a `timeout` where none is asked for. */
function testWithDeadline(
  ...args:
    | [Deno.TestDefinition]
    | [name: string, fn: TestFunction]
    | [name: string, options: Partial<Deno.TestDefinition>, fn: TestFunction]
): void {
  const [what, options] = args;
  const definition = typeof what !== "string" ? what : {
    name: what,
    ...(typeof options === "function" ? {} : options),
    fn: args.at(-1) as TestFunction,
  };
  test({ timeout: 60_000 * MINUTES, ...definition });
}

Object.assign(Deno, { test: Object.assign(testWithDeadline, test) });
