"""Lists the convolutions and products of a PyTorch model as a suite for `wgconv bench --suite`.

    from wgconv_torch import record, suite
    print(suite(model, torch.randn(8, 3, 224, 224)))      # modules: Conv*, ConvTranspose*, Linear

    with record("resnet50") as layers:                    # what really runs, gradients and attention too
        model(x).sum().backward()
    print(layers.text())
"""

import functools
import math
import re

AXES = ("d", "h", "w")
DIRECTIONS = {"fwd": "FWD_D", "bwd-data": "BWD_D", "bwd-filter": "BWD_W"}
TYPES = {"float32": "f32", "float16": "f16", "int8": "s8", "uint8": "s8"}


def conv_line(batch, channels, outputs, groups, sizes, filters, results, stride, padding, dilation):
    """A convolution as a oneDNN benchdnn descriptor; `dilation` is PyTorch's, 1 for none."""
    rank = len(sizes)

    def family(letter, values, usual=None):
        if usual is not None and all(value == usual for value in values):
            return ""
        return "".join(f"{letter}{axis}{value}" for axis, value in zip(AXES[3 - rank:], values))

    return (
        ("" if groups == 1 else f"g{groups}")
        + f"mb{batch}ic{channels}{family('i', sizes)}oc{outputs}{family('o', results)}"
        + family("k", filters)
        + family("s", stride, 1)
        + family("p", padding)
        + family("d", [step - 1 for step in dilation], 0)
    )


def product_line(m, n, k, transpose="nn", batch=1):
    """A product of op(A), m x k, and op(B), k x n; `transpose` says how both are stored."""
    stored = "" if transpose == "nn" and batch == 1 else f" {transpose[0]} {transpose[1]}"
    return f"{m} {n} {k}{stored}" + ("" if batch == 1 else f" x{batch}")


class Layers:
    """Layers in their order, and what is no layer of a suite."""

    def __init__(self, network="model"):
        self.network = re.sub(r"[^\w.-]|_", "-", network)
        self.groups = {}
        self.left = {}
        self.calls = {}

    def add(self, line, name, ops=(), dtype="float32"):
        self.groups.setdefault((line, tuple(ops), dtype), []).append(name)

    def skip(self, what):
        self.left[what] = self.left.get(what, 0) + 1

    def number(self, kind):
        """A name for the next call of an operation."""
        self.calls[kind] = self.calls.get(kind, 0) + 1
        return f"{kind}_{self.calls[kind]}"

    def text(self):
        count = sum(len(names) for names in self.groups.values())
        lines = [f"# Layers of {self.network}: {count} layers of {len(self.groups)} sizes"]
        lines += [f"# not listed: {what} ({times} calls)" for what, times in self.left.items()]
        direction, types = "FWD_D", "f32"
        for (line, ops, dtype), names in self.groups.items():
            if ops and (own := ",".join(DIRECTIONS[op] for op in ops)) != direction:
                direction = own
                lines.append(f"--dir={direction}")
            if (own := TYPES.get(dtype, "f32")) != types:
                types = own
                lines.append(f"--dt={types}")
            if dtype not in TYPES:
                lines.append(f"# {dtype}, run as f32")
            if len(names) > 1:
                lines.append("# " + ", ".join(names))
            times = "" if len(names) == 1 else f"*{len(names)}"
            name = f'n"{self.network}_{re.sub(r"[^A-Za-z0-9_.-]", "-", names[0])[:60]}{times}"'
            lines.append(line + ("" if ops else " ") + name)
        return "\n".join(lines)


def add_conv(layers, name, ops, dtype, x, w, y, stride, padding, dilation, groups, transposed):
    """Adds a convolution by its tensors' shapes; a transposed one is the gradient of its result."""
    steps = [list(one) * (len(w) - 2 if len(one) == 1 else 1) for one in (stride, padding, dilation)]
    if transposed:
        x, y = y, x
    layers.add(conv_line(x[0], x[1], y[1], groups, x[2:], w[2:], y[2:], *steps), name, ops, dtype)


def type_name(tensor):
    return str(tensor.dtype).split(".")[-1]


def suite(model, *inputs, network=None, training=False, **named):
    """The suite of the modules that a call of the model runs; `training` adds their gradients."""
    import torch
    from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd

    layers = Layers(network or type(model).__name__)

    def conv(name, module, args, result):
        x, y = args[0], result
        x, y = ([1, *t.shape] if t.dim() == module.weight.dim() - 1 else list(t.shape) for t in (x, y))
        padding = [0] * (module.weight.dim() - 2)
        if module.padding == "same":
            padding = [d * (k - 1) // 2 for d, k in zip(module.dilation, module.kernel_size)]
        elif module.padding != "valid" and getattr(module, "padding_mode", "zeros") == "zeros":
            padding = module.padding
        elif module.padding != "valid":
            x = x[:2] + [size + 2 * p for size, p in zip(x[2:], module.padding)]
        transposed = isinstance(module, _ConvTransposeNd)
        forward, backward = ("bwd-data", "fwd") if transposed else ("fwd", "bwd-data")
        # The network's input has no gradient.
        gradients = [*([backward] if layers.groups else []), "bwd-filter"] if training else []
        add_conv(
            layers, name, [forward, *gradients], type_name(module.weight), x, list(module.weight.shape), y,
            module.stride, padding, module.dilation, module.groups, transposed,
        )

    def linear(name, module, args, result):
        m, n, k = args[0].numel() // module.in_features, module.out_features, module.in_features
        gradients = [("dA", (m, k, n))] * bool(layers.groups) + [("dB", (n, k, m, "tn"))]
        layers.add(product_line(m, n, k, "nt"), name, dtype=type_name(module.weight))
        for of, sizes in gradients if training else ():
            layers.add(product_line(*sizes), f"{name}.{of}", dtype=type_name(module.weight))

    hooks = []
    for name, module in model.named_modules():
        kind = conv if isinstance(module, _ConvNd) else linear if isinstance(module, torch.nn.Linear) else None
        if kind is not None:
            hooks.append(module.register_forward_hook(functools.partial(kind, name or "model")))
    try:
        with torch.no_grad():
            model(*inputs, **named)
    finally:
        for hook in hooks:
            hook.remove()
    return layers.text()


def record(network="model"):
    """A context manager whose Layers are all convolutions and products that run within it."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    aten = torch.ops.aten
    products = {aten.mm: (0, 1), aten.addmm: (1, 2), aten.bmm: (0, 1), aten.baddbmm: (1, 2)}

    def letter(matrix):
        rows, columns = matrix.stride()[-2:]
        return "t" if rows == 1 and columns != 1 and columns >= matrix.shape[-2] else "n"

    class Recorder(TorchDispatchMode, Layers):
        def __init__(self):
            TorchDispatchMode.__init__(self)
            Layers.__init__(self, network)

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            packet = func.overloadpacket
            if packet not in products and packet not in (aten.convolution, aten.convolution_backward):
                # linear and matmul, which inference_mode hands on whole.
                with self:
                    result = func.decompose(*args, **kwargs)
                if result is not NotImplemented:
                    return result
            result = func(*args, **kwargs)
            if packet in products:
                a, b = (args[place] for place in products[packet])
                batch = math.prod(a.shape[:-2])
                line = product_line(a.shape[-2], b.shape[-1], a.shape[-1], letter(a) + letter(b), batch)
                self.add(line, self.number(packet.__name__), dtype=type_name(a))
            elif packet is aten.convolution:
                x, w, _, stride, padding, dilation, transposed, _, groups = args
                self.convolution(("bwd-data" if transposed else "fwd",), x, w, result, args[3:], groups)
            elif packet is aten.convolution_backward:
                grad, x, w, _, *rest, _, groups, mask = args
                gradients = ("fwd" if rest[3] else "bwd-data", "bwd-filter")
                ops = [op for op, wanted in zip(gradients, mask) if wanted]
                if ops:
                    self.convolution(ops, x, w, grad, rest, groups)
            elif re.search(r"attention|encoder_layer|lstm|gru|rnn|quantized|_mm", packet.__name__):
                self.skip(packet.__name__)
            return result

        def convolution(self, ops, x, w, y, rest, groups):
            stride, padding, dilation, transposed = rest[:4]
            shapes = [list(tensor.shape) for tensor in (x, w, y)]
            name = self.number("conv" if len(ops) == 1 and ops[0] == "fwd" else "conv_grad")
            add_conv(self, name, ops, type_name(w), *shapes, stride, padding, dilation, groups, transposed)

    return Recorder()
