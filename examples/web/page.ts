/// <reference lib="dom" />
/** What the parts of the page share: its elements, the GPU, and whose turn it is. */
import { type GpuDevice, openBrowserDevice } from "../../web.ts";

/** An element of the page by its id. */
export const element = <E extends HTMLElement>(id: string) => document.getElementById(id) as E;

let gpu: GpuDevice | undefined;

/**
 * The browser's GPU, opened once.
 *
 * @param before Called where it is yet to be opened.
 */
export async function openGpu(before: () => Promise<void>): Promise<GpuDevice> {
  if (gpu === undefined) {
    await before();
    gpu = await openBrowserDevice({ optionalFeatures: ["shader-f16"] });
  }
  return gpu;
}

let last = Promise.resolve();

/** Does work after what was asked for before: the device is one. */
export function inTurn(work: () => Promise<void>): void {
  last = last.then(work);
}

/** Sets an element's text, and lets the browser show it: what follows may keep the page's thread. */
export async function shown(where: HTMLElement, text: string): Promise<void> {
  where.textContent = text;
  await new Promise<void>((done) => {
    requestAnimationFrame(() => setTimeout(done));
    // A page that is not in sight has no frames.
    setTimeout(done, 200);
  });
}

/** Names and what is said of each, for a `dl`. */
export function linesOf(lines: Readonly<Record<string, string>>): HTMLElement[] {
  return Object.entries(lines).flatMap(([name, text]) => {
    const [term, value] = [document.createElement("dt"), document.createElement("dd")];
    [term.textContent, value.textContent] = [name, text];
    value.dataset.name = name;
    return [term, value];
  });
}
