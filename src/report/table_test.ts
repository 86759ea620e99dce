import assert from "#assert";
import { type Column, markdownTable, textTable } from "./table.ts";

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
