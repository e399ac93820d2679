"""torchvision on any machine, also where its compiled part does not fit torch.

Torchvision as published links CUDA. Beside a torch without CUDA its compiled part does not load, and importing it then
stops at two operators that nobody declared. Declared, they have no kernel and raise when called; models, datasets and
transforms call none of them.
"""

import functools
import importlib
from types import ModuleType

OPERATORS = ("torchvision::nms", "torchvision::qnms")
SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


@functools.cache
def torchvision() -> ModuleType:
    """The package torchvision; the one way in which this project gets it."""
    import torch

    try:
        return importlib.import_module("torchvision")
    except RuntimeError:
        for operator in OPERATORS:
            torch.library.define(operator, SCHEMA)
        return importlib.import_module("torchvision")
