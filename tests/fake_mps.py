"""A stand-in for Apple's GPU in torch: tensors that say they are on "mps" and keep their numbers on the host.

They refuse what the real ones refuse (mixing devices, 64-bit floats, turning into NumPy arrays).
"""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

FACTORIES = (torch.tensor, torch.zeros, torch.ones, torch.empty, torch.full, torch.arange, torch.randn, torch.rand)
MPS = torch.device("mps:0")


class OnMps(torch.Tensor):
    """A tensor of the fake device."""

    @property
    def device(self) -> torch.device:
        return MPS

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if name in ("cpu", "to", "numpy", "__array__", "__get__", "__set__"):
            return _moved(func, name, args, kwargs)
        for value in (*args, *kwargs.values()):
            if isinstance(value, torch.Tensor) and not isinstance(value, OnMps) and value.ndim:
                raise RuntimeError(f"Expected all tensors to be on the same device, mps:0 and cpu ({name})")
        if kwargs.get("device") is not None and torch.device(kwargs["device"]).type == "mps":
            del kwargs["device"]
        return super().__torch_function__(func, types, args, kwargs)


def plain(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.as_subclass(torch.Tensor)


def _moved(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    with torch._C.DisableTorchFunctionSubclass():
        if name in ("numpy", "__array__"):
            raise TypeError("can't convert mps:0 device type tensor to numpy. Use Tensor.cpu() first")
        if name == "cpu":
            return plain(args[0]).clone()
        if name == "to":
            target = [a for a in (*args[1:], *kwargs.values()) if isinstance(a, (str, torch.device))]
            rest = [a for a in args[1:] if not isinstance(a, (str, torch.device))]
            more = {k: v for k, v in kwargs.items() if k != "device"}
            moved = plain(args[0]).to(*rest, **more) if rest or more else plain(args[0]).clone()
            return moved if target and torch.device(target[0]).type == "cpu" else moved.as_subclass(OnMps)
        return func(*args, **kwargs)


class FakeMps(TorchFunctionMode):
    """While entered, device="mps" gives tensors of the fake device."""

    def __init__(self) -> None:
        super().__init__()
        self.made = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        device = kwargs.get("device")
        if func in FACTORIES and device is not None and torch.device(device).type == "mps":
            if kwargs.get("dtype") is torch.float64:
                raise TypeError("Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support it")
            self.made += 1
            del kwargs["device"]
            return func(*args, **kwargs).as_subclass(OnMps)
        return func(*args, **kwargs)
