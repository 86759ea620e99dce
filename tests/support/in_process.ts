import assert from "#assert";
import { main } from "../../src/cli/program.ts";
import { EXIT } from "../../src/errors.ts";

/** What a run of the program said. */
export interface Said {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `wgconv ...args` within this process: many command lines in the time that one process takes to start. */
export async function wgconvHere(args: readonly string[]): Promise<Said> {
  const said = { stdout: "", stderr: "" };
  const streams = ["stdout", "stderr"] as const;
  const own = streams.map((stream) => {
    const { writeSync, write } = Deno[stream];
    return { writeSync, write };
  });
  for (const stream of streams) {
    const writeSync = (bytes: Uint8Array) => {
      said[stream] += new TextDecoder().decode(bytes);
      return bytes.length;
    };
    Object.assign(Deno[stream], {
      writeSync,
      write: (bytes: Uint8Array) => Promise.resolve(writeSync(bytes)),
    });
  }
  try {
    return { code: await main(args), ...said };
  } finally {
    streams.forEach((stream, place) => Object.assign(Deno[stream], own[place]));
  }
}

/** {@linkcode wgconvHere} of what must end well. */
export async function succeeds(args: readonly string[]): Promise<Said> {
  const said = await wgconvHere(args);
  assert.equal(said.code, EXIT.ok, `${args.join(" ")}: ${said.stdout}${said.stderr}`);
  return said;
}

/** {@linkcode wgconvHere} of what must be refused with a message. */
export async function refuses(args: readonly string[], message: RegExp): Promise<void> {
  const { code, stderr } = await wgconvHere(args);
  assert.equal(code, EXIT.usage, `${args.join(" ")}: ${stderr}`);
  assert.match(stderr, message);
}
