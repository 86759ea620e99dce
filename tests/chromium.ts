/** Opens web pages in a headless Chromium, for tests: a small client of its debugging protocol. */
import { temporaryDirectory } from "./cli.ts";

/** WebGPU on Chromium's own Vulkan driver for the CPU. */
const FLAGS = [
  "--headless=new",
  "--no-sandbox",
  "--disable-gpu-sandbox",
  "--no-first-run",
  "--disable-dev-shm-usage",
  "--enable-unsafe-webgpu",
  "--enable-features=Vulkan",
  "--use-vulkan=swiftshader",
  "--use-webgpu-adapter=swiftshader",
  "--window-size=1000,1000",
  "--remote-debugging-port=0",
];

/** Is settled when all of the page is there. */
const LOADED = `new Promise((loaded) => {
  if (document.readyState === "complete") loaded();
  else addEventListener("load", () => loaded());
})`;

/** Windows' codes of keys without a character. */
const KEY_CODES: Readonly<Record<string, number>> = {
  Tab: 9,
  Enter: 13,
  ArrowDown: 40,
  ArrowUp: 38,
};

/** A page that is open. */
export interface Page extends AsyncDisposable {
  /** The value of an expression, once it is settled. */
  evaluate(expression: string): Promise<unknown>;
  /** Shows the page as wide as told, to those who prefer light or dark. */
  look(width: number, scheme: "light" | "dark"): Promise<void>;
  /** Presses a key, by its name: `Tab`, `Enter`, `a`. */
  press(key: string): Promise<void>;
  /** A PNG of the whole page. */
  screenshot(): Promise<Uint8Array<ArrayBuffer>>;
}

/** Where Debian puts Chromium; nothing where there is none. */
export function findChromium(): string | undefined {
  return ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(
    (path) => {
      try {
        return Deno.statSync(path).isFile;
      } catch {
        return false;
      }
    },
  );
}

/** Starts Chromium on a page. */
export async function openPage(chromium: string, url: string): Promise<Page> {
  const profile = temporaryDirectory();
  const browser = new Deno.Command(chromium, {
    args: [...FLAGS, `--user-data-dir=${profile.path}`, "about:blank"],
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();
  let drained: Promise<void> | undefined;
  // Its child processes write into the profile until they are gone, and with them their ends of the pipe.
  const end = async () => {
    try {
      browser.kill();
    } catch {
      // It has ended by itself.
    }
    await browser.status;
    await drained;
    profile[Symbol.dispose]();
  };
  try {
    const debugging = await debuggingOrigin(browser.stderr);
    drained = debugging.drained;
    const protocol = await connect(await pageSocket(debugging.origin));
    // Ends when the new page has taken the blank one's place.
    await protocol.send("Page.navigate", { url });
    await protocol.send("Runtime.evaluate", { expression: LOADED, awaitPromise: true });
    return {
      async evaluate(expression) {
        const { result, exceptionDetails } = await protocol.send("Runtime.evaluate", {
          expression,
          awaitPromise: true,
          returnByValue: true,
        });
        if (exceptionDetails) throw new Error(JSON.stringify(exceptionDetails));
        return (result as { value?: unknown }).value;
      },
      async look(width, scheme) {
        await protocol.send("Emulation.setDeviceMetricsOverride", {
          width,
          height: 1000,
          deviceScaleFactor: 1,
          mobile: false,
        });
        await protocol.send("Emulation.setEmulatedMedia", {
          features: [{ name: "prefers-color-scheme", value: scheme }],
        });
      },
      async press(key) {
        const text = key === "Enter" ? "\r" : key.length === 1 ? key : undefined;
        const code = KEY_CODES[key] ?? key.toUpperCase().charCodeAt(0);
        const event = { key, text, windowsVirtualKeyCode: code };
        await protocol.send("Input.dispatchKeyEvent", { type: "keyDown", ...event });
        await protocol.send("Input.dispatchKeyEvent", { type: "keyUp", ...event });
      },
      async screenshot() {
        const { data } = await protocol.send("Page.captureScreenshot", {
          format: "png",
          captureBeyondViewport: true,
        });
        return Uint8Array.fromBase64(data as string);
      },
      async [Symbol.asyncDispose]() {
        await protocol.send("Browser.close", {}).catch(() => {});
        await protocol.close();
        await end();
      },
    };
  } catch (error) {
    await end();
    throw error;
  }
}

/** The address that Chromium says it listens on; the rest of what it says is read and dropped. */
async function debuggingOrigin(
  stderr: ReadableStream<Uint8Array<ArrayBuffer>>,
): Promise<{ origin: string; drained: Promise<void> }> {
  const reader = stderr.pipeThrough(new TextDecoderStream()).getReader();
  let said = "";
  for (;;) {
    const found = /DevTools listening on ws:\/\/([^/]+)/.exec(said)?.[1];
    if (found !== undefined) {
      const drain = async () => {
        while (!(await reader.read()).done);
      };
      return { origin: found, drained: drain() };
    }
    const { done, value } = await reader.read();
    if (done) throw new Error(`Cannot open Chromium: it ended: ${said}`);
    said += value;
  }
}

async function pageSocket(origin: string): Promise<string> {
  for (let attempt = 0; attempt < 600; attempt++) {
    const targets = await (await fetch(`http://${origin}/json/list`)).json();
    const page = targets.find(({ type }: { type: string }) => type === "page");
    if (page !== undefined) return page.webSocketDebuggerUrl;
    await new Promise((done) => setTimeout(done, 100));
  }
  throw new Error("Cannot open Chromium: it shows no page");
}

type Message = Record<string, unknown>;

/** One connection: requests by number, answers in any order. */
async function connect(url: string) {
  const socket = new WebSocket(url);
  const waiting = new Map<number, PromiseWithResolvers<Message>>();
  socket.onmessage = ({ data }) => {
    const { id, result, error } = JSON.parse(data);
    const request = waiting.get(id);
    waiting.delete(id);
    if (error) request?.reject(new Error(error.message));
    else request?.resolve(result);
  };
  const closed = new Promise<void>((resolve) => socket.onclose = () => resolve());
  closed.then(() => {
    for (const request of waiting.values()) request.reject(new Error("Chromium is gone"));
  });
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = () => reject(new Error(`Cannot connect to ${url}`));
  });
  let next = 0;
  return {
    send(method: string, params: Message): Promise<Message> {
      const request = Promise.withResolvers<Message>();
      waiting.set(++next, request);
      socket.send(JSON.stringify({ id: next, method, params }));
      return request.promise;
    },
    async close() {
      socket.close();
      await closed;
    },
  };
}
