import { run } from "./cli.ts";

/** A Python that has the module; undefined where none has. */
export async function pythonWith(module: string): Promise<string | undefined> {
  for (const python of ["python3", "/usr/bin/python3"]) {
    const found = await run(python, ["-c", `import ${module}`]).catch(() => ({ code: 1 }));
    if (found.code === 0) return python;
  }
  return undefined;
}
