/** An operating system that refuses writes, and a device that is lost. */
import type { Operation } from "./fault_cases.ts";

class Full extends Error {
  readonly code = "ENOSPC";
  constructor() {
    super("No space left on device (os error 28)");
  }
}

/** Puts `make` in the place of a method until the stack is disposed of; nothing where there is no such method. */
function replaceMethod(
  stack: DisposableStack,
  object: object,
  name: string,
  make: (call: () => unknown, args: readonly unknown[]) => unknown,
): void {
  const methods = object as Record<string, unknown>;
  const original = methods[name];
  if (typeof original !== "function") return;
  methods[name] = function (this: unknown, ...args: unknown[]) {
    return make(() => original.apply(this, args), args);
  };
  stack.defer(() => methods[name] = original);
}

/** Makes the operating system refuse a kind of calls once `after` of them went well. Its count tells how many came. */
export function failWrites(at: Operation, after: number): { refused: boolean } & Disposable {
  const stack = new DisposableStack();
  let left = after;
  const state = { refused: false, [Symbol.dispose]: () => stack.dispose() };
  const refuse = () => {
    if (left-- > 0) return false;
    state.refused = true;
    return true;
  };
  const wrap = (
    object: object,
    name: string,
    fails: (...args: unknown[]) => boolean,
    sync: boolean,
  ) =>
    replaceMethod(stack, object, name, (call, args) => {
      if (!fails(...args)) return call();
      if (sync) throw new Full();
      return Promise.reject(new Full());
    });
  const file = Deno.FsFile.prototype;
  switch (at) {
    case "write":
      wrap(file, "write", refuse, false);
      wrap(file, "writeSync", refuse, true);
      wrap(Deno, "writeFile", refuse, false);
      wrap(Deno, "writeTextFile", refuse, false);
      wrap(Deno, "writeFileSync", refuse, true);
      wrap(Deno, "writeTextFileSync", refuse, true);
      break;
    case "sync":
      wrap(file, "sync", refuse, false);
      wrap(file, "syncSync", refuse, true);
      break;
    case "rename":
      wrap(Deno, "rename", refuse, false);
      wrap(Deno, "renameSync", refuse, true);
      break;
    case "open": {
      const writes = (_: unknown, given?: unknown) => {
        const { write, append } = (given ?? {}) as Deno.OpenOptions;
        return (write === true || append === true) && refuse();
      };
      wrap(Deno, "open", writes, false);
      wrap(Deno, "openSync", writes, true);
    }
  }
  return state;
}

/** Calls of WebGPU after any of which the device may be lost. */
const GPU_CALLS: readonly (readonly [object: () => object, names: readonly string[]])[] = [
  [() => GPUDevice.prototype, [
    "createBuffer",
    "createBindGroup",
    "createCommandEncoder",
    "createComputePipelineAsync",
    "createComputePipeline",
    "createShaderModule",
    "popErrorScope",
  ]],
  [() => GPUQueue.prototype, ["submit", "writeBuffer"]],
  [() => GPUBuffer.prototype, ["mapAsync", "getMappedRange", "unmap"]],
];

/** Loses the device that is open after so many calls. */
export function loseDevice(after: number): { lost: boolean } & Disposable {
  const stack = new DisposableStack();
  let left = after;
  let device: GPUDevice | undefined;
  const state = { lost: false, [Symbol.dispose]: () => stack.dispose() };
  replaceMethod(stack, GPUAdapter.prototype, "requestDevice", (call) => {
    const made = call() as Promise<GPUDevice>;
    made.then((opened) => device = opened, () => {});
    return made;
  });
  const count = () => {
    if (state.lost || device === undefined || left-- > 0) return;
    state.lost = true;
    device.destroy();
  };
  for (const [object, names] of GPU_CALLS) {
    for (const name of names) {
      replaceMethod(stack, object(), name, (call) => {
        count();
        return call();
      });
    }
  }
  return state;
}
