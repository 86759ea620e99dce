"""
Times cuBLAS's products through PyTorch: a record a case, for wgconv report and wgconv compare.

    python3 bench/peers/cublas.py bench/suites/gemm.txt > cublas.jsonl
    wgconv compare cublas.jsonl wgconv.jsonl

int8 is of whole numbers from -8 to 8, summed in int32, on a GPU. Without a GPU the CPU's products are timed.
On stdout: JSON lines; exits with 1 where no case was timed.
"""
import torch

from records import accuracy, arguments, measure, prepare, print_cases
from suite import read_products

#: Rows of a product that are held against float64.
ROWS = 64


def main():
    options = arguments(__doc__, ["f32", "tf32", "f16", "bf16", "i8", "f64"]).parse_args()
    dtype = prepare(options)
    fields = {"fill": "integer"} if options.dtype == "i8" else {}
    print_cases(options, "cublas", f"CUDA {torch.version.cuda}", (
        (product, "gemm", {"layout": product.transpose, **fields},
         lambda: time_case(product, dtype, options))
        for path in options.suite for product in read_products(path, options.match)))


def time_case(product, dtype, options):
    """Time and error of a product."""
    (ta, tb), batch = product.transpose, product.batch
    a = operand(batch, product.m, product.k, ta == "t", dtype, options.device)
    b = operand(batch, product.k, product.n, tb == "t", dtype, options.device)
    call = (lambda: torch._int_mm(a, b)) if dtype == torch.int8 else (lambda: a @ b)
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


if __name__ == "__main__":
    main()
