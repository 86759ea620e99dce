import assert from "#assert";
import { fileKind } from "./header.ts";

Deno.test("fileKind() tells files that are taken for tensors by their first bytes", () => {
  const kinds: readonly (readonly [start: string, kind: RegExp])[] = [
    ["\x89PNG\r\n\x1a\n\0", /^a PNG picture: .*np\.save/],
    ["\xff\xd8\xff\xe0\0", /^a JPEG picture: .*np\.save/],
    ["GIF89a\x01\0", /^a GIF picture: .*np\.save/],
    ["RIFF\x10\0\0\0WEBPVP8 ", /^a WebP picture: .*np\.save/],
    ["\x89HDF\r\n\x1a\n\0", /^an HDF5 file: .*h5py/],
    ["\x80\x04\x95\0", /^a pickle, .*: .*np\.save/],
    ["\x1f\x8b\x08\0", /^a gzip file: .*gunzip/],
    ["version https://git-lfs.github.com/spec/v1\n", /^a pointer of Git LFS: git lfs pull/],
    ["1.0, 2.5\n3, 4\n", /^text: .*np\.loadtxt/],
  ];
  for (const [start, kind] of kinds) {
    assert.match(fileKind(Uint8Array.from(start, (one) => one.charCodeAt(0))) ?? "none", kind);
  }
  for (const bytes of [[0, 0, 128, 63], [0x80, 0x3f, 0, 0], [0xff, 0xff]]) {
    assert.equal(fileKind(Uint8Array.from(bytes)), undefined);
  }
});
