"""Reads wgconv's suite files: convolutions by descriptors, and products by their sizes.

    python3 bench/peers/suite.py conv|gemm SUITE...    prints each problem as a line of JSON
"""
import dataclasses
import itertools
import json
import math
import os
import re
import sys

AXES = "dhw"
#: Input, filter, output, stride, padding, dilation.
LETTERS = "ikospd"
KEYS = {"g", "mb", "ic", "oc", *(letter + axis for letter in LETTERS for axis in AXES)}


@dataclasses.dataclass(frozen=True)
class Conv:
    """A convolution; sizes have an entry an axis, the outermost first. A dilation of 1 is none."""

    batch: int
    groups: int
    in_channels: int
    out_channels: int
    input: tuple
    filter: tuple
    output: tuple
    stride: tuple
    begin: tuple
    end: tuple
    dilation: tuple
    name: str = ""

    @property
    def flops(self):
        """Of the direct algorithm, two a multiply-add."""
        taps = self.in_channels // self.groups * math.prod(self.filter)
        return 2 * self.batch * self.out_channels * math.prod(self.output) * taps

    @property
    def descriptor(self):
        """What wgconv reads back, every axis said in full."""
        axes = AXES[3 - len(self.input):]
        sizes = (self.input, self.filter, self.output, self.stride, self.begin,
                 [d - 1 for d in self.dilation])
        said = "".join(letter + axis + str(values[at]) for letter, values in zip(LETTERS, sizes)
                       for at, axis in enumerate(axes))
        name = f'n"{self.name}"' if self.name else ""
        return (f"g{self.groups}mb{self.batch}ic{self.in_channels}oc{self.out_channels}"
                f"{said}{name}")


@dataclasses.dataclass(frozen=True)
class Product:
    """op(A) of m x k times op(B) of k x n, a batch of them; a transpose says how an operand is stored."""

    m: int
    n: int
    k: int
    transpose: str = "nn"
    batch: int = 1
    name: str = ""

    @property
    def flops(self):
        return 2 * self.batch * self.m * self.n * self.k

    @property
    def descriptor(self):
        name = f' n"{self.name}"' if self.name else ""
        return f"{self.m} {self.n} {self.k} {' '.join(self.transpose)} x{self.batch}{name}"


def read_convs(path, match="", seen=()):
    """Convolutions of a file and of those that it includes (--batch=FILE), as benchdnn reads them."""
    if path in seen:
        raise SystemExit(f"Cannot read {path}: it includes itself")
    found, batch, pattern = [], 0, ""
    with open(path, encoding="utf-8-sig") as file:
        text = file.read()
    for word in _words(text):
        option, _, value = word.partition("=")
        if option == "--batch":
            inner = os.path.join(os.path.dirname(path), value)
            found += read_convs(inner, seen=(*seen, path))
        elif option == "--mb":
            batch = int(value)
        elif option == "--match":
            pattern = value.strip("'\"")
        elif option == "--reset":
            batch, pattern = 0, ""
        elif option in ("--dir", "--dt", "--cfg", "--stag", "--dtag"):
            continue  # Operations, types and layouts are the program's own options.
        else:
            try:
                made = parse_conv(word)
            except ValueError as error:
                raise SystemExit(f"Cannot read {path}: {error} in {word}") from None
            made = [dataclasses.replace(conv, batch=batch or conv.batch) for conv in made]
            found += [conv for conv in made if re.search(pattern, conv.descriptor)]
    return [conv for conv in found if re.search(match, conv.descriptor)]


def _words(text):
    """Words of lines, without comments and products; quotes hold names together, a backslash glues the next word."""
    words = []
    for line in text.splitlines():
        if re.match(r"\s*\d+\s+\d+\s+\d", line):
            continue
        for word in re.findall(r'#.*|(?:[^\s"#]|"[^"]*"?)+', line):
            if word.startswith("#"):
                break
            words.append(word)
    return re.sub(r"\n?\\(\n|$)", "", "\n".join(words)).splitlines()


def parse_conv(text):
    """Convolutions of a descriptor; its lists and ranges make several. Raises ValueError."""
    form = re.fullmatch(r"((?:_|(?!n)[a-z]+[\d:,]+)*)(?:n(.+))?", text)
    if form is None:
        raise ValueError("no descriptor")
    entries = re.findall(r"([a-z]+)([\d:,]+)", form[1])
    keys = [key for key, _ in entries]
    if len(set(keys)) < len(keys) or not set(keys) <= KEYS:
        raise ValueError("a key that is unknown or twice there")
    name = re.sub(r'^"(.*)"', r"\1", form[2] or "")
    lists = [[value for item in values.split(",") for value in _range(item)] for _, values in entries]
    return [_conv(dict(zip(keys, values)), name) for values in itertools.product(*lists)]


def _range(item):
    first, last, step = ([int(part) for part in item.split(":")] + [None, None])[:3]
    return range(first, (first if last is None else last) + 1, step or 1)


def _conv(values, name):
    """What wgconv's parser makes of them (src/problem/descriptor.ts says how sizes are copied)."""
    said = [{letter: values[letter + axis] for letter in LETTERS if letter + axis in values}
            for axis in AXES]
    said = said[next((at for at, axis in enumerate(said) if axis), len(said)):]
    # An outer axis takes what it lacks from the first inner one that has it, an inner one from its outer neighbour.
    outer = {}
    for axis in reversed(said):
        outer = {**outer, **axis}
    axes = []
    for axis in said:
        outer = axis if "i" in axis and "k" in axis else {**outer, **axis}
        axes.append(outer)
    if not axes or "i" not in axes[0] or "k" not in axes[0] or not {"ic", "oc"} <= set(values):
        raise ValueError("sizes are missing")
    sizes = [_axis(**axis) for axis in axes]
    columns = [tuple(column) for column in zip(*sizes)]
    return Conv(values.get("mb", 2), values.get("g", 1), values["ic"], values["oc"], *columns, name)


def _axis(i, k, o=None, s=1, p=None, d=0):
    """Input, filter, output, stride, zeros before and after, dilation of an axis."""
    filter = (k - 1) * (d + 1) + 1

    def output(begin, end):
        return (i + begin + end - filter) // s + 1

    if o is None:
        begin = end = p or 0
    else:
        total = max(0, (o - 1) * s - i + filter)
        begin = total // 2 if p is None else p
        # The same on both sides wherever that gives the output size.
        end = begin if output(begin, begin) == o else max(0, total - begin)
    return i, k, output(begin, end) if o is None else o, s, begin, end, d + 1


def read_products(path, match=""):
    """Products of a file, `m n k [ta tb] [xB] [n"name"]` a line; convolutions that stand among them are left out."""
    found = []
    with open(path, encoding="utf-8-sig") as file:
        for number, line in enumerate(file, 1):
            text = line.split("#")[0].strip()
            if not text[:1].isdigit():
                continue
            form = re.fullmatch(r'(\d+)\s+(\d+)\s+(\d+)(?:\s+([nt])\s+([nt]))?(?:\s+x(\d+))?(?:\s+n"([^"]*)")?', text)
            if form is None:
                raise SystemExit(f"Cannot read {path}:{number}: expected m n k [ta tb], found {text}")
            m, n, k, ta, tb, batch, name = form.groups()
            found.append(Product(int(m), int(n), int(k), (ta or "n") + (tb or "n"), int(batch or 1), name or ""))
    return [product for product in found if re.search(match, product.descriptor)]


def main():
    kind, *paths = sys.argv[1:]
    for path in paths:
        for problem in (read_products if kind == "gemm" else read_convs)(path):
            print(json.dumps({"problem": problem.descriptor, "flops": problem.flops}))


if __name__ == "__main__":
    main()
