import { printer } from "./output.ts";

/**
 * Says how to go on when the user ends a command (Ctrl-C), which then exits with 130. Other listeners, which remove unfinished
 * files, have their turn before that.
 */
export function onInterrupt(say: () => string): Disposable {
  const listener = () => {
    // The terminal's line has ^C on it.
    printer("stderr").line();
    printer("stderr").message(`wgconv: ${say()}`);
    setTimeout(() => Deno.exit(130));
  };
  Deno.addSignalListener("SIGINT", listener);
  return { [Symbol.dispose]: () => Deno.removeSignalListener("SIGINT", listener) };
}
