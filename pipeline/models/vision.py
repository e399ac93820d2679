"""torchvision on any machine: its models, datasets and transforms, also where its compiled part does not fit torch.

Torchvision as published links CUDA. Beside a torch without CUDA its compiled part does not load, and importing it
then stops at operators that nobody declared (``torchvision::nms``). Declaring their schemas lets the import go through.
No kernel is faked: calling such an operator (``ops.nms``, ``ops.deform_conv2d``, ``io.read_image``) still raises.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
"""The operators that torchvision registers shape functions for when it is imported, loaded or not."""


@functools.cache
def torchvision() -> ModuleType:
    """The package torchvision, made importable first; the one way in which this project gets it.

    Raises ImportError, naming the remedy, where torchvision is not installed. With a torchvision whose compiled part
    loads, this is a plain import.
    """
    specification = importlib.util.find_spec("torchvision")
    if specification is None or not specification.submodule_search_locations:
        raise ImportError("torchvision is not installed: install the environment from requirements.lock")
    if not compiled_part_loads(specification.submodule_search_locations[0]):
        declare_operators()
    return importlib.import_module("torchvision")


def compiled_part_loads(folder: str) -> bool:
    """Whether the compiled extension in torchvision's folder fits the installed torch; loads it if so."""
    import torch

    finder = importlib.machinery.FileFinder(
        folder, (importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES)
    )
    extension = finder.find_spec("_C")
    if extension is None or extension.origin is None:
        return False
    try:
        torch.ops.load_library(extension.origin)
    except (ImportError, OSError):
        return False
    return True


def declare_operators() -> None:
    """Declare the schemas of the operators that nothing has declared yet."""
    import torch

    for schema in SCHEMAS:
        if not hasattr(torch.ops.torchvision, schema.split("(")[0]):
            _fragment().define(schema)


@functools.cache
def _fragment() -> torch.library.Library:
    """The library that holds our declarations; they vanish with it, so it is kept."""
    import torch

    return torch.library.Library("torchvision", "FRAGMENT")
