import assert from "#assert";
import { parseDescriptor } from "../problem/descriptor.ts";
import { convSubject } from "../run/conv_subject.ts";
import { fillOperands } from "../run/operands.ts";
import { verifySubject } from "./verify.ts";

const subject = convSubject({
  problem: parseDescriptor("mb2ic24ih12oc16kh3ph1"),
  layout: "nchw",
  filterLayout: "kcrs",
});
const operands = fillOperands(subject, "normal", 1);

async function exactResult(): Promise<Float32Array<ArrayBuffer>> {
  return Float32Array.from((await subject.reference(operands, {})).values);
}

Deno.test("a result that is rounded once passes as f32", async () => {
  const { verdict, message, arithmetic } = await verifySubject(
    subject,
    operands,
    await exactResult(),
    { arithmetic: "f32" },
  );
  assert.deepEqual([verdict, message, arithmetic], ["pass", undefined, "f32, one sum"]);
});

Deno.test("one wrong output fails, and so does all zeros", async () => {
  const result = await exactResult();
  result[77]! += 1e-3;
  const one = await verifySubject(subject, operands, result, { arithmetic: "f32" });
  assert.equal(one.verdict, "fail");
  const none = await verifySubject(subject, operands, result.fill(0), { arithmetic: "f32" });
  assert.equal(none.verdict, "fail");
});

Deno.test("an arithmetic that is none is refused", async () => {
  await assert.rejects(
    verifySubject(subject, operands, new Float32Array(1), { arithmetic: "f33" }),
    /Cannot verify: there is no arithmetic "f33"/,
  );
});
