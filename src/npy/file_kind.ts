const KIND_BYTES = 512;

const PICTURE = "save its pixels by np.save(name, np.asarray(picture))";
const PICKLE = "load it in Python and np.save its arrays, or safetensors.torch.save_file them";

/** First bytes of files that are taken for tensors, what such a file is, and what to do with it. */
const KINDS: readonly (readonly [start: RegExp, kind: string, next: string])[] = [
  [/^\x89PNG\r\n/, "a PNG picture", PICTURE],
  [/^\xff\xd8\xff/, "a JPEG picture", PICTURE],
  [/^GIF8[79]a/, "a GIF picture", PICTURE],
  [/^BM.{4}\0{4}/s, "a BMP picture", PICTURE],
  [/^(II\*\0|MM\0\*)/, "a TIFF picture", PICTURE],
  [/^RIFF.{4}WEBP/s, "a WebP picture", PICTURE],
  [/^\x89HDF\r\n/, "an HDF5 file", "np.save its data sets, as h5py reads them"],
  [/^MATLAB \d/, "a MATLAB file", "np.save its arrays, as scipy.io.loadmat reads them"],
  // Protocols 2 to 5.
  [/^\x80[\cB-\cE]/, "a pickle, such as older .pt files of PyTorch", PICKLE],
  // Its method, deflate, is 8, the backspace.
  [/^\p{Cc}\x8b[\b]/u, "a gzip file", "unpack it by gunzip"],
  [/^version https:\/\/git-lfs/, "a pointer of Git LFS", "git lfs pull gets the file"],
  [
    /^[\t\n\r\x20-\x7e]+$/,
    "text",
    "np.save(name, np.loadtxt(text)) where it is of numbers",
  ],
];

/** `a PNG picture: save its pixels …`: what the first bytes of a file are and what to do with it; undefined where nothing tells. */
export function fileKind(bytes: Uint8Array): string | undefined {
  const start = Array.from(bytes.subarray(0, KIND_BYTES), (byte) => String.fromCharCode(byte));
  const found = KINDS.find(([pattern]) => pattern.test(start.join("")));
  return found && `${found[1]}: ${found[2]}`;
}
