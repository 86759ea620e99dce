import assert from "#assert";
import fc from "fast-check";
import { type ConvProblem, convProblem, outputSizeOf } from "./conv_problem.ts";
import { parseDescriptor, parseDescriptors, printDescriptor } from "./descriptor.ts";

Deno.test("parseDescriptor() reads a ResNet layer", () => {
  const problem = parseDescriptor('mb64ic64ih56oc64oh56kh3ph1n"Conv2N64"', "bwd-data");
  assert.deepEqual(
    problem,
    convProblem({
      op: "bwd-data",
      batch: 64,
      inChannels: 64,
      outChannels: 64,
      inputSize: [56, 56],
      filterSize: [3, 3],
      paddingBegin: [1, 1],
      name: "Conv2N64",
    }),
  );
});

Deno.test("parseDescriptor() counts dilation from 0 and defaults to a batch of 2", () => {
  const problem = parseDescriptor("ic4ih9oc4kh3dh1");
  assert.equal(problem.batch, 2);
  assert.deepEqual(problem.dilation, [2, 2]);
  assert.deepEqual(problem.outputSize, [5, 5]);
});

Deno.test("parseDescriptor() reads one and three spatial axes", () => {
  assert.deepEqual(parseDescriptor("ic1iw9oc1kw3sw2").outputSize, [4]);
  const volume = parseDescriptor("ic1id5ih6oc1kd3pd1");
  assert.deepEqual(volume.inputSize, [5, 6, 6]);
  assert.deepEqual(volume.filterSize, [3, 3, 3]);
  assert.deepEqual(volume.paddingBegin, [1, 1, 1]);
});

Deno.test("parseDescriptor() derives padding from a given output size", () => {
  assert.deepEqual(parseDescriptor("ic1ih8oc1oh8kh3").paddingBegin, [1, 1]);
  const even = parseDescriptor("ic1ih8oc1oh8kh4");
  assert.deepEqual([even.paddingBegin, even.paddingEnd], [[1, 1], [2, 2]]);
  const given = parseDescriptor("ic1ih8oc1oh8kh3ph0");
  assert.deepEqual([given.paddingBegin, given.paddingEnd], [[0, 0], [2, 2]]);
});

Deno.test("parseDescriptor() ignores underscores and takes a name without quotes", () => {
  const problem = parseDescriptor("g2mb1_ic4ih7iw5_oc6kh3kw2_nmy layer");
  assert.equal(problem.groups, 2);
  assert.equal(problem.name, "my layer");
  assert.deepEqual([problem.inputSize, problem.filterSize], [[7, 5], [3, 2]]);
});

Deno.test("parseDescriptors() makes the cross product of lists and ranges", () => {
  const problems = parseDescriptors("mb1:3:2ic4,8ih5oc2kh3");
  assert.deepEqual(
    problems.map(({ batch, inChannels }) => [batch, inChannels]),
    [[1, 4], [1, 8], [3, 4], [3, 8]],
  );
});

Deno.test("parseDescriptor() names the column and the nearest key", () => {
  const message = (text: string) => {
    try {
      parseDescriptor(text);
    } catch (error) {
      if (error instanceof SyntaxError) return error.message;
    }
    return "no SyntaxError";
  };
  assert.equal(
    message("mb2ic3hi8oc4kh3"),
    'Cannot parse problem: unknown key "hi", did you mean "ih"?, at column 7\n' +
      "  mb2ic3hi8oc4kh3\n        ^",
  );
  assert.match(message("ic3ih8oc4kh"), /expected a number >= 0, at column 12/);
  assert.match(message("ic3ih8oc4"), /the filter size is missing \(kw, kh or kd\), at column 10/);
  assert.match(message("ic3ic4"), /"ic" is given twice, at column 4/);
  assert.match(message("ic3 ih8"), /unexpected " ", at column 4/);
  assert.match(message('ic3n"x'), /closing quote/);
  assert.match(message('n"x"'), /a name stands right behind its descriptor, without a space, at /);
  assert.match(message("ic1,2ih8oc4kh3"), /the lists make 2 problems/);
  assert.match(message("ic8:1ih8oc4kh3"), /the range 8:1 is empty/);
});

Deno.test("parseDescriptor() refuses an output size that nothing gives", () => {
  assert.throws(() => parseDescriptor("ic1ih8oc1oh3kh3ph0"), RangeError);
});

/** Random problems whose padding is the same on both sides. */
const problems: fc.Arbitrary<ConvProblem> = fc.integer({ min: 1, max: 3 }).chain((rank) => {
  const sizes = (min: number, max: number) =>
    fc.array(fc.integer({ min, max }), { minLength: rank, maxLength: rank });
  return fc.record({
    batch: fc.integer({ min: 0, max: 99 }),
    groups: fc.integer({ min: 1, max: 4 }),
    inChannels: fc.integer({ min: 0, max: 16 }),
    outChannels: fc.integer({ min: 0, max: 16 }),
    inputSize: sizes(0, 40),
    filterSize: sizes(1, 7),
    stride: sizes(1, 4),
    paddingBegin: sizes(0, 5),
    dilation: sizes(1, 4),
    name: fc.option(fc.stringMatching(/^[A-Za-z0-9 ._-]{1,9}$/), { nil: undefined }),
  }).map(({ name, ...init }) => ({
    ...init,
    inChannels: init.inChannels * init.groups,
    outChannels: init.outChannels * init.groups,
    ...(name === undefined ? {} : { name }),
  })).filter((init) =>
    init.inputSize.every((input, axis) => {
      const pad = init.paddingBegin[axis]!;
      const dilated = (init.filterSize[axis]! - 1) * init.dilation[axis]! + 1;
      return outputSizeOf(input, dilated, init.stride[axis]!, pad, pad, 1) >= 1;
    })
  ).map((init) => convProblem(init));
});

Deno.test("printDescriptor() is read back as the same problem", () => {
  fc.assert(fc.property(problems, (problem) => {
    assert.deepEqual(parseDescriptor(printDescriptor(problem)), problem);
  }));
});

Deno.test("printDescriptor() keeps asymmetric padding where the output depends on it", () => {
  const problem = convProblem({
    batch: 1,
    inChannels: 1,
    outChannels: 1,
    inputSize: [8, 8],
    filterSize: [3, 3],
    paddingBegin: [0, 2],
    paddingEnd: [1, 0],
  });
  assert.equal(printDescriptor(problem), "mb1ic1ih8iw8oc1oh7ow8kh3kw3ph0pw2");
  assert.deepEqual(parseDescriptor(printDescriptor(problem)), problem);
});

Deno.test("parseDescriptor() never fails but with SyntaxError, TypeError or RangeError", () => {
  const words = fc.constantFrom("ic", "ih", "oc", "kh", "mb", "sh", "n", '"', "_", ",", ":", "x");
  const piece = fc.oneof(words, fc.nat(99).map(String));
  fc.assert(fc.property(fc.array(piece, { maxLength: 14 }), (pieces) => {
    try {
      parseDescriptor(pieces.join(""));
    } catch (error) {
      assert.ok(
        error instanceof SyntaxError || error instanceof TypeError || error instanceof RangeError,
      );
    }
  }));
});

Deno.test("every key at the limits of whole numbers is taken, or refused in a sentence that names what is too large", () => {
  const usual = "g1 mb1 ic4 oc4 id8 ih8 iw8 kd3 kh3 kw3 sd1 sh1 sw1 pd1 ph1 pw1 dd0 dh0 dw0".split(
    " ",
  );
  const keys = [...usual.map((part) => part.replace(/\d+/, "")), "od", "oh", "ow"];
  const most = Number.MAX_SAFE_INTEGER;
  for (const key of keys) {
    for (
      const value of [
        "9007199254740990",
        "9007199254740991",
        "9007199254740992",
        `1${"0".repeat(400)}`,
      ]
    ) {
      const parts = usual.filter((part) => part.replace(/\d+/, "") !== key);
      let made;
      try {
        made = parseDescriptor([...parts, key + value].join(""));
      } catch (error) {
        const [said] = (error as Error).message.split("\n");
        const named = Number(value) > most || key.startsWith("d") && Number(value) === most
          ? `: ${key} is too large, expected `
          : key.startsWith("g")
          ? " groups do not divide "
          : /^k/.test(key)
          ? " is larger than the padded input size "
          : ` is beyond ${most} on spatial axis ${"dhw".indexOf(key[1]!)}`;
        assert.ok(said!.includes(named), `${key}${value.slice(0, 20)}: ${said}`);
        continue;
      }
      const sizes = [made.inputSize, made.outputSize, made.paddingBegin, made.paddingEnd].flat();
      assert.ok(sizes.every(Number.isSafeInteger), key);
    }
  }
});
