import { dirname } from "node:path";

/**
 * Waits until no other program of ours holds the folder of a file, and holds it until what is given back is disposed of,
 * or the program ends in whatever way. Where folders cannot be locked (Windows, some network drives) nothing is held.
 */
export async function lockFolder(path: string): Promise<Disposable> {
  let folder: Deno.FsFile | undefined;
  try {
    folder = await Deno.open(dirname(path));
    await folder.lock(true);
  } catch {
    // Writes stay whole without it; of two at the same time the later one counts.
  }
  return { [Symbol.dispose]: () => folder?.close() };
}
