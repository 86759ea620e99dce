import { denoDirectory } from "../../tasks/environment.ts";
import { attackedProgram } from "./folder.ts";
import { TextLineStream } from "./lines.ts";
import type { Attack } from "./attack.ts";

/** What of an attack is run. */
export interface RunOptions {
  readonly seed: number;
  /** Number of the first case. */
  readonly from: number;
  /** Most cases. */
  readonly count: number;
  /** When to stop, as `performance.now()` has it. */
  readonly deadline: number;
  /** Memory that ends a process, in bytes; 3 GiB where absent. */
  readonly mostMemory?: number;
  /** The program that runs cases, `worker.ts` where absent. */
  readonly worker?: URL;
}

/** A case that broke a promise. */
export interface Found {
  readonly kind: string;
  readonly number: number;
  readonly what: string;
  readonly input: string;
}

/** What became of an attack. */
export interface AttackResult {
  readonly kind: string;
  readonly cases: number;
  readonly outcomes: ReadonlyMap<string, number>;
  readonly found: number;
}

/** More memory than this ends a process, in bytes. */
const MOST_MEMORY = 3 * 2 ** 30;
/** Findings after which an attack ends. */
const ENOUGH = 1000;

/** Runs an attack in a process of its own, and in a new one after each case that ends or hangs it. */
export async function runAttack(
  attack: Attack,
  options: RunOptions,
  onFound: (found: Found) => void,
): Promise<AttackResult> {
  const outcomes = new Map<string, number>();
  let found = 0;
  const add = (one: Found) => {
    found++;
    onFound(one);
  };
  const { kind } = attack;
  const end = options.from + options.count;
  let next = options.from;
  while (next < end && performance.now() < options.deadline && found < ENOUGH) {
    const died = await runProcess(attack, { ...options, from: next, count: end - next }, (line) => {
      next = line.number + 1;
      if ("outcome" in line) {
        outcomes.set(line.outcome, (outcomes.get(line.outcome) ?? 0) + 1);
      } else {
        add({ kind, number: line.number, what: line.finding, input: line.input });
      }
    });
    if (died === undefined) break;
    await using runner = await attack.open(options.seed);
    add({ kind, number: next, what: died, input: runner.describe(next) });
    next++;
  }
  return { kind, cases: next - options.from, outcomes, found };
}

type Line =
  | { readonly number: number; readonly outcome: string }
  | { readonly number: number; readonly finding: string; readonly input: string };

/** One process; why it ended where that was a case's fault. */
async function runProcess(
  { kind, limit }: Attack,
  { seed, from, count, deadline, worker, mostMemory = MOST_MEMORY }: RunOptions,
  onLine: (line: Line) => void,
): Promise<string | undefined> {
  using folder = temporaryFolder();
  const child = new Deno.Command(Deno.execPath(), {
    args: attackedProgram(
      folder.path,
      worker ?? new URL("worker.ts", import.meta.url),
      [kind, seed, from, count, deadline - performance.now()].map(String),
    ),
    env: {
      NO_COLOR: "1",
      XDG_RUNTIME_DIR: folder.path,
      XDG_CACHE_HOME: `${folder.path}/cache`,
      HOME: folder.path,
      // Deno's own cache is not under the new HOME.
      DENO_DIR: denoDirectory(),
      TMPDIR: folder.path,
      WGCONV_ATTACK_FOLDER: folder.path,
    },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const stderr = new Response(child.stderr).text();
  let last = performance.now();
  let why: string | undefined;
  let done = false;
  const watch = setInterval(() => {
    const now = performance.now();
    const memory = residentBytes(child.pid);
    if (memory > mostMemory) {
      why = `the process took ${(memory / 2 ** 30).toFixed(1)} GiB of memory`;
    } else if (now - last > 1000 * limit) why = `the case took longer than ${limit} s`;
    if (why !== undefined) kill(child);
  }, 200);
  const lines = child.stdout.pipeThrough(new TextDecoderStream()).pipeThrough(new TextLineStream());
  for await (const text of lines) {
    const line = parsed(text);
    if (line === undefined) continue;
    last = performance.now();
    if ("done" in line) done = true;
    else onLine(line);
  }
  const { code, signal } = await child.status;
  clearInterval(watch);
  if (why !== undefined) return why;
  if (done) return undefined;
  const said = (await stderr).trim().slice(-600);
  return `the process ended with ${signal ?? code}: ${said}`;
}

function parsed(text: string): Line | { readonly done: true } | undefined {
  try {
    return JSON.parse(text);
  } catch {
    // The last line of a process that was ended.
    return undefined;
  }
}

function kill(child: Deno.ChildProcess): void {
  try {
    child.kill("SIGKILL");
  } catch {
    // It has ended meanwhile.
  }
}

/** Memory of a process, where the system tells. */
function residentBytes(pid: number): number {
  try {
    return 4096 * Number(Deno.readTextFileSync(`/proc/${pid}/statm`).split(" ")[1]);
  } catch {
    return 0;
  }
}

function temporaryFolder(): { path: string } & Disposable {
  const path = Deno.makeTempDirSync({ prefix: "wgconv-attack-" });
  return { path, [Symbol.dispose]: () => Deno.removeSync(path, { recursive: true }) };
}
