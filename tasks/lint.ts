/** Lint rules of this project, for `deno lint`: what would fail only in another folder or on another machine. */

/** Files that run in tests. */
const TESTS = /_test\.ts$|[/\\]tests[/\\][^/\\]+\.ts$/;

/** Those of them that start processes for the others: with deadlines, quiet, offline. */
const STARTERS = /[/\\]tests[/\\](cli|chromium)\.ts$/;

const PATHNAME =
  "A URL's pathname is percent-encoded: use fileURLToPath() of node:url or import.meta.dirname for files";
const COMMAND = "Tests start processes through tests/cli.ts: with a deadline, quiet and offline";

/** `new URL(request.url)`: an address that was asked for, which names no file of this machine. */
function isAddress(node: Deno.lint.Expression | Deno.lint.Super): boolean {
  if (node.type !== "NewExpression" || node.arguments.length !== 1) return false;
  const [of] = node.arguments;
  return of?.type === "MemberExpression" && of.object.type === "Identifier" &&
    of.object.name === "request" && of.property.type === "Identifier" && of.property.name === "url";
}

const plugin: Deno.lint.Plugin = {
  name: "wgconv",
  rules: {
    "no-pathname": {
      create: (context) => ({
        'MemberExpression[property.name="pathname"]'(node) {
          if (!isAddress(node.object)) context.report({ node, message: PATHNAME });
        },
        'ObjectPattern > Property[key.name="pathname"]'(node) {
          context.report({ node, message: PATHNAME });
        },
      }),
    },
    "no-command-in-tests": {
      create: (context) => {
        const { filename } = context;
        if (!TESTS.test(filename) || STARTERS.test(filename)) return {};
        return {
          'MemberExpression[object.name="Deno"][property.name="Command"]'(node) {
            context.report({ node, message: COMMAND });
          },
        };
      },
    },
  },
};
export default plugin;
