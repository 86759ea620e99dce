import assert from "#assert";
import { fileURLToPath } from "node:url";
import { EXIT } from "../errors.ts";
import { temporaryDirectory } from "../../tests/cli.ts";
import { succeeds, wgconvHere } from "../../tests/support/in_process.ts";
import { OWN_SUITES, readGemmSuite, readSuite, suiteSubject } from "./suite_files.ts";

const FOLDER = new URL("../../bench/suites/", import.meta.url);

Deno.test("the program brings every file of bench/suites along, with a line of what it holds", () => {
  const files = [...Deno.readDirSync(FOLDER)].map(({ name }) => name).sort();
  assert.deepEqual(OWN_SUITES.map(({ name }) => `${name}.txt`).sort(), files);
  for (const suite of OWN_SUITES) {
    const said = suiteSubject(suite);
    assert.ok(said.length > 20 && said.length < 100, `${suite.name}: ${said}`);
    const file = new URL(`${suite.name}.txt`, FOLDER);
    assert.equal(suite.text, Deno.readTextFileSync(file));
    const onProduct = () => {};
    const read = (path: string) =>
      suite.of === "products" ? readGemmSuite(path) : readSuite(path, { onProduct });
    assert.deepEqual(read(suite.name), read(fileURLToPath(file)));
  }
});

Deno.test("suites of exported networks say the commands that made them, and each problem once", () => {
  const exported = Deno.readTextFileSync(new URL("../export_networks.py", FOLDER));
  const networks = [...exported.matchAll(/^ {4}"(\w+)": \(/gm)].map(([, name]) => name!);
  assert.equal(networks.length, 8);
  for (const network of networks) {
    const { text } = OWN_SUITES.find(({ name }) => name === network)!;
    const [, made] = text.split("\n");
    const command = `python3 bench/export_networks.py ${network}; wgconv layers ${network}.onnx`;
    assert.match(made!, new RegExp(`^# ${command} --batch \\d+$`));
    const lines = text.split("\n").filter((line) => /^[gm\d]/.test(line));
    const { size } = new Set(lines.map((line) => line.replace(/n"[^"]*"$/, "")));
    assert.equal(`${size}`, / of (\d+) sizes/.exec(text)?.[1]);
  }
});

Deno.test("what is published, and what is bundled, holds the suites", () => {
  const config = JSON.parse(Deno.readTextFileSync(new URL("../../deno.json", import.meta.url)));
  assert.ok(config.publish.include.includes("bench/suites"));
});

Deno.test("a file comes before a suite of the program's of its name, beside a suite too", () => {
  using folder = temporaryDirectory();
  const at = (name: string) => `${folder.path}/${name}`;
  Deno.writeTextFileSync(at("all"), "--batch=vgg16 --batch=im2win12");
  const files: string[] = [];
  const onFile = (path: string) => void files.push(path);
  assert.equal(readSuite(at("all"), { onFile }).length, 9 + 12);
  assert.deepEqual(files, [at("all")]);
  Deno.writeTextFileSync(at("vgg16"), "mb1ic1ih3oc1kh3");
  assert.equal(readSuite(at("all")).length, 1 + 12);
});

Deno.test("unknown suites are told with the one that was meant, and suites of products apart", () => {
  const refused: [read: () => unknown, name: string, message: RegExp][] = [
    [
      () => readSuite("resnet3x"),
      "NotFound",
      /: there is no such file, did you mean "resnet3x3"\?$/,
    ],
    [() => readSuite("no/such/vgg16.txt"), "NotFound", /vgg16\.txt: .*, did you mean "vgg16"\?$/],
    [
      () => readSuite("layers"),
      "NotFound",
      /, and no suite of that name: there are resnet3x3, vgg/,
    ],
    [() => readSuite("my.txt"), "NotFound", /^Cannot read my\.txt: there is no such file$/],
    [() => readGemmSuite("gem"), "NotFound", /, did you mean "gemm"\?$/],
    [
      () => readSuite("gemm"),
      "TypeError",
      /it is a suite of products, wgconv gemm --suite gemm run/,
    ],
    [
      () => readGemmSuite("vgg16"),
      "TypeError",
      /suite of convolutions, wgconv bench --suite vgg16/,
    ],
  ];
  for (const [read, name, message] of refused) assert.throws(read, { name, message });
});

Deno.test("bench --list-suites names each with a line, --json as records", async () => {
  const { stdout } = await succeeds(["bench", "--list-suites"]);
  const [heading, ...lines] = stdout.trimEnd().split("\n");
  assert.match(heading!, /^suite +command +problems +what$/);
  assert.deepEqual(lines.map((line) => line.split(" ")[0]), OWN_SUITES.map(({ name }) => name));
  assert.match(stdout, /^resnet3x3 +bench +16 {2}The 3x3 layers of ResNet, batch 32 to 128$/m);
  assert.ok(lines.every((line) => line.length <= 100), stdout);
  const json = await wgconvHere(["bench", "--list-suites", "--json"]);
  assert.deepEqual(
    JSON.parse(json.stdout).map(({ name }: { name: string }) => name),
    OWN_SUITES.map(({ name }) => name),
  );
});

Deno.test("commands take suites by name", async () => {
  for (const command of ["bench", "check", "tune"]) {
    const args = [command, "--suite", "resnet3x"];
    const { code, stderr } = await wgconvHere(args);
    assert.deepEqual([code, /did you mean "resnet3x3"/.test(stderr)], [EXIT.usage, true], stderr);
  }
  const none = await wgconvHere(["bench", "--suite", "resnet3x3", "--match", "zzz"]);
  assert.match(none.stderr, /matches none of 16 problems/);
  const word = await wgconvHere(["bench", "vgg16"]);
  assert.match(word.stderr, /vgg16 is a suite, did you mean --suite vgg16\?/);
});
