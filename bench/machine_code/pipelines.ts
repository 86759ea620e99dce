/** What the layer (layer.c) writes: a JSON line a pipeline, with the driver's own names of its figures. */

/** What a driver says of one executable of a pipeline. */
interface Executable {
  readonly name: string;
  /** Threads of a subgroup. */
  readonly subgroup: number;
  readonly statistics: Readonly<Record<string, number | null>>;
}

/** A line of the layer's. */
export interface PipelineLine {
  /** What the driver of the measurement called it. */
  readonly kernel: string;
  readonly device: string;
  /** The PCI vendor of the device. */
  readonly vendor: number;
  /** Whether the driver was asked for statistics. */
  readonly captured: boolean;
  readonly compile_ms: number;
  readonly executables?: readonly Executable[];
}

/** A pipeline's figures; what a driver does not say is absent. Of several executables the largest. */
export interface PipelineFigures {
  /** Of a thread. */
  readonly registers?: number;
  /** Bytes of a thread that lie in memory: spilled registers, and arrays with variable indices. */
  readonly localBytes?: number;
  /** Registers that were spilled, where a driver counts them. */
  readonly spilled?: number;
  /** Bytes of workgroup memory. */
  readonly sharedBytes?: number;
  /** Bytes of machine code. */
  readonly codeBytes?: number;
  /** What runs side by side: waves of a SIMD or core, or threads of a core. */
  readonly occupancy?: number;
}

/** Drivers' names of figures, without case, blanks and punctuation: NVIDIA's, RADV's, ANV's and others of Mesa. */
const NAMES: Readonly<Record<string, keyof PipelineFigures>> = {
  registercount: "registers",
  registers: "registers",
  registersused: "registers",
  maxliveregisters: "registers",
  numberofgprs: "registers",
  gprs: "registers",
  vgprs: "registers",
  localmemorysize: "localBytes",
  scratchsize: "localBytes",
  scratchmemorysize: "localBytes",
  spilledvgprs: "spilled",
  spillcount: "spilled",
  spills: "spilled",
  spillstomemory: "spilled",
  stpcount: "spilled",
  sharedmemorysize: "sharedBytes",
  ldssize: "sharedBytes",
  workgroupmemorysize: "sharedBytes",
  binarysize: "codeBytes",
  codesize: "codeBytes",
  subgroupspersimd: "occupancy",
  maxwavespercore: "occupancy",
  maxwarpssm: "occupancy",
  threads: "occupancy",
};

/**
 * Reads the layer's lines.
 *
 * @throws {SyntaxError} with the line's number where one is no line of the layer's.
 */
export function parsePipelines(text: string): PipelineLine[] {
  return text.split("\n").flatMap((line, index) => {
    if (line === "") return [];
    const fail = () => {
      throw new SyntaxError(
        `Cannot read pipelines: line ${index + 1} is none: ${line.slice(0, 60)}`,
      );
    };
    let value: Partial<PipelineLine> = {};
    try {
      value = JSON.parse(line);
    } catch {
      fail();
    }
    if (typeof value.kernel !== "string" || typeof value.captured !== "boolean") fail();
    return [value as PipelineLine];
  });
}

/** A pipeline's figures by names of our own. */
export function figuresOf(
  { executables = [] }: Pick<PipelineLine, "executables">,
): PipelineFigures {
  const figures: { -readonly [key in keyof PipelineFigures]: number } = {};
  for (const { statistics } of executables) {
    for (const [said, value] of Object.entries(statistics)) {
      const name = NAMES[said.toLowerCase().replaceAll(/[^a-z0-9]/g, "")];
      if (name === undefined || value === null) continue;
      // NVIDIA's driver 580 adds 2^36 to the size of local memory.
      const own = name === "localBytes" ? value % 2 ** 32 : value;
      figures[name] = Math.max(figures[name] ?? 0, own);
    }
  }
  return figures;
}
