"""A stand-in with names only: on the CPU none of the functions is called."""

__version__ = "0.3.99"


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)

    def missing(*args, **kwargs):
        raise NotImplementedError(f"sgl_kernel.{name} is not in this stand-in")

    missing.__name__ = name
    return missing
