import assert from "#assert";
import { main } from "../../src/cli/program.ts";
import { EXIT } from "../../src/errors.ts";
import { type Line, wordsOf } from "../cli.ts";

/** What a run of the program said. */
export interface Said {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `wgconv` within this process: many command lines in the time that one process takes to start. */
export async function wgconvHere(line: Line): Promise<Said> {
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
    return { code: await main(wordsOf(line)), ...said };
  } finally {
    streams.forEach((stream, place) => Object.assign(Deno[stream], own[place]));
  }
}

/** {@linkcode wgconvHere} of what must end well. */
export async function succeeds(line: Line): Promise<Said> {
  const said = await wgconvHere(line);
  assert.equal(said.code, EXIT.ok, `${line}: ${said.stdout}${said.stderr}`);
  return said;
}

/** {@linkcode wgconvHere} of what must be refused with a message. */
export async function refuses(line: Line, message: RegExp): Promise<void> {
  const { code, stderr } = await wgconvHere(line);
  assert.equal(code, EXIT.usage, `${line}: ${stderr}`);
  assert.match(stderr, /^wgconv: /m);
  assert.match(stderr, message);
}
