/** The steps of the Containerfile, in a Debian of its own that debootstrap makes: no engine is needed. */
import assert from "#assert";
import { dirname, join } from "node:path";
import { VERSION } from "../../mod.ts";
import { ROOT, run, temporaryDirectory } from "../cli.ts";

interface Step {
  readonly word: string;
  readonly rest: string;
}

/** The instructions of a Containerfile, joined where a line goes on. */
function stepsOf(text: string): Step[] {
  return text.replaceAll(/^#.*\n/gm, "").replaceAll(/\\\n/g, "").split("\n").flatMap((line) => {
    const [, word, rest] = /^([A-Z]+) (.+)$/.exec(line) ?? [];
    return word === undefined ? [] : [{ word, rest: rest! }];
  });
}

const SECONDS = 900;

async function sh(script: string, ...args: string[]) {
  return await run("sh", ["-ec", script, "sh", ...args], { deadline: SECONDS });
}

/** A Debian in a folder, whose apt reads the mirror and the proxy of this machine; nothing where it cannot be fetched. */
async function debian(suite: string, root: string): Promise<boolean> {
  const { code } = await sh(
    `mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
      sed -n -e 's/^URIs: *\\([^ ]*\\).*/\\1/p' -e 's/^deb \\(\\[[^]]*\\] \\)\\{0,1\\}\\([^ ]*\\) .*/\\2/p' |
      grep -v security | head -n 1)
    debootstrap --variant=minbase "$1" "$2" "$mirror" >&2
    for file in /etc/apt/apt.conf.d/*; do
      if grep -qi -e proxy -e check-valid "$file"; then cp "$file" "$2/etc/apt/apt.conf.d/"; fi
    done
    cp /etc/resolv.conf "$2/etc/"
    cp /etc/ssl/certs/ca-certificates.crt "$2/etc/this-machines.crt"`,
    ...[suite, root],
  );
  return code === 0;
}

/** Runs a command within the root, with mounts that end with it. */
async function within(
  root: string,
  command: readonly string[],
  { env = {}, cwd = "/", user = "0:0" }: {
    readonly env?: Readonly<Record<string, string>>;
    readonly cwd?: string;
    readonly user?: string;
  } = {},
) {
  const variables = Object.entries({
    HOME: "/root",
    PATH: "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    DEBIAN_FRONTEND: "noninteractive",
    // A proxy of this machine may have a certificate of its own.
    SSL_CERT_FILE: "/etc/this-machines.crt",
    DENO_TLS_CA_STORE: "system",
    ...env,
  }).map(([name, value]) => `${name}=${value}`);
  return await run("unshare", [
    ...["--mount", "sh", "-ec"],
    `root=$1 user=$2 cwd=$3
    shift 3
    mount -t proc proc "$root/proc"
    mount --bind /dev "$root/dev"
    exec chroot --userspec="$user" "$root" env -i -C "$cwd" "$@"`,
    ...["sh", root, user, cwd, ...variables, ...command],
  ], { deadline: SECONDS });
}

const able = Deno.uid() === 0 &&
  (await run("sh", ["-c", "command -v debootstrap && unshare --mount true"])).code === 0;

Deno.test({
  name: "the steps of the Containerfile make a system that checks, judges and computes",
  ignore: !able,
  async fn(t) {
    using temporary = temporaryDirectory();
    const root = join(temporary.path, "root");
    const env: Record<string, string> = {};
    let cwd = "/";
    let entry: string[] = [];
    for (const { word, rest } of stepsOf(await Deno.readTextFile(`${ROOT}Containerfile`))) {
      switch (word) {
        case "FROM": {
          const made = await debian(/debian:(\w+)/.exec(rest)![1]!, root);
          if (!made) return console.log("left out: debootstrap cannot fetch a Debian here");
          break;
        }
        case "ENV": {
          const [name, value] = rest.split("=");
          env[name!] = value!;
          break;
        }
        case "COPY": {
          const [from, to] = rest.split(" ").slice(-2) as [string, string];
          await Deno.mkdir(join(root, dirname(to)), { recursive: true });
          if (rest.startsWith("--from=docker.io/denoland/deno")) {
            assert.ok(rest.includes(`:bin-${Deno.version.deno} `), rest);
            await Deno.copyFile(await Deno.realPath(Deno.execPath()), join(root, to));
          } else await copyContext(from, join(root, to));
          break;
        }
        case "RUN": {
          const { code, stderr } = await within(root, ["sh", "-c", rest], { env });
          assert.equal(code, 0, `${rest}: ${stderr.slice(-2000)}`);
          break;
        }
        case "WORKDIR":
          cwd = rest;
          await Deno.mkdir(join(root, rest), { recursive: true });
          break;
        case "ENTRYPOINT":
          entry = JSON.parse(rest);
          break;
        default:
          assert.fail(`${word} is not tested`);
      }
    }
    await Deno.chmod(join(root, cwd), 0o777);
    const wgconv = (args: string[], user?: string) =>
      within(root, [...entry, ...args], { env, cwd, ...user === undefined ? {} : { user } });
    await t.step("it finds the driver, and is of this version", async () => {
      assert.equal((await wgconv(["--version"])).stdout, `${VERSION}\n`);
      assert.match((await wgconv(["devices"])).stdout, /llvmpipe/);
    });
    await t.step("it computes, checks and judges, offline and without privileges", async () => {
      const user = "1000:1000";
      const words = (text: string) => text.split(" ");
      const run = async (text: string) => {
        const found = await wgconv(words(text), user);
        return { ...found, said: found.stdout + found.stderr };
      };
      for (
        const text of [
          "tensor make x.npy --shape 1,3,8,8 --fill uniform11 --seed 1",
          "tensor make w.npy --shape 4,3,3,3 --fill normal --seed 2",
          "conv --input x.npy --filter w.npy --output y.npy",
          "verify --input x.npy --filter w.npy --output y.npy",
          "check --match pointwise --op fwd --layout nchw --algorithm direct",
        ]
      ) {
        const { code, said } = await run(text);
        assert.equal(code, 0, `${text}: ${said}`);
      }
      await run("tensor make wrong.npy --shape 1,4,6,6 --fill normal --seed 3");
      const wrong = "verify --input x.npy --filter w.npy --output wrong.npy";
      assert.equal((await run(wrong)).code, 1);
    });
  },
});

/** What a build would copy: .containerignore lists what stays. */
async function copyContext(from: string, to: string): Promise<void> {
  const ignore = await Deno.readTextFile(`${ROOT}.containerignore`);
  const kept = ignore.split("\n").filter((line) => line.startsWith("!")).map((line) =>
    line.slice(1)
  );
  await Deno.mkdir(to, { recursive: true });
  const { code, stderr } = await sh(
    'cd "$1"; shift; tar cf - "$@" | tar xf - -C "$0"'.replace("$0", to),
    ...[join(ROOT, from), ...kept],
  );
  assert.equal(code, 0, stderr);
}
