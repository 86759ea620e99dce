import type { Backend } from "../gpu/provider.ts";

/** Which GPU a command computes on. */
export interface GpuChoice {
  readonly backend: Backend;
  /** Its index or a part of its name; the backend's own choice where absent. */
  readonly adapter?: string | undefined;
}

/** What `--adapter` says of itself. */
export const ADAPTER_HELP =
  "the GPU by its index or a part of its name, as wgconv devices lists them";
