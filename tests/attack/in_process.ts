import process from "node:process";
import { main } from "../../src/cli/program.ts";
import { type Attack, Finding, messageFault, type Outcome, textFault } from "./attack.ts";
import { attackFolder } from "./folder.ts";

/** A command line and the files of the folder that it runs in. */
export interface Command {
  readonly args: readonly string[];
  readonly files: Readonly<Record<string, string | Uint8Array>>;
  /** The user's tuning cache, which is none where absent. */
  readonly cache?: string | Uint8Array;
}

/** What a command printed and how it ended. */
export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A command as one can do it by hand. */
export function describeCommand(
  { args, files, cache }: Command,
  names: readonly string[] = [],
): string {
  const text = (data: string | Uint8Array) => typeof data === "string" ? data : data.toBase64();
  const shown = Object.entries(files).filter(([name]) => names.includes(name))
    .map(([name, data]) => [name, text(data)]);
  return JSON.stringify({
    ...(cache === undefined ? {} : { cache: text(cache) }),
    args,
    ...(shown.length > 0 ? { files: Object.fromEntries(shown) } : {}),
  });
}

/** Makes the folder a command runs in anew, and goes there. */
export function enterFolder(
  root: string,
  { files, cache }: Pick<Command, "files" | "cache">,
): string {
  const folder = `${root}/work`;
  Deno.chdir(root);
  for (const stale of [folder, `${root}/cache`]) removeAll(stale);
  Deno.mkdirSync(`${folder}/folder`, { recursive: true });
  for (const [name, data] of Object.entries(files)) writeFile(`${folder}/${name}`, data);
  if (cache !== undefined) {
    Deno.mkdirSync(`${root}/cache/wgconv`, { recursive: true });
    writeFile(`${root}/cache/wgconv/tuning.jsonl`, cache);
  }
  Deno.chdir(folder);
  return folder;
}

function writeFile(path: string, data: string | Uint8Array): void {
  Deno.writeFileSync(path, typeof data === "string" ? new TextEncoder().encode(data) : data);
}

function removeAll(path: string): void {
  try {
    Deno.removeSync(path, { recursive: true });
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

class Exit extends Error {
  constructor(readonly code: number) {
    super(`exit ${code}`);
  }
}

/** Runs `main()` with what it prints gathered, and `Deno.exit()` taken for its end. */
export async function runInProcess(args: readonly string[]): Promise<Ended> {
  const text = { stdout: "", stderr: "" };
  using restore = new DisposableStack();
  let leave: (code: number) => void = () => {};
  const left = new Promise<number>((resolve) => leave = resolve);
  for (const which of ["stdout", "stderr"] as const) {
    const decoder = new TextDecoder();
    const add = (bytes: Uint8Array) => {
      text[which] += decoder.decode(bytes, { stream: true });
      return bytes.length;
    };
    replace(restore, Deno[which], "writeSync", add);
    replace(restore, Deno[which], "write", (bytes: Uint8Array) => Promise.resolve(add(bytes)));
    const write = (data: string | Uint8Array) => {
      text[which] += typeof data === "string" ? data : decoder.decode(data, { stream: true });
      return true;
    };
    replace(restore, process[which], "write", write as typeof process.stdout.write);
  }
  const line = (which: "stdout" | "stderr") => (...words: unknown[]) => {
    text[which] += `${words.join(" ")}\n`;
  };
  for (const name of ["log", "info", "debug"] as const) {
    replace(restore, console, name, line("stdout"));
  }
  for (const name of ["warn", "error"] as const) replace(restore, console, name, line("stderr"));
  replace(
    restore,
    Deno,
    "exit",
    ((code = 0) => {
      leave(code);
      throw new Exit(code);
    }) as typeof Deno.exit,
  );
  const code = await Promise.race([main(args), left]);
  return { code, ...text };
}

function replace<T extends object, K extends keyof T>(
  restore: DisposableStack,
  object: T,
  key: K,
  value: T[K],
): void {
  const own = Object.getOwnPropertyDescriptor(object, key);
  Object.defineProperty(object, key, { value, configurable: true, writable: true });
  restore.defer(() => {
    if (own) Object.defineProperty(object, key, own);
    else delete object[key];
  });
}

/** Exit codes that the program has (README.md), and SIGINT's. */
const CODES = [0, 1, 2, 3, 4, 5, 130];

/** What a command that may fail only by what it was given is held to. */
export function holdEnded(
  { code, stdout, stderr }: Ended,
  { args, internal = false }: { readonly args: readonly string[]; readonly internal?: boolean },
): Outcome {
  const shown = JSON.stringify(stderr.slice(-400));
  if (!CODES.includes(code)) throw new Finding(`exit code ${code}: ${shown}`);
  if (code === 5 && !internal) throw new Finding(`exit code 5: ${shown}`);
  // Kernels are right: only what its data's norm or a baseline refuses may fail, and NaN alone is not checked.
  const allowed = /over the data's norm|every output is NaN/;
  if (
    code === 1 && ["conv", "gemm", "bench", "tune"].includes(args[0]!) &&
    !allowed.test(stdout) && !allowed.test(stderr)
  ) throw new Finding(`a right result is refused: ${JSON.stringify(stdout.slice(-400))}`);
  if (code > 1 && code !== 4 && code !== 130 && stderr.trim() === "" && stdout.trim() === "") {
    throw new Finding(`exit code ${code} without a word`);
  }
  if (/Requires (write|net|import) access/.test(stderr)) {
    throw new Finding(`it writes where it was not asked to: ${shown}`);
  }
  // A tensor may go to stdout.
  const texts = args.includes("-") ? [stderr] : [stderr, stdout];
  for (const text of texts) {
    const fault = textFault(asRead(text, args));
    if (fault !== undefined) throw new Finding(fault);
  }
  for (
    const message of asRead(stderr, args).split("\n").filter((line) => line.startsWith("wgconv: "))
  ) {
    const fault = messageFault(message.slice("wgconv: ".length));
    if (fault !== undefined) throw new Finding(fault);
  }
  return `exit ${code}`;
}

/** The program's own colours, and nothing else that begins with an escape. */
const COLORS = new RegExp(`${String.fromCharCode(27)}\\[(?:1|22|3[123]|39)m`, "g");

/** A text without the colours and the stacks that a command line asks for. */
function asRead(text: string, args: readonly string[]): string {
  const colored = args.some((arg) => arg.startsWith("--color"));
  const plain = colored ? text.replaceAll(COLORS, "") : text;
  return args.includes("--debug") ? plain.replaceAll(/^\s+at \S.*$/gm, "") : plain;
}

/** Temporary files that a command left in a folder. */
export function holdNoTemporaries(folder: string): void {
  for (const { name } of Deno.readDirSync(folder)) {
    if (/\.tmp-\d+-/.test(name)) throw new Finding(`it left ${name}`);
  }
}

/** Cases that are command lines. */
interface CommandCases {
  readonly commandOf: (number: number) => Command;
  /** Files that tell a case from others, beside its words. */
  readonly shown?: (command: Command) => readonly string[];
  /** Runs a case's command, in the folder of its files. */
  readonly run: (command: Command, number: number) => Promise<Outcome>;
}

/** An attack by command lines, of which none leaves temporary files. */
export function commandAttack(
  kind: string,
  limit: number,
  open: (seed: number) => CommandCases | Promise<CommandCases>,
): Attack {
  return {
    kind,
    limit,
    weight: 1,
    async open(seed) {
      const root = attackFolder();
      const { commandOf, shown, run } = await open(seed);
      return {
        describe(number) {
          const command = commandOf(number);
          return describeCommand(command, shown?.(command));
        },
        async run(number) {
          const command = commandOf(number);
          const folder = enterFolder(root, command);
          const outcome = await run(command, number);
          holdNoTemporaries(folder);
          return outcome;
        },
        [Symbol.asyncDispose]: () => Promise.resolve(Deno.chdir(root)),
      };
    },
  };
}
