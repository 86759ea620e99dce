"""
Times cuDNN's convolutions through PyTorch: a record a case, for wgconv report and wgconv compare.

    python3 bench/peers/cudnn.py bench/suites/resnet3x3.txt > cudnn.jsonl
    python3 bench/peers/cudnn.py bench/suites/vgg16.txt --layout nhwc --dtype f16 > cudnn.jsonl
    wgconv compare cudnn.jsonl wgconv.jsonl

cudnn.benchmark picks the fastest algorithm; what PyTorch runs for depthwise convolutions is often its own. Without a GPU
the CPU's convolutions are timed, in f32. On stdout: JSON lines; exits with 1 where no case was timed.
"""
import math
import sys

import torch
import torch.nn.functional as F

from records import accuracy, arguments, measure, prepare, print_cases
from suite import read_convs

OPERATIONS = ["fwd", "bwd-data", "bwd-filter"]
#: Gradients of f16 are scaled, lest sums over a batch overflow.
LOSS_SCALE = 0.01
#: Filters' gradients of larger inputs are not held against float64, which would take too much memory.
MOST_CHECKED = 3e7


class Problem:
    """A convolution's tensors on a device; one axis is two of which the outer is 1, as PyTorch has it too."""

    def __init__(self, conv, dtype, layout, device):
        def sizes(values, one):
            return [one, *values] if len(values) == 1 else list(values)

        axes = max(2, len(conv.input))
        last = torch.channels_last if axes == 2 else torch.channels_last_3d

        def tensor(*shape):
            made = torch.rand(*shape, device=device).to(dtype)
            return made.contiguous(memory_format=last) if layout == "nhwc" else made

        self.x = tensor(conv.batch, conv.in_channels, *sizes(conv.input, 1))
        self.w = tensor(conv.out_channels, conv.in_channels // conv.groups, *sizes(conv.filter, 1))
        self.dy = tensor(conv.batch, conv.out_channels, *sizes(conv.output, 1))
        if dtype == torch.float16:
            self.dy *= LOSS_SCALE
        self.stride, self.dilation = sizes(conv.stride, 1), sizes(conv.dilation, 1)
        self.padding = sizes(conv.begin, 0)
        self.groups = conv.groups

    def compute(self, op, x=None, w=None, dy=None):
        """The result, of these tensors or of others of their kind."""
        x, w, dy = [own if other is None else other
                    for own, other in ((self.x, x), (self.w, w), (self.dy, dy))]
        if op == "fwd":
            conv = F.conv2d if x.dim() == 4 else F.conv3d
            return conv(x, w, None, self.stride, self.padding, self.dilation, self.groups)
        which = op == "bwd-data"
        return torch.ops.aten.convolution_backward(
            dy, x, w, None, self.stride, self.padding, self.dilation, False,
            [0] * (x.dim() - 2), self.groups, [which, not which, False])[0 if which else 1]

    def errors(self, op, result):
        """Of the first image, of filters' gradients of all; None where that is too much."""
        if op == "bwd-filter" and self.x.numel() > MOST_CHECKED:
            return None
        part = slice(None) if op == "bwd-filter" else slice(1)
        tensors = {"x": self.x[part].double(), "w": self.w.double(), "dy": self.dy[part].double()}
        return accuracy(result[part], self.compute(op, **tensors), result.numel())


def main():
    parser = arguments(__doc__, ["f32", "tf32", "f16", "bf16"])
    parser.add_argument("--op", default=",".join(OPERATIONS), help="some of " + ", ".join(OPERATIONS))
    parser.add_argument("--layout", choices=["nchw", "nhwc"], default="nchw")
    options = parser.parse_args()
    if not set(options.op.split(",")) <= set(OPERATIONS):
        parser.error(f"--op {options.op}: expected some of {', '.join(OPERATIONS)}")
    dtype = prepare(options)
    torch.backends.cudnn.benchmark = True
    version = torch.backends.cudnn.version()
    print_cases(options, "cudnn", f"cuDNN {version}" if version else "", cases(options, dtype))


def cases(options, dtype):
    """The operations of each problem; one problem's tensors at a time, since two may not fit."""
    fields = {"layout": options.layout}
    for path in options.suite:
        for conv in read_convs(path, options.match):
            if conv.begin != conv.end:
                print(f"left out: {conv.descriptor}: cuDNN has the same padding on both sides",
                      file=sys.stderr)
                continue
            problem = None
            problem = Problem(conv, dtype, options.layout, options.device)
            for op in options.op.split(","):
                scaled = {"loss_scale": LOSS_SCALE} if dtype == torch.float16 and op != "fwd" else {}
                yield conv, op, {**fields, **scaled}, lambda: time_case(problem, op, options)


def time_case(problem, op, options):
    """Time, error and workspace of a case."""
    call = lambda: problem.compute(op)
    workspace = own_workspace(call, options)
    result = call()
    errors = problem.errors(op, result) if options.check == "sample" else None
    del result
    return {"time_ms": measure(call, options), "workspace_bytes": workspace, "accuracy": errors}


def own_workspace(call, options):
    """What PyTorch allocates for a call beside its result, once the search for algorithms is over."""
    if options.device == "cpu":
        return None
    call()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    result = call()
    torch.cuda.synchronize()
    size = math.prod(result.shape) * result.element_size()
    return max(0, torch.cuda.max_memory_allocated() - before - size)


if __name__ == "__main__":
    main()
