import assert from "#assert";
import { OPERATIONS } from "../problem/conv_problem.ts";
import { FILE_FILTER_LAYOUTS, LAYOUTS } from "../tensor/layout.ts";
import { meant, meantOption } from "./other_words.ts";

Deno.test("meant() knows what others call a value, in any spelling of it", () => {
  const words: [word: string, choices: readonly string[], said: string][] = [
    ["bwd", OPERATIONS, ', did you mean "bwd-data" or "bwd-filter"?'],
    ["BWD_WB", OPERATIONS, ', did you mean "bwd-filter"?'],
    ["backward_data", OPERATIONS, ', did you mean "bwd-data"?'],
    ["fprop", OPERATIONS, ', did you mean "fwd"?'],
    ["Channels_Last", ["nchw", "nhwc", "chwn"], ', did you mean "nhwc"?'],
    ["hwio", FILE_FILTER_LAYOUTS, ', did you mean "rsck"?'],
    ["ohwi", FILE_FILTER_LAYOUTS, ', did you mean "krsc"?'],
    ["HWC", LAYOUTS, ', did you mean "nhwc"?'],
    ["float64", ["f32", "f16", "f64"], ', did you mean "f64"?'],
    ["pwsh", ["bash", "powershell"], ', did you mean "powershell"?'],
    ["nwhc", ["nchw", "nhwc"], ', did you mean "nhwc"?'],
    ["zzzzzz", ["nchw", "nhwc"], ""],
  ];
  for (const [word, choices, said] of words) assert.equal(meant(word, choices), said, word);
});

Deno.test("meant() says what is not here, and never something that is only spelt like it", () => {
  const words: [word: string, choices: readonly string[], said: RegExp][] = [
    ["bfloat16", ["f32", "f16"], /^; bf16 is of operands and results/],
    ["relu6", ["none", "relu"], /^; relu6 is not computed here/],
    ["elu", ["relu", "gelu"], /^; elu is not computed here/],
    ["hwio", LAYOUTS, /^, rsck is a --filter-layout$/],
    ["uint8", ["f32", "f16", "i8"], /^; --dtype i8 takes files of u8/],
    ["fft", ["direct"], /^; there is no FFT/],
    ["tcsh", ["bash", "zsh"], /^; it has no completions$/],
    ["ksh", ["bash", "zsh"], /^; it has no completions$/],
    ["auto", ["wgpu", "dawn"], /^; conv, gemm, plan, bench and tune have auto/],
    ["auto", ["nchw", "nhwc"], /^$/],
  ];
  for (const [word, choices, said] of words) assert.match(meant(word, choices), said);
});

Deno.test("meantOption() names an option that the command has", () => {
  const words: [word: string, options: string[], said: string | undefined][] = [
    ["--pad", ["--pair", "--padding"], ", did you mean --padding?"],
    ["--weights=w.npy", ["--with", "--filter"], ", did you mean --filter?"],
    ["--weight", ["--a", "--b"], ", did you mean --b?"],
    ["--channels_last", ["--layout"], ", did you mean --layout nhwc?"],
    // Others count from 0.
    ["--dilates", ["--dilation"], ", did you mean --dilation (1 for none)?"],
    ["--problem", ["--suite"], ", did you mean --suite (a file of descriptors)?"],
    ["--problem", ["--size", "--suite"], ", did you mean --size?"],
    ["--dtype", ["--dtype"], undefined],
    ["--pad", ["--shape"], undefined],
  ];
  for (const [word, options, said] of words) assert.equal(meantOption(word, options), said, word);
  assert.match(meantOption("--mb", ["--problem"])!, /^; the descriptor says it/);
});
