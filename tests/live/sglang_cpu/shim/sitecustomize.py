"""Lets SGLang start on a machine without a GPU: names that compiled packages would bring."""

import contextlib
import importlib.abc
import importlib.machinery
import sys


class _Declare(importlib.abc.MetaPathFinder):
    """Before torchvision is imported, declares the operators that its CPU build lacks."""

    def find_spec(self, name, path=None, target=None):
        if name == "torchvision":
            sys.meta_path.remove(self)
            import torch

            self.library = torch.library.Library("torchvision", "DEF")
            for schema in (
                "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
                "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
            ):
                with contextlib.suppress(RuntimeError):
                    self.library.define(schema)
            sys.modules["_forensics_torchvision_ops"] = self
        return None


sys.meta_path.insert(0, _Declare())
