import assert from "#assert";
import fc from "fast-check";
import { type ClippedAxis, clippedFilterRow, clippedRows } from "./omega.ts";

const axis = (output: number, filter: number, padding: number): ClippedAxis => ({
  input: output + filter - 1 - 2 * padding,
  output,
  filter,
  paddingBegin: padding,
  stride: 1,
  dilation: 1,
});

/** The share of pairs of filter row and row of ∇Y that is skipped. */
function skippedShare(axis: ClippedAxis): number {
  let kept = 0;
  for (let fh = 0; fh < axis.filter; fh++) {
    const [start, end] = clippedRows(axis, fh);
    kept += end - start;
  }
  return 1 - kept / (axis.filter * axis.output);
}

Deno.test("clippedRows() leaves out the rows that meet only padding", () => {
  const rows = [0, 1, 2].map((fh) => clippedRows(axis(4, 3, 1), fh));
  assert.deepEqual(rows, [[1, 4], [0, 4], [0, 3]]);
});

Deno.test("clippedRows() leaves out 1/6 for F_H = 3, O_H = 4, p = 1", () => {
  assert.ok(Math.abs(skippedShare(axis(4, 3, 1)) - 1 / 6) < 1e-12);
});

Deno.test("clippedRows() leaves out p(p + 1) / (F_H·O_H) where the padding is within the filter and ∇Y", () => {
  const sizes = fc.integer({ min: 0, max: 6 }).chain((padding) =>
    fc.record({
      padding: fc.constant(padding),
      filter: fc.integer({ min: padding + 1, max: 12 }),
      output: fc.integer({ min: 2 * padding + 1, max: 60 }),
    })
  );
  fc.assert(fc.property(sizes, ({ padding, filter, output }) => {
    const expected = padding * (padding + 1) / (filter * output);
    assert.ok(Math.abs(skippedShare(axis(output, filter, padding)) - expected) < 1e-12);
  }));
});

Deno.test("clippedRows() holds just the rows inside the input, for any stride, dilation and padding", () => {
  const axes = fc.record({
    input: fc.integer({ min: 1, max: 30 }),
    output: fc.integer({ min: 1, max: 40 }),
    filter: fc.integer({ min: 1, max: 9 }),
    paddingBegin: fc.integer({ min: 0, max: 12 }),
    stride: fc.integer({ min: 1, max: 4 }),
    dilation: fc.integer({ min: 1, max: 3 }),
  });
  fc.assert(fc.property(axes, (any) => {
    for (let fh = 0; fh < any.filter; fh++) {
      const [start, end] = clippedRows(any, fh);
      assert.ok(start >= 0 && start <= end && end <= any.output);
      for (let oh = 0; oh < any.output; oh++) {
        const ih = oh * any.stride + fh * any.dilation - any.paddingBegin;
        assert.equal(oh >= start && oh < end, ih >= 0 && ih < any.input);
      }
    }
  }));
});

Deno.test("clippedFilterRow() clips the outermost axis of rows counted through", () => {
  const outer = [axis(4, 3, 1), axis(5, 2, 0)];
  assert.deepEqual(clippedFilterRow(outer, 0), [5, 20]);
  assert.deepEqual(clippedFilterRow(outer, 3), [0, 20]);
  assert.deepEqual(clippedFilterRow(outer, 5), [0, 15]);
  assert.deepEqual(clippedFilterRow([], 0), [0, 1]);
});
