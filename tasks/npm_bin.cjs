#!/usr/bin/env node
// Runs wgconv with the Deno of the npm package `deno`.
"use strict";
const { spawn } = require("node:child_process");
const { existsSync } = require("node:fs");
const { constants } = require("node:os");
const { dirname, join } = require("node:path");

/** Deno's executable: where its install script put it, or where it would. */
function findDeno() {
  const folder = dirname(require.resolve("deno/package.json"));
  const placed = join(folder, process.platform === "win32" ? "deno.exe" : "deno");
  return existsSync(placed) ? placed : require(join(folder, "install_api.cjs")).runInstall();
}

const script = join(__dirname, "../lib/wgconv.js");
const args = ["run", "-A", "--no-config", "--no-lock", "--no-check", script];
const child = spawn(findDeno(), [...args, ...process.argv.slice(2)], { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  // A terminal sends Ctrl-C to both.
  process.on(signal, () => signal === "SIGINT" && process.stdin.isTTY || child.kill(signal));
}
child.on("error", (error) => {
  console.error(`wgconv: Cannot start Deno: ${error.message}`);
  process.exit(5);
});
child.on("exit", (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)));
