import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { UnsupportedError } from "../errors.ts";
import type { TensorData } from "../tensor/dtype.ts";
import type { RuntimeProvider } from "./layer.ts";
import { environmentValue, fetchPackage, type NativePackage, verifyFile } from "../npm_package.ts";

/** What the runtime says of a model's input or output; a free size is -1. */
export interface RuntimeValue {
  readonly name: string;
  readonly type: number;
  readonly shape: readonly number[];
}

/** A tensor of the runtime, of which it makes and reads these fields. */
export class RuntimeTensor {
  /** Where the data is. */
  readonly location = "cpu";
  constructor(
    readonly type: string,
    readonly data: TensorData,
    readonly dims: readonly number[],
  ) {}
}

/** A session of the package's addon, as far as it is used. */
export interface RuntimeSession {
  loadModel(
    buffer: ArrayBufferLike,
    offset: number,
    length: number,
    options: Readonly<Record<string, unknown>>,
  ): void;
  readonly outputMetadata: readonly RuntimeValue[];
  /** Gives the outputs that `fetches` names. */
  run(
    feeds: Readonly<Record<string, RuntimeTensor>>,
    fetches: Readonly<Record<string, null>>,
    options: object,
  ): Readonly<Record<string, RuntimeTensor>>;
  dispose(): void;
}

interface Addon {
  readonly InferenceSession: new () => RuntimeSession;
  initOrtOnce(logLevel: number, tensor: unknown, main: boolean): void;
}

const NAME = "onnxruntime-node";
const VERSION = "1.30.0";

/** What computes, for records. */
export function runtimeName(provider: RuntimeProvider): string {
  return `onnxruntime ${VERSION} ${provider}`;
}

/** SHA-256 of the package's native files: the addon, and the library that it loads. */
const FILES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "darwin/arm64": {
    "onnxruntime_binding.node": "a3f993357759b06ae2411f70af60f5e041d04521ea7f0d12cb7546e411a527dd",
    "libonnxruntime.1.30.0.dylib":
      "685d2be5dba1309c89d3a5324b7fd06a5c42f1a61bfea32d14c4cc28d072121d",
    "libonnxruntime.1.dylib": "685d2be5dba1309c89d3a5324b7fd06a5c42f1a61bfea32d14c4cc28d072121d",
  },
  "linux/arm64": {
    "onnxruntime_binding.node": "afec78dc11d38dc81605b068cefe1fc73ffe77ca240c15468aa40786150beac8",
    "libonnxruntime.so.1": "1f549d46250b005580b597f4164984aaf75b3bcb9f3aeb07c7f8a8fe60b23c76",
  },
  "linux/x64": {
    "onnxruntime_binding.node": "ccdc60b981d93a490cf9513d3f583547252b6e285b72988a96a494f2f006c7b8",
    "libonnxruntime.so.1": "ffb75a925ba05e47b235bb66e3e3911714a80b328a9c9425539feb204aa32a23",
  },
  "win32/arm64": {
    "onnxruntime_binding.node": "d8179924f15c2d3c1c8a75c50adf1671ec28c7f1cb0da9fc28b17daa02c5ecf5",
    "onnxruntime.dll": "6c3a2abf5c6aca11c48a0d338a91af309f2266f25ce2e4084e6a87bbcb0fbfd0",
  },
  "win32/x64": {
    "onnxruntime_binding.node": "ddd428464069b84414d34ec1796c7c2a69c33a976e4b0390692629e394f92fa1",
    "onnxruntime.dll": "508c362f5673483dd3a086379c392795b2e42d10d5e6f3f90ebd7ac21c97af67",
  },
};

/** What is fetched. */
export const ONNXRUNTIME: NativePackage = {
  name: NAME,
  version: VERSION,
  title: "onnxruntime",
  megabytes: 113,
  doing: "Cannot load onnxruntime, which infers shapes that a model leaves open, and runs models",
  how: "run it with -A",
  offline: `without a network set WGCONV_ONNXRUNTIME to the folder of the npm package ${NAME}`,
};

let loaded: Promise<Addon> | undefined;

/**
 * Opens a session of onnxruntime: of the package in the folder that `WGCONV_ONNXRUNTIME` names, else in Deno's npm cache, else
 * from npm.
 *
 * @throws {UnsupportedError} where it cannot be had.
 */
export async function openRuntime(): Promise<RuntimeSession> {
  const addon = await (loaded ??= loadAddon());
  return new addon.InferenceSession();
}

/** A place in its source and the function there, as in `/src/graph.cc:15 void onnxruntime::Graph::Load() `. */
const SOURCE = /\/\S*\.(?:cc|cpp|h|cu|cuh):\d+ (?:[^()]*\((?:[^()]|\([^()]*\))*\)(?: const)? )?/g;

/** What it says of an error: the first line, without its status and its own source. */
export function runtimeWords(error: unknown): string {
  const [said = ""] = (error instanceof Error ? error.message : String(error)).split("\n");
  return said.replace(/\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : /g, "").replace(SOURCE, "").trim();
}

/** Frees a session; one that loaded no model has nothing to free, and would throw. */
export function closeRuntime(session: RuntimeSession): void {
  try {
    session.dispose();
  } catch {
    // It loaded nothing.
  }
}

async function loadAddon(): Promise<Addon> {
  const { os, arch } = Deno.build;
  const platform = `${os === "windows" ? "win32" : os}/${arch === "aarch64" ? "arm64" : "x64"}`;
  const files = FILES[platform];
  if (files === undefined) {
    throw new UnsupportedError(`${ONNXRUNTIME.doing}: ${NAME} has no addon for ${platform}`);
  }
  const named = environmentValue("WGCONV_ONNXRUNTIME");
  const folder = join(
    named ? resolve(named) : await fetchPackage(ONNXRUNTIME),
    "bin/napi-v6",
    platform,
  );
  if (named === undefined) {
    for (const [file, hash] of Object.entries(files)) {
      await verifyFile(join(folder, file), hash, ONNXRUNTIME);
    }
  }
  const path = join(folder, "onnxruntime_binding.node");
  try {
    // It would send what runs to its maker, and keep that in the home folder.
    Deno.env.set("ORT_DISABLE_TELEMETRY", "1");
    const addon: Addon = createRequire(import.meta.url)(path);
    // Its own messages are left to the errors that it throws.
    addon.initOrtOnce(4, RuntimeTensor, true);
    return addon;
  } catch (cause) {
    const [said = ""] = (cause instanceof Error ? cause.message : String(cause)).split("\n");
    throw new UnsupportedError(`${ONNXRUNTIME.doing}: ${said}`, { cause });
  }
}
