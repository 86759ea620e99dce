/**
 * Typical mistakes: the command line, and what its message must name: the value that is wrong, the place where it stands (an
 * option, a file, a column), and what to do next. Files: x.npy [1, 3, 8, 8], w.npy [4, 3, 3, 3], last.npy [1, 8, 8, 3],
 * lastw.npy [4, 5, 5, 3], five.npy [1, 5, 8, 8], b.npy [3], suite.txt and limits.json, whose text is damaged, and
 * a.npz, which has a member x.
 */
export type Mistake = readonly [line: string, value: string, place: string, next: string];

const CASE = "mb1ic3ih8oc4kh3";

/** Of commands and words that stand alone. */
const WORDS: readonly Mistake[] = [
  ["cnv --input x.npy", '"cnv"', "command", 'did you mean "conv"?'],
  ["benchmark", '"benchmark"', "command", 'did you mean "bench"?'],
  ["matmul", '"matmul"', "command", 'did you mean "gemm"?'],
  ["make x.npy", '"make"', "command", 'did you mean "tensor make"?'],
  ["foo", '"foo"', "command", "there are conv, gemm, bench"],
  ["help foo", '"foo"', "command", "there are conv, gemm, bench"],
  ["help tensor mak", '"mak"', "of tensor", 'did you mean "make"?'],
  ["tensor mak x.npy", '"mak"', "of tensor", 'did you mean "make"?'],
  ["conv x.npy w.npy", "x.npy", "without an option", "--input x.npy --filter w.npy?"],
  ["conv x.npy w.npy y.npy", "y.npy", "without an option", "--output y.npy?"],
  ["conv --op bwd-filter x.npy y.npy", "y.npy", "without an option", "--grad-output y.npy?"],
  [`conv ${CASE}`, CASE, "without an option", `--problem ${CASE}?`],
  ["plan x.npy w.npy", "x.npy", "without an option", "--input x.npy"],
  ["gemm x.npy w.npy", "x.npy", "without an option", "--a x.npy --b w.npy?"],
  ["gemm 64 64 64", "64,64,64", "without an option", "--size 64,64,64?"],
  ["bench x.npy", "x.npy is a tensor", "Cannot bench", "conv takes it as --input"],
  ["bench suite.txt", "suite.txt is a file", "Cannot bench", "--suite suite.txt?"],
  ["tune suite.txt", "suite.txt is a file", "Cannot tune", "--suite suite.txt?"],
  ["transform 2 3", "2, 3", "'transform'", "wgconv help transform"],
  ["transform F(2,3", '"F(2,3"', "tile", "expected F(6,3)"],
  ["completions tcsh", "'tcsh'", "'shell'", "expected bash"],
  ["completions", "missing", "'shell'", "wgconv help completions"],
  ["completions bash --json", "--json must go", "completions", "wgconv man --json"],
  ["compare suite.txt", "missing", "'new'", "wgconv help compare"],
  ["--verison", "'--verison'", "option", "did you mean --version?"],
  ["conv --imput x.npy", "'--imput'", "option", "did you mean --input?"],
  ["gemm --m 4", "'--m'", "option", "wgconv help gemm"],
];

/** Of options' values. */
const VALUES: readonly Mistake[] = [
  ["tensor make y.npy", "'--shape <sizes>'", "option", "wgconv help tensor make"],
  ["tensor make y.npy --shape 1,a", "'1,a'", "'--shape <sizes>'", "such as 3 or 3,3"],
  ["tensor make y.npy --shape 2 --dtype float32", "'float32'", "'--dtype", '"f32"?'],
  ["tensor make y.npy --shape 2 --fill gauss", "'gauss'", "'--fill", '"normal"?'],
  ["tensor make y.npz --shape 2", "y.npz", "Cannot write", "as in y.npz:y"],
  ["tensor make a.npz:x --shape 2", "a.npz:x", "there is a member x", "--force replaces it"],
  ["tensor make a.npz:../y --shape 2", "a.npz:../y", "Cannot write", "such as y or layer/y"],
  ["tensor make x.npy:y --shape 2", "x.npy:y", "Cannot write", "x.npz:y"],
  ["tensor make y.png --shape 2", "y.png", ".npy files", "wgconv tensor show y.npy y.png"],
  [`conv --problem ${CASE} --layout nwhc`, "'nwhc'", "'--layout", '"nhwc"?'],
  [`conv --problem ${CASE} --layout channels_last`, "'channels_last'", "'--layout", '"nhwc"?'],
  [`conv --problem ${CASE} --algorithm winograd`, "'winograd'", "'--algo", '"winograd2d"?'],
  [`conv --problem ${CASE} --algorithm GEMM`, "'GEMM'", "'--algo", '"implicit-gemm"?'],
  [`conv --problem ${CASE} --op forward`, "'forward'", "'--op <op>'", '"fwd"?'],
  [`conv --problem ${CASE} --op dgrad`, "'dgrad'", "'--op <op>'", '"bwd-data"?'],
  [`conv --problem ${CASE} --dtype fp16`, "'fp16'", "'--dtype", '"f16"?'],
  [`conv --problem ${CASE} --device cuda`, "'cuda'", "'--device", '"gpu"?'],
  [`conv --problem ${CASE} --backend vulkan`, "'vulkan'", "'--backend", '"wgpu"?'],
  [`conv --problem ${CASE} --activation swish`, "'swish'", "'--activation", '"silu"?'],
  [`conv --problem ${CASE} --max-workspace lots`, "'lots'", "'--max-workspace", "64MB"],
  [`conv --problem ${CASE} --policy tinny`, "'tinny'", "'--policy", '"tiny"?'],
  [`plan --problem ${CASE} --policy 7x7`, "7x7", "Cannot plan: policy", "warps of 32)"],
  [`conv --problem ${CASE} --runs many`, "'many'", "'--runs <n>'", "a whole number >= 1"],
  [`bench ${CASE} --shard 5/4`, "'5/4'", "'--shard <i/n>'", "i from 1 to n"],
  ["devices --backend vulkan", "'vulkan'", "'--backend", '"wgpu"?'],
  ["check --columns speed", "'speed'", "'--columns", "problem, op, dtype"],
  ["check --sort times", "'times'", "'--sort", '"time"?'],
  [`tune ${CASE} --columns name`, "'name'", "'--columns", "algorithm, time"],
  [`tune ${CASE} --sort gains`, "'gains'", "'--sort", '"gain"?'],
  [`bench ${CASE} --spread 5`, "'5'", "'--spread <share>'", "such as 0.01 or 1%"],
  [`bench ${CASE} --match (`, "'('", "'--match <regex>'", "a regular expression"],
  [`bench ${CASE} --match zzz`, "/zzz/", "1 problems", "the first is mb1ic3ih8oc4oh6kh3"],
  ["bench mb1ic3hi8oc4kh3", '"hi"', "at column 7", '"ih"?'],
];

/** Of options and files that do not go together. */
const TOGETHER: readonly Mistake[] = [
  ["conv --input x.npy", "fwd", "--filter", "or --problem"],
  ["conv --op bwd-data --input x.npy --filter w.npy", "bwd-data", "--grad-output", "--problem"],
  ["conv --input none.npy --filter w.npy", "none.npy", "Cannot read", "there is no such file"],
  ["conv --input x.npy --filter w.npy --output x.npy", "x.npy", "it is an input", "--force"],
  ["conv --input x.npy --filter w.npy --output y.png", "y.png", "Cannot write", "write y.npy"],
  ["conv --input a.npz:x --filter w.npy --output a.npz:x", "a.npz:x", "member x", "--force"],
  ["conv --input x.npy --filter w.npy --output a.npz", "a.npz", "Cannot write", "a.npz:y"],
  ["conv --input *.npy --filter w.npy --output a.npz:y", "a.npz:y", "--output", "a folder"],
  ["transform F(2,3) --output a.npz", "a.npz", "it is not empty", "--force"],
  ["conv --input x.npy --filter w.npy --input-size 8,8", "8,8", "--input-size", "bwd-data"],
  ["conv --input x.npy --filter w.npy --filter-size 3", "3", "--filter-size", "bwd-filter"],
  ["conv --input x.npy --filter w.npy --groups 2", "2 groups", "3 input", "do not divide"],
  ["conv --input x.npy --filter w.npy --bias b.npy", "[3]", "bias", "expected [4]"],
  ["conv --input x.npy --filter w.npy --stride 2,2,2", "[2, 2, 2]", "stride", "expected 1 or 2"],
  ["conv --input last.npy --filter w.npy", "input has 8", "filter has 3", "--layout nhwc"],
  ["conv --input x.npy --filter lastw.npy", "filter has 5", "input", "--filter-layout krsc"],
  ["conv --input five.npy --filter w.npy", "input has 5", "filter has 3", "groups = 1"],
  [`conv --problem ${CASE} --stride 2`, "--stride", "--problem says it all", "must go"],
  [`plan --problem ${CASE} --algorithm direct --policy small`, "--policy", "direct", "implicit"],
  [`plan --problem ${CASE} --algorithm direct --splits 4`, "--splits", "direct", "implicit-gemm"],
  [`plan --problem ${CASE} --algorithm im2col --pair a8n3r6`, "--pair", "im2col", "winrs"],
  [`plan --problem ${CASE} --limits limits.json`, "limits.json", "Cannot read", "a JSON object"],
  [`plan --problem ${CASE} --limits none.json`, "none.json", "Cannot read", "no such file"],
  ["conv --problem g2mb1ic3ih8oc4kh3", "2 groups", "3 input", "do not divide"],
  ["bench", "no problem", "Cannot bench", "--suite or --problem"],
  [`bench ${CASE} --resume`, "--resume", "Cannot resume", "--jsonl"],
  ["bench --suite suite.txt", '"hi"', "suite.txt:2:", '"ih"?'],
  [`bench ${CASE} --filter a --match b`, "--filter", "--match", "give one"],
  ["report x.npy", "x.npy", "Cannot read", "no text"],
];

/** All of them. */
export const MISTAKES: readonly Mistake[] = [...WORDS, ...VALUES, ...TOGETHER];
