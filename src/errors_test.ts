import assert from "#assert";
import {
  DeviceError,
  EXIT,
  exitCodeOf,
  InputRangeError,
  InputSyntaxError,
  InputTypeError,
  isEngineFault,
  systemWords,
  UnsupportedError,
} from "./errors.ts";

/** What `body` throws. */
function thrownBy(body: () => unknown): unknown {
  try {
    body();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}

Deno.test("exitCodeOf() tells what checks refuse from faults that the engine finds", () => {
  const nothing = undefined as unknown as { x: { y: number } };
  const faults: (() => unknown)[] = [
    () => {
      throw new RangeError("Cannot make a kernel: a bug, whatever its words");
    },
    () => nothing.x,
    () => nothing.x = { y: 1 },
    () => (new Map() as unknown as { missing(): void }).missing(),
    () => [...5 as unknown as number[]],
    () => {
      const { x } = nothing;
      return x;
    },
    () => new Uint8Array(2).set([1, 2, 3]),
    () => new Float32Array(new ArrayBuffer(8), 2),
    () => new DataView(new ArrayBuffer(2)).getUint32(0),
    () => 1n + (1 as unknown as bigint),
    () => BigInt(undefined as unknown as number),
    () => Number(Symbol() as unknown),
    () => Object.keys(undefined as unknown as object),
    () => structuredClone(() => 1),
    () => [].reduce((a) => a),
    () => new TextDecoder("none"),
    () => "x".repeat(-1),
    () => new Intl.NumberFormat("en", { maximumFractionDigits: 999 }),
    () => (1.5).toFixed(200),
    () => JSON.parse("{"),
    function deep(): unknown {
      return [deep()];
    },
  ];
  for (const fault of faults) {
    const error = thrownBy(fault);
    assert.equal(exitCodeOf(error), EXIT.internal, `${error}`);
  }
});

Deno.test("exitCodeOf() of what users can mend, of missing GPUs, of lost devices", () => {
  for (
    const [error, code] of [
      [
        new InputTypeError("Cannot convolve: filter has 16 input channels, input has 32"),
        EXIT.usage,
      ],
      [new InputRangeError("Cannot convert x.npy to i8: element 3 is 200"), EXIT.usage],
      [new InputTypeError("Cannot read x.npy: byte 20: expected one of f2 f4"), EXIT.usage],
      [new InputSyntaxError("suite.txt:2: Cannot parse problem: unknown key"), EXIT.usage],
      [new InputSyntaxError("Cannot parse problem: unknown key"), EXIT.usage],
      [new Deno.errors.NotFound("Cannot read x.npy: no such file"), EXIT.usage],
      [Object.assign(new Error("No space left on device"), { code: "ENOSPC" }), EXIT.usage],
      [new UnsupportedError("no GPU"), EXIT.unsupported],
      [thrownBy(() => new Float64Array(2 ** 53)), EXIT.unsupported],
      [new DeviceError("lost"), EXIT.internal],
      [new Error("what"), EXIT.internal],
    ] as [unknown, number][]
  ) {
    assert.deepEqual([exitCodeOf(error), isEngineFault(error)], [code, false], `${error}`);
  }
});

Deno.test("systemWords() says what is wrong without numbers, calls and paths", () => {
  const { errors } = Deno;
  const cases: readonly (readonly [error: Error, words: string])[] = [
    [new errors.IsADirectory("Is a directory (os error 21): open 'x'"), "it is a directory"],
    [
      new errors.NotADirectory("Not a directory (os error 20): open 'x'"),
      "a part of its path is no directory",
    ],
    [new errors.AlreadyExists("File exists (os error 17): mkdir 'x'"), "a file has its name"],
    [
      new errors.FilesystemLoop("Too many levels of symbolic links (os error 40): stat 'x'"),
      "its links lead in a circle",
    ],
    [
      new errors.PermissionDenied("Permission denied (os error 13): open 'x'"),
      "permission denied",
    ],
    [new Error("EIO: open 'x'"), "EIO"],
  ];
  for (const [error, words] of cases) assert.equal(systemWords(error), words);
});
