import assert from "#assert";
import {
  type Column,
  fittedWidths,
  keptColumns,
  liveTable,
  markdownTable,
  textTable,
} from "./table.ts";

const COLUMNS: Column[] = [{ title: "name" }, { title: "ms", align: "right" }];
const ROWS = [["a|b", "1.5"], ["longer", "12"]];

Deno.test("textTable() aligns its columns", () => {
  assert.equal(textTable(COLUMNS, ROWS), "name     ms\na|b     1.5\nlonger   12");
});

Deno.test("markdownTable() escapes bars and marks right-aligned columns", () => {
  assert.equal(
    markdownTable(COLUMNS, ROWS),
    [
      "| name   |  ms |",
      "| ------ | --: |",
      "| a\\|b   | 1.5 |",
      "| longer |  12 |",
    ].join("\n"),
  );
});

Deno.test("textTable() fits into a line: the widest words lose their middle, figures stay", () => {
  const columns: Column[] = [{ title: "name" }, { title: "kernel" }, {
    title: "ms",
    align: "right",
  }];
  const rows = [["a_rather_long_name", "a_very_much_longer_name_of_a_kernel", "1234567.5"]];
  const lines = textTable(columns, rows, undefined, 45).split("\n");
  assert.deepEqual(lines, [
    "name              kernel                   ms",
    "a_rather…ng_name  a_very_m…_kernel  1234567.5",
  ]);
  assert.ok(lines.every((line) => line.length <= 45));
  assert.deepEqual(fittedWidths(columns, [4, 30, 9], undefined), [4, 30, 9]);
  // Nothing is cut to nothing.
  assert.deepEqual(fittedWidths(columns, [40, 30, 9], 10), [10, 10, 9]);
});

Deno.test("spare columns go where cut words do not suffice, the most spare first", () => {
  const columns: Column[] = [
    { title: "name" },
    { title: "layout", spare: 1 },
    { title: "ms", align: "right" },
    { title: "kernel", spare: 2 },
  ];
  const widths = [40, 6, 9, 60];
  assert.deepEqual(keptColumns(columns, widths, undefined), [0, 1, 2, 3]);
  assert.deepEqual(keptColumns(columns, widths, 41), [0, 1, 2, 3]);
  assert.deepEqual(keptColumns(columns, widths, 40), [0, 1, 2]);
  assert.deepEqual(keptColumns(columns, widths, 28), [0, 2]);
  const cells = ["a name", "nchw", "1", "a_kernel_of_a_long_name"];
  const painted: number[] = [];
  const paint = (cell: string, column: number) => (painted.push(column), cell);
  const live = liveTable(columns, paint, 17)(cells);
  assert.equal(live, "name    ms\na name   1");
  assert.equal(textTable(columns, [cells], paint, 17), live);
  assert.deepEqual([...new Set(painted)], [0, 2]);
});

Deno.test("liveTable() widens as far as there is room", () => {
  const row = liveTable([{ title: "name" }, { title: "n", align: "right" }], undefined, 20);
  const lines = [row(["a", "1"]), row(["a_name_of_twenty_two_x", "12"]), row(["b", "1"])];
  assert.deepEqual(lines.join("\n").split("\n"), [
    "name  n",
    "a     1",
    "a_name_o…y_two_x  12",
    "b                  1",
  ]);
});

Deno.test("liveTable() aligns what is known before, and widens for what is wider", () => {
  const row = liveTable([{ title: "name", width: 6 }, { title: "n", align: "right", width: 2 }]);
  const lines = [row(["a", "1"]), row(["longer", "12"]), row(["a", "12345"]), row(["b", "1"])];
  assert.equal(
    lines.join("\n"),
    [
      "name     n",
      "a        1",
      "longer  12",
      "a       12345",
      "b           1",
    ].join("\n"),
  );
});

Deno.test("markdownTable() shows what a cell holds, and makes nothing of it", () => {
  const cells = [
    "<script>x</script>",
    "a|b&lt;",
    "[x](y)",
    "![x](y)",
    "`c`",
    "*d* __e__ k_f32_nchw",
  ];
  const rows = markdownTable([{ title: "t" }], cells.map((cell) => [cell])).split("\n").slice(2);
  assert.deepEqual(rows.map((row) => row.slice(2, -2).trim()), [
    "&lt;script>x&lt;/script>",
    "a\\|b&amp;lt;",
    "\\[x\\](y)",
    "!\\[x\\](y)",
    "\\`c\\`",
    "\\*d\\* \\_\\_e\\_\\_ k_f32_nchw",
  ]);
});
