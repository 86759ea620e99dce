/**
 * Declares the digits of `index` in a mixed radix, innermost first: `let name = ...` for each.
 *
 * @param digits Name and radix (WGSL) of each digit, innermost first; the outermost takes what is left.
 */
export function decompose(
  index: string,
  rest: string,
  digits: readonly { readonly name: string; readonly radix: string }[],
  indent = "  ",
): string {
  const lines: string[] = [];
  let left = index;
  digits.forEach(({ name, radix }, i) => {
    if (i === digits.length - 1) {
      lines.push(`${indent}let ${name} = ${left};`);
      return;
    }
    lines.push(`${indent}let ${name} = ${left} % ${radix};`);
    lines.push(`${indent}let ${rest}${i} = ${left} / ${radix};`);
    left = `${rest}${i}`;
  });
  return lines.join("\n");
}
