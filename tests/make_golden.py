"""
Makes fixtures/conv_pytorch_f64.zip, the convolutions that every algorithm is held against.

    /usr/bin/python3 tests/make_golden.py fixtures/conv_pytorch_f64.zip
    python3 tests/make_golden.py --check fixtures/conv_pytorch_f64.zip --by numpy

Of each case x, w and dy are seeded values in float32 (NumPy's default_rng, in this order), and y, dx and dw their
convolution and its gradients in float64, by PyTorch on the CPU. --check holds a file's against those that are
computed anew, by PyTorch or by NumPy: operands to the bit, results to 1e-14 of the largest, since libraries sum in
other orders.
"""
import argparse
import io
import json
import sys
import zipfile

import numpy as np

SEED = 20261120
TOLERANCE = 1e-14

#: name; N C H W; K R S; stride; padding; dilation; groups; how operands are spread.
CASES = [
    ("resnet_conv2_small", (2, 16, 14, 14), (32, 3, 3), (1, 1), (1, 1), (1, 1), 1, "uniform"),
    ("even_filter_2x2", (2, 8, 9, 12), (16, 2, 2), (1, 1), (0, 0), (1, 1), 1, "uniform"),
    ("filter_4x4", (1, 12, 13, 15), (20, 4, 4), (1, 1), (1, 2), (1, 1), 1, "uniform"),
    ("filter_5x5", (2, 8, 14, 10), (24, 5, 5), (1, 1), (2, 2), (1, 1), 1, "uniform"),
    ("filter_6x6", (1, 8, 17, 18), (8, 6, 6), (1, 1), (2, 3), (1, 1), 1, "uniform"),
    ("filter_7x7", (2, 4, 15, 16), (8, 7, 7), (1, 1), (3, 3), (1, 1), 1, "uniform"),
    ("filter_8x8", (1, 4, 20, 17), (8, 8, 8), (1, 1), (3, 4), (1, 1), 1, "uniform"),
    ("filter_9x9", (2, 4, 18, 18), (8, 9, 9), (1, 1), (4, 4), (1, 1), 1, "uniform"),
    ("filter_1x7", (2, 8, 9, 21), (12, 1, 7), (1, 1), (0, 3), (1, 1), 1, "uniform"),
    ("filter_7x1", (2, 8, 21, 9), (12, 7, 1), (1, 1), (3, 0), (1, 1), 1, "uniform"),
    ("pointwise", (2, 33, 10, 11), (19, 1, 1), (1, 1), (0, 0), (1, 1), 1, "uniform"),
    ("stem_7x7_s2", (1, 3, 32, 30), (16, 7, 7), (2, 2), (3, 3), (1, 1), 1, "uniform"),
    ("alexnet_11x11_s4", (1, 3, 43, 47), (12, 11, 11), (4, 4), (0, 0), (1, 1), 1, "uniform"),
    ("stride2_3x3", (2, 16, 15, 13), (24, 3, 3), (2, 2), (1, 1), (1, 1), 1, "uniform"),
    ("stride_2x1", (1, 8, 12, 12), (8, 3, 3), (2, 1), (1, 1), (1, 1), 1, "uniform"),
    ("dilated_2", (1, 8, 17, 17), (8, 3, 3), (1, 1), (2, 2), (2, 2), 1, "uniform"),
    ("groups_4", (2, 16, 12, 12), (24, 3, 3), (1, 1), (1, 1), (1, 1), 4, "uniform"),
    ("depthwise", (2, 24, 14, 14), (24, 3, 3), (1, 1), (1, 1), (1, 1), 24, "uniform"),
    ("odd_channels", (3, 5, 7, 7), (7, 3, 3), (1, 1), (1, 1), (1, 1), 1, "uniform"),
    ("one_pixel_out", (2, 8, 3, 3), (8, 3, 3), (1, 1), (0, 0), (1, 1), 1, "uniform"),
    ("wide_pad", (1, 4, 5, 6), (4, 3, 3), (1, 1), (2, 2), (1, 1), 1, "uniform"),
    ("normal_3x3", (2, 32, 10, 10), (32, 3, 3), (1, 1), (1, 1), (1, 1), 1, "normal"),
]


def by_torch(x, w, dy, stride, padding, dilation, groups):
    """y, dx and dw in float64."""
    import torch

    x, w, dy = (torch.from_numpy(values).double() for values in (x, w, dy))
    options = (stride, padding, dilation, groups)
    return [values.numpy() for values in (
        torch.nn.functional.conv2d(x, w, None, *options),
        torch.nn.grad.conv2d_input(x.shape, w, dy, *options),
        torch.nn.grad.conv2d_weight(x, w.shape, dy, *options),
    )]


def by_numpy(x, w, dy, stride, padding, dilation, groups):
    """The same, tap by tap."""
    x, w, dy = (values.astype(np.float64) for values in (x, w, dy))
    (n, c, _, _), (k, _, r, s), (_, _, p, q) = x.shape, w.shape, dy.shape
    padded = np.pad(x, ((0, 0), (0, 0), *((zeros, zeros) for zeros in padding)))
    dx, y, dw = np.zeros_like(padded), np.zeros_like(dy), np.zeros_like(w)
    w, dw = (values.reshape(groups, k // groups, c // groups, r, s) for values in (w, dw))

    def grouped(values):
        return values.reshape(n, groups, -1, p, q)

    for i in range(r):
        for j in range(s):
            rows, columns = (slice(at * step, at * step + (count - 1) * skip + 1, skip) for at, step, skip, count in
                             zip((i, j), dilation, stride, (p, q)))
            seen = grouped(padded[:, :, rows, columns])
            tap = w[:, :, :, i, j]
            y += np.einsum("gkc,ngcpq->ngkpq", tap, seen).reshape(y.shape)
            dx[:, :, rows, columns] += np.einsum("gkc,ngkpq->ngcpq", tap, grouped(dy)).reshape(n, c, p, q)
            dw[:, :, :, i, j] = np.einsum("ngcpq,ngkpq->gkc", seen, grouped(dy))
    top, left = padding
    return [y, dx[:, :, top:top + x.shape[2], left:left + x.shape[3]], dw.reshape(k, c // groups, r, s)]


def make(compute):
    """Each case, as it is described and with its tensors by name."""
    rng = np.random.default_rng(SEED)
    for name, (n, c, h, width), (k, r, s), stride, padding, dilation, groups, spread in CASES:
        def draw(*shape):
            if spread == "uniform":
                return rng.random(shape, dtype=np.float32)
            return rng.standard_normal(shape).astype(np.float32)

        x, w = draw(n, c, h, width), draw(k, c // groups, r, s)
        output = [(size + 2 * zeros - (taps - 1) * skip - 1) // step + 1 for size, taps, step, zeros, skip in
                  zip((h, width), (r, s), stride, padding, dilation)]
        dy = draw(n, k, *output)
        y, dx, dw = compute(x, w, dy, stride, padding, dilation, groups)
        about = dict(name=name, N=n, C=c, H=h, W=width, K=k, R=r, S=s, stride=stride, pad=padding, dilation=dilation,
                     groups=groups, dist=spread, layout="nchw")
        yield about, dict(x=x, w=w, y=y, dy=dy, dx=dx, dw=dw)


def write(path, cases):
    """An archive whose bytes depend on what is in it alone."""
    with zipfile.ZipFile(path, "w") as archive:
        def add(name, data):
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED, 9)

        described = []
        for about, tensors in cases:
            described.append(about)
            for name, values in tensors.items():
                file = io.BytesIO()
                np.save(file, values)
                add(f"{about['name']}/{name}.npy", file.getvalue())
        add("cases.json", json.dumps(described, indent=1))


def check(path, cases):
    """What of an archive differs, as sentences."""
    archive = zipfile.ZipFile(path)
    described = json.loads(archive.read("cases.json"))
    wanted = []
    for about, tensors in cases:
        wanted.append(json.loads(json.dumps(about)))
        for name, values in tensors.items():
            file = f"{about['name']}/{name}.npy"
            found = np.load(io.BytesIO(archive.read(file)))
            if found.dtype != values.dtype or found.shape != values.shape:
                yield f"{file} is {found.dtype} {found.shape}, expected {values.dtype} {values.shape}"
            elif name in ("x", "w", "dy"):
                if not np.array_equal(found, values):
                    yield f"{file} has other values"
            elif (error := np.abs(found - values).max() / np.abs(values).max()) > TOLERANCE:
                yield f"{file} is off by {error:.1e} of the largest value"
    if described != wanted:
        yield "cases.json describes other cases"
    extra = len(archive.namelist()) - 6 * len(wanted) - 1
    if extra != 0:
        yield f"there are {extra} files too many"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("file", help="the archive")
    parser.add_argument("--check", action="store_true", help="compare with it, in place of writing it")
    parser.add_argument("--by", choices=["torch", "numpy"], default="torch", help="what computes the results")
    options = parser.parse_args()
    cases = make(by_torch if options.by == "torch" else by_numpy)
    if not options.check:
        return write(options.file, cases)
    wrong = list(check(options.file, cases))
    print("\n".join(wrong) or f"{options.file}: {len(CASES)} cases as they should be")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
