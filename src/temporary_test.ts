import assert from "#assert";
import { makeTemporary } from "./temporary.ts";

Deno.test("makeTemporary() says where it cannot make one, and why", async () => {
  const { NotFound } = Deno.errors;
  const message = /^Cannot make a temporary folder in \/nonexistent: no such file or directory$/;
  await assert.rejects(
    () => makeTemporary("folder", { dir: "/nonexistent" }),
    (error: Error) => error instanceof NotFound && message.test(error.message),
  );
});
