import assert from "#assert";
import { type Column, liveTable, markdownTable, textTable } from "./table.ts";

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
