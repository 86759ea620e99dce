import { parseDescriptor } from "../../src/problem/descriptor.ts";
import { convSubject } from "../../src/run/conv_subject.ts";
import type { ConvAsked, Subject } from "../../src/run/subject.ts";

/** A convolution of f32 in PyTorch's layouts, but for what is said otherwise. */
export function plainSubject(
  descriptor: string,
  { op, ...more }: Partial<ConvAsked> & { readonly op?: ConvAsked["problem"]["op"] } = {},
): Subject {
  const problem = parseDescriptor(descriptor, op);
  return convSubject({ problem, layout: "nchw", filterLayout: "kcrs", ...more });
}
