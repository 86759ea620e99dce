import assert from "#assert";
import { run } from "../../tests/cli.ts";
import { pythonWith } from "../../tests/python.ts";
import { DTYPE_NAMES, encodeNpyHeader, parseNpyHeader } from "./header.ts";
import { DTYPES } from "../tensor/dtype.ts";

const DICT = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";

/** A header of version `major` whose text is `text`, padded as is. */
function header(text: string, major = 1): Uint8Array {
  const length = major === 1
    ? [text.length & 0xff, text.length >> 8]
    : [text.length & 0xff, text.length >> 8, 0, 0];
  const magic = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, major, 0];
  return new Uint8Array([...magic, ...length, ...new TextEncoder().encode(text)]);
}

function parse(text: string) {
  return parseNpyHeader(header(text), "x.npy");
}

Deno.test("encodeNpyHeader() makes what parseNpyHeader() reads, aligned to 64 bytes", () => {
  for (const dtype of DTYPES) {
    for (const shape of [[], [0], [7], [1, 3, 8, 8], [2 ** 30, 2 ** 10], Array(30).fill(1)]) {
      const bytes = encodeNpyHeader(dtype, shape);
      const parsed = parseNpyHeader(bytes, "x.npy");
      assert.equal(bytes.length % 64, 0);
      assert.deepEqual(parsed, {
        version: [1, 0],
        dtype,
        littleEndian: true,
        fortranOrder: false,
        shape,
        dataOffset: bytes.length,
      });
    }
  }
});

Deno.test("parseNpyHeader() reads what other writers make of the dict", () => {
  const variants = [
    `{"shape":(2,3),"fortran_order":False,"descr":"<f4"}`,
    `{ 'descr' : '=f4' , 'fortran_order' : False , 'shape' : ( 2L , 3L ) }  \n`,
    `{'descr': 'f4', 'fortran_order': False, 'shape': (2, 3,),}\n\n`,
  ];
  for (const text of variants) {
    const { dtype, shape, littleEndian } = parse(text);
    assert.deepEqual({ dtype, shape, littleEndian }, {
      dtype: "f32",
      shape: [2, 3],
      littleEndian: true,
    });
  }
  assert.deepEqual(parseNpyHeader(header(DICT, 3), "x.npy").version, [3, 0]);
  assert.equal(parse(DICT.replace("<f4", ">i1")).littleEndian, true);
  assert.equal(parse(DICT.replace("<f4", ">i2")).littleEndian, false);
});

Deno.test("parseNpyHeader() takes two bytes as bf16 where ml_dtypes wrote them, or --as says so", () => {
  const dtypeOf = (descr: string, as?: "bf16") => {
    const { dtype, littleEndian } = parseNpyHeader(
      header(DICT.replace("<f4", descr)),
      "x.npy",
      as === undefined ? {} : { as },
    );
    return `${dtype} ${littleEndian}`;
  };
  assert.equal(dtypeOf("<V2"), "bf16 true");
  assert.equal(dtypeOf(">V2"), "bf16 false");
  assert.equal(dtypeOf("bfloat16"), "bf16 true");
  assert.equal(dtypeOf("<u2"), "u16 true");
  for (const descr of ["<u2", "uint16", "<i2", "|V2", "<V2"]) {
    assert.equal(dtypeOf(descr, "bf16"), "bf16 true");
  }
  assert.equal(dtypeOf(">u2", "bf16"), "bf16 false");
  assert.equal(dtypeOf("<f4", "bf16"), "f32 true");
});

Deno.test("parseNpyHeader() takes every name that numpy.dtype() does", async () => {
  const python = await pythonWith("numpy");
  if (python === undefined) return;
  const names = [...DTYPE_NAMES].filter(([, dtype]) => dtype !== "bf16").map(([name]) => name);
  const written = names.flatMap((name) => [name, ...["<", ">", "|", "="].map((by) => by + name)]);
  const script = `import numpy as np, sys
for name in sys.argv[1:]:
    try: print(np.dtype(name).newbyteorder("<").str[1:], np.dtype(name).str[0])
    except TypeError: print("none")`;
  const { stdout } = await run(python, ["-c", script, ...written]);
  const said = stdout.trim().split("\n");
  assert.equal(said.length, written.length);
  // No NumPy takes a byte order before a whole word. Codes such as `n` are new in NumPy 2.
  for (const [i, descr] of written.entries()) {
    const text = DICT.replace("<f4", descr);
    if (said[i] === "none" && /^[<>|=]..../.test(descr)) {
      assert.throws(() => parse(text), TypeError, descr);
    } else if (said[i] !== "none") {
      const { dtype, littleEndian } = parse(text);
      const [code, order] = said[i]!.split(" ");
      assert.equal(DTYPE_NAMES.get(code!), dtype, descr);
      assert.equal(littleEndian, order !== ">", descr);
    }
  }
});

Deno.test("parseNpyHeader() points at what is wrong", () => {
  const cases: [text: string, kind: ErrorConstructor, message: RegExp][] = [
    [DICT.replace("(2, 3)", "(2, -3)"), RangeError, /byte 64: expected a size .* found -3/],
    [DICT.replace("(2, 3)", "(2, 9007199254740992)"), RangeError, /byte 64: expected a size/],
    [DICT.replace("(2, 3)", "(2147483648, 2147483648)"), RangeError, /fewer than 2\^53 bytes/],
    [DICT.replace("(2, 3)", "(2, 'x')"), SyntaxError, /byte 64: .* integer, found string/],
    [DICT.replace("(2, 3)", "[2, 3]"), SyntaxError, /byte 60: .* tuple, found list/],
    [DICT.replace("(2, 3)", "(2 3)"), SyntaxError, /byte 63: expected "," or "\)", found 3/],
    [DICT.replace("False", "0"), SyntaxError, /byte 44: expected True or False/],
    [DICT.replace("False", "false"), SyntaxError, /byte 44: expected a literal, found false/],
    [
      DICT.replace("'descr'", "'dtype'"),
      SyntaxError,
      /expected a dict of descr, .* found the keys/,
    ],
    [DICT.replace("}", ""), SyntaxError, /expected a key in quotes, found the end of the header/],
    [DICT.replace("}", "'shape': ()}"), SyntaxError, /expected each key once, found 'shape'/],
    [DICT + "pickle", SyntaxError, /byte 69: expected the end of the header, found pickle/],
    [DICT + " $", SyntaxError, /byte 70: expected a Python literal, found the byte 0x24/],
    ["(".repeat(5000), SyntaxError, /expected at most 16 levels of nesting/],
    [
      " ".repeat(10_001),
      RangeError,
      /byte 8: expected a header of at most 10000 bytes, found 10001/,
    ],
    [DICT.replace("'<f4'", "'<U8'"), TypeError, /found '<U8' \(text\): np.save x.astype\('f4'\)/],
    [DICT.replace("<f4", "<c8"), TypeError, /\(complex numbers\): np.save x.real and x.imag apart/],
    [DICT.replace("<f4", "complex128"), TypeError, /\(complex numbers\)/],
    [DICT.replace("<f4", "|O"), TypeError, /\(Python objects, a pickle\): np.save x.astype/],
    [DICT.replace("<f4", "<f16"), TypeError, /\(long doubles\): np.save x.astype\('f8'\)/],
    [DICT.replace("<f4", "<M8[ns]"), TypeError, /\(times\): np.save x.astype\('i8'\)/],
    [DICT.replace("<f4", "|V2"), TypeError, /\(two bytes of no meaning\): --as bf16 takes them/],
    [DICT.replace("<f4", "<V1"), TypeError, /\(8-bit floats or bytes\): np.save x.astype/],
    [DICT.replace("<f4", "<float32"), TypeError, /\(none of NumPy's numbers\)/],
    [DICT.replace("<f4", "f4".repeat(30)), TypeError, /found '(f4){10}…' \(none of/],
    [
      DICT.replace("'<f4'", "[('x', '<f4')]"),
      TypeError,
      /found structures: save each field apart, as x\['name'\]/,
    ],
    [DICT.replace("'<f4'", "4"), SyntaxError, /byte 20: expected the dtype as a string/],
  ];
  for (const [text, kind, message] of cases) {
    assert.throws(() => parse(text), (error: Error) => {
      assert(error instanceof kind, `${text}: ${error}`);
      assert.match(error.message, message);
      assert.match(error.message, /^Cannot read x\.npy: byte \d+: expected /);
      return true;
    });
  }
});

Deno.test("parseNpyHeader() counts a shape with a zero as empty, however large the rest", () => {
  assert.deepEqual(parse(DICT.replace("(2, 3)", `(0, ${2 ** 52}, ${2 ** 52})`)).shape, [
    0,
    2 ** 52,
    2 ** 52,
  ]);
});
