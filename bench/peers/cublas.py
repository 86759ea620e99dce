"""
Times cuBLAS's products through PyTorch: a record a case, for wgconv report and wgconv compare.

    python3 bench/peers/cublas.py bench/suites/gemm.txt > cublas.jsonl
    python3 bench/peers/cublas.py bench/suites/gemm.txt --dtype f16 > cublas.jsonl
    wgconv compare cublas.jsonl wgconv.jsonl

int8 is of whole numbers from -8 to 8, summed in int32, on a GPU. Without a GPU the CPU's products are timed.
On stdout: JSON lines; exits with 1 where no case was timed.
"""
import sys

import torch

from records import accuracy, arguments, measure, prepare, print_case, print_environment
from suite import read_products

#: Rows of a product that are held against float64.
ROWS = 64


def main():
    parser = arguments(__doc__, ["f32", "tf32", "f16", "i8", "f64"])
    options = parser.parse_args()
    dtype = prepare(options)
    print_environment("cublas", f"CUDA {torch.version.cuda}", options.device)
    fields = {"fill": "integer"} if options.dtype == "i8" else {}
    ran = 0
    for path in options.suite:
        for product in read_products(path, options.match):
            ran += print_case(options, "cublas", product, "gemm",
                              lambda: time_case(product, dtype, options),
                              layout=product.transpose, **fields)
    sys.exit(0 if ran else 1)


def time_case(product, dtype, options):
    """Time and error of a product."""
    (ta, tb), batch = product.transpose, product.batch
    a = operand(batch, product.m, product.k, ta == "t", dtype, options.device)
    b = operand(batch, product.k, product.n, tb == "t", dtype, options.device)
    call = multiplication(a, b)
    errors = None
    if options.check == "sample":
        result = call()
        errors = accuracy(result[..., :ROWS, :], a[..., :ROWS, :].double() @ b.double(),
                          result.numel())
    return {"time_ms": measure(call, options), "accuracy": errors}


def operand(batch, rows, columns, transposed, dtype, device):
    """A matrix, or a batch of them, that may be stored by columns."""
    shape = (columns, rows) if transposed else (rows, columns)
    shape = shape if batch == 1 else (batch, *shape)
    if dtype == torch.int8:
        made = torch.randint(-8, 9, shape, device=device, dtype=dtype)
    else:
        made = torch.rand(shape, device=device).to(dtype)
    return made.transpose(-1, -2) if transposed else made


def multiplication(a, b):
    """The call that is timed. Raises RuntimeError for what PyTorch does not offer."""
    if a.dtype != torch.int8:
        return lambda: a @ b
    if not hasattr(torch, "_int_mm"):
        raise RuntimeError(f"PyTorch {torch.__version__} multiplies no int8 matrices")
    return lambda: torch._int_mm(a, b)


if __name__ == "__main__":
    main()
